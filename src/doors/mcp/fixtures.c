#include "doors/mcp/fixtures.h"

#include <stdio.h>
#include <string.h>

#include "doors/mcp/mcp.h"

/* One red pixel, and a sound of no length. */
#define PNG                                                                                       \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5" \
	"ErkJggg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"
#define AUDIO "{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}"
#define RESOURCE(uri, type, text)                                                       \
	"{\"type\":\"resource\",\"resource\":{\"uri\":\"" uri "\",\"mimeType\":\"" type \
	"\",\"text\":\"" text "\"}}"

#define NO_ARGUMENTS "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}"
/* As the suite spells it: every keyword must come through. */
#define MANY_KEYWORDS                                                                              \
	"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","       \
	"\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":"   \
	"{\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},\"properties\":{"     \
	"\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"               \
	"\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"                  \
	"\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},\"allOf\":[{\"anyOf\":[" \
	"{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],\"if\":{\"properties\":{"        \
	"\"contactMethod\":{\"const\":\"phone\"}},\"required\":[\"contactMethod\"]},\"then\":{"    \
	"\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"                           \
	"\"additionalProperties\":false}"

struct fixture {
	const char *name;
	const char *content; /* the answer's blocks; NULL: `run` gives the answer */
	bool is_error;
	/* Whether the request has been answered. */
	bool (*run)(struct coop_mcp_request *request, const json_t *args);
	const char *schema; /* of its arguments; NULL: it has none */
};

static void answer(struct coop_mcp_request *request, const char *content, bool is_error)
{
	json_t *blocks = json_loads(content, 0, NULL);

	coop_mcp_answer(request, blocks ? json_pack("{s:o, s:b}", "content", blocks, "isError",
						    (int)is_error)
					: NULL);
}

static bool greet(struct coop_mcp_request *request, const json_t *args)
{
	const char *name = json_string_value(json_object_get(args, "name"));
	char text[128];

	(void)snprintf(text, sizeof text, "Hello, %.100s!", name ? name : "you");
	coop_mcp_answer(request,
			json_pack("{s:[{s:s, s:s}]}", "content", "type", "text", "text", text));
	return true;
}

/* Straight to the channel: the server itself would leave out what comes so fast. */
static bool tell_progress(struct coop_mcp_request *request, const json_t *args)
{
	(void)args;
	for (int i = 0; request->progress_token && i <= 100; i += 50)
		coop_mcp_notify(request->channel, "notifications/progress",
				json_pack("{s:O, s:i, s:i}", "progressToken",
					  request->progress_token, "progress", i, "total", 100));
	answer(request, "[" TEXT("all of it") "]", false);
	return true;
}

static bool need_sampling(struct coop_mcp_request *request, const json_t *args)
{
	(void)args;
	if (!coop_mcp_is_modern(request) || json_object_get(request->capabilities, "sampling"))
		answer(request, "[" TEXT("declared") "]", false);
	else
		coop_mcp_error(request, COOP_MCP_NO_CAPABILITY,
			       json_pack("{s:{s:{}}}", "requiredCapabilities", "sampling"),
			       "this tool needs a client that samples");
	return true;
}

/* Makes the request one for run_command, which may become a task; not answered yet. */
static bool run_line(struct coop_mcp_request *request, const char *line)
{
	(void)json_object_set_new(request->params, "name", json_string("run_command"));
	(void)json_object_set_new(request->params, "arguments",
				  json_pack("{s:s, s:i}", "command", line, "timeout_ms", 120000));
	return false;
}

static bool compute(struct coop_mcp_request *request, const json_t *args)
{
	char line[64];

	(void)snprintf(line, sizeof line, "sleep %.3f; echo computed",
		       json_number_value(json_object_get(args, "seconds")));
	return run_line(request, line);
}

/* It cannot do without a task. */
static bool fail(struct coop_mcp_request *request, const json_t *args)
{
	(void)args;
	if (coop_mcp_declares_tasks(request))
		return run_line(request, "sleep 1; exit 1");
	coop_mcp_error(request, COOP_MCP_NO_CAPABILITY,
		       json_pack("{s:{s:{s:{}}}}", "requiredCapabilities", "extensions",
				 COOP_MCP_TASKS_EXTENSION),
		       "this tool is always a task");
	return true;
}

/* It should ask first, which nothing here does: it is a task that has ended when it is asked
 * for. */
static bool confirm(struct coop_mcp_request *request, const json_t *args)
{
	(void)args;
	return run_line(request, "echo nothing is deleted");
}

static const struct fixture fixtures[] = {
	{.name = "confirm_delete",
	 .run = confirm,
	 .schema = "{\"type\":\"object\",\"properties\":{\"filename\":{\"type\":\"string\"}}}"},
	{.name = "failing_job", .run = fail},
	{.name = "greet",
	 .run = greet,
	 .schema = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}"},
	{.name = "json_schema_2020_12_tool",
	 .content = "[" TEXT("taken") "]",
	 .schema = MANY_KEYWORDS},
	{.name = "slow_compute",
	 .run = compute,
	 .schema = "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\"},"
		   "\"label\":{\"type\":\"string\"}}}"},
	{.name = "test_audio_content", .content = "[" AUDIO "]"},
	{.name = "test_embedded_resource",
	 .content = "[" RESOURCE("test://embedded-resource", "text/plain",
				 "This is an embedded resource content.") "]"},
	{.name = "test_error_handling",
	 .content = "[" TEXT("This tool intentionally returns an error for testing") "]",
	 .is_error = true},
	{.name = "test_image_content", .content = "[" IMAGE "]"},
	/* Neither is to say anything but its answer: logs that nobody asked for, and requests to
	   the client, are what the suite looks for. */
	{.name = "test_logging_tool", .content = "[" TEXT("nothing was logged") "]"},
	{.name = "test_missing_capability", .run = need_sampling},
	{.name = "test_multiple_content_types",
	 .content = "[" TEXT("Multiple content types test:") "," IMAGE "," RESOURCE(
		 "test://mixed-content-resource", "application/json",
		 "{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}") "]"},
	{.name = "test_simple_text",
	 .content = "[" TEXT("This is a simple text response for testing.") "]"},
	{.name = "test_streaming_elicitation", .content = "[" TEXT("nothing was asked") "]"},
	{.name = "test_tool_with_progress", .run = tell_progress},
};
#define FIXTURES (sizeof fixtures / sizeof fixtures[0])

static bool call(struct coop_mcp_request *request)
{
	const char *name = json_string_value(json_object_get(request->params, "name"));

	for (size_t i = 0; name && i < FIXTURES; i++) {
		if (strcmp(name, fixtures[i].name) != 0)
			continue;
		if (fixtures[i].run)
			return fixtures[i].run(request,
					       json_object_get(request->params, "arguments"));
		answer(request, fixtures[i].content, fixtures[i].is_error);
		return true;
	}
	return false;
}

static bool read_resource(struct coop_mcp_request *request)
{
	const char *uri = json_string_value(json_object_get(request->params, "uri"));
	const char *type = "text/plain", *member = "text";
	char text[256] = "This is the content of the static text resource.";
	int end = 0, id;

	if (!uri)
		return false;
	if (strcmp(uri, "test://static-binary") == 0) {
		type = "image/png";
		member = "blob";
		(void)snprintf(text, sizeof text, "%s", PNG);
	} else if (sscanf(uri, "test://template/%9d/data%n", &id, &end) == 1 && end && !uri[end]) {
		type = "application/json";
		(void)snprintf(text, sizeof text,
			       "{\"id\":\"%d\",\"templateTest\":true,\"data\":\"Data for ID: %d\"}",
			       id, id);
	} else if (strcmp(uri, "test://static-text") != 0) {
		return false;
	}
	json_t *result = json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri, "mimeType",
				   type, member, text);
	if (result)
		coop_mcp_cacheable(request, result, 0, "private");
	coop_mcp_answer(request, result);
	return true;
}

/* Nothing ever happens to it. */
static bool subscribe(struct coop_mcp_request *request)
{
	const char *uri = json_string_value(json_object_get(request->params, "uri"));

	if (!request->session || !uri || strcmp(uri, "test://watched-resource") != 0)
		return false;
	coop_mcp_answer(request, json_object());
	return true;
}

bool coop_mcp_fixture_take(struct coop_mcp_request *request, const char *method)
{
	if (!request->mcp->fixtures)
		return false;
	if (strcmp(method, "tools/call") == 0)
		return call(request);
	if (strcmp(method, "resources/read") == 0)
		return read_resource(request);
	return (strcmp(method, "resources/subscribe") == 0 ||
		strcmp(method, "resources/unsubscribe") == 0) &&
	       subscribe(request);
}

void coop_mcp_fixture_list(const struct coop_mcp *mcp, struct coop_jsonw *w)
{
	for (size_t i = 0; mcp->fixtures && i < FIXTURES; i++) {
		coop_jsonw_begin(w, NULL);
		coop_jsonw_string(w, "name", fixtures[i].name);
		coop_jsonw_string(w, "description", "For the conformance suite.");
		coop_jsonw_raw(w, "inputSchema",
			       fixtures[i].schema ? fixtures[i].schema : NO_ARGUMENTS);
		coop_jsonw_end(w);
	}
}
