#include "doors/mcp/resources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/utf8.h"
#include "doors/mcp/methods.h"
#include "doors/mcp/request.h"
#include "doors/mcp/subscription.h"
#include "doors/tools/core/record.h"
#include "interface/schema.h"

/* What every cursor begins with before it is encoded, so that others are told from ours. */
#define CURSOR_MARK "after "
/* Bytes of a command that a list shows. */
#define COMMAND_MAX 100u
/* The templates are the same as long as the program is. */
#define TEMPLATES_TTL_MS 3600000
/* An address longer than this is not repeated in an error. */
#define URI_SHOWN 1024u

/* One question to the keeper on behalf of a request. */
struct question {
	struct coop_mcp_request *request;
	void *call;
	char uri[COOP_MCP_URI_SIZE];
	struct coop_mcp_process_uri target;
};

static void no_memory(struct coop_mcp_request *request)
{
	coop_mcp_error(request, COOP_MCP_INTERNAL, NULL, "no memory is left for this");
}

void coop_mcp_resource_missing(struct coop_mcp_request *request, const char *uri)
{
	coop_mcp_error(request,
		       coop_mcp_is_modern(request) ? COOP_MCP_INVALID_PARAMS : COOP_MCP_NO_RESOURCE,
		       strlen(uri) < URI_SHOWN ? json_pack("{s:s}", "uri", uri) : NULL,
		       "there is no such resource; resources/list shows those that there are");
}

void coop_mcp_resource_refused(struct coop_mcp_request *request, const char *uri,
			       const struct coop_error *error)
{
	if (!strcmp(error->code, "no_such_process") || !strcmp(error->code, "invalid_input"))
		coop_mcp_resource_missing(request, uri);
	else
		coop_mcp_error(request, COOP_MCP_INTERNAL, json_pack("{s:s}", "code", error->code),
			       "%s", error->message);
}

static void bad_cursor(struct coop_mcp_request *request)
{
	coop_mcp_error(request, COOP_MCP_INVALID_PARAMS, NULL,
		       "cursor is none that this server gave; begin again without one");
}

static void cancel(struct coop_mcp_request *request)
{
	struct question *question = request->context;

	request->mcp->host->drop(question->call);
	free(question);
}

/* Takes the answer: the request is nobody's to cancel any more. */
static struct coop_mcp_request *taken(struct question *question)
{
	struct coop_mcp_request *request = question->request;

	request->cancel = NULL;
	request->context = NULL;
	return request;
}

/* `args` is taken over. */
static void ask(struct question *question, const char *op, json_t *args,
		void (*done)(void *, uint64_t, int, const char *, const struct coop_error *))
{
	struct coop_mcp_request *request = question->request;
	const struct coop_tool_host *host = request->mcp->host;
	const struct coop_handler handler = {.done = done, .user = question};

	question->call = args ? host->call(host->context, op, args, NULL, 0, &handler) : NULL;
	if (!question->call) {
		free(question);
		no_memory(request);
		return;
	}
	request->context = question;
	request->cancel = cancel;
}

static struct question *question_new(struct coop_mcp_request *request)
{
	struct question *question = coop_mem_zalloc(sizeof *question);

	if (question)
		question->request = request;
	else
		no_memory(request);
	return question;
}

/* Length of the text without a character that the limit would cut. */
static size_t cut(const char *text, size_t max)
{
	size_t size = strnlen(text, max);

	return size - coop_utf8_unfinished((const uint8_t *)text, size);
}

static json_t *describe(const json_t *record)
{
	const char *command = json_string_value(json_object_get(record, "command"));
	const char *state = json_string_value(json_object_get(record, "state"));
	char text[COMMAND_MAX + 64];

	if (!command)
		command = "";
	size_t shown = cut(command, COMMAND_MAX);
	(void)snprintf(text, sizeof text, "%s: %.*s%s", state ? state : "unknown", (int)shown,
		       command, command[shown] ? "…" : "");
	return json_string(text);
}

/* Adds one resource; false without memory. */
static bool add(json_t *list, const json_t *record, bool output)
{
	const char *id = json_string_value(json_object_get(record, "id"));
	const char *label = json_string_value(json_object_get(record, "label"));
	char uri[COOP_MCP_URI_SIZE], name[COOP_ID_SIZE + 16];
	json_t *title = output ? json_sprintf("Output of %s", label ? label : "it")
			       : json_string(label ? label : "");
	json_t *description = describe(record);

	if (!id || !title || !description) {
		json_decref(title);
		json_decref(description);
		return false;
	}
	coop_mcp_process_uri_write(id, output, uri);
	(void)snprintf(name, sizeof name, "%s%s", id, output ? " output" : "");
	return json_array_append_new(
		       list, json_pack("{s:s, s:s, s:o, s:o, s:s}", "uri", uri, "name", name,
				       "title", title, "description", description, "mimeType",
				       output ? "text/plain" : "application/json")) == 0;
}

static json_t *cursor_after(const json_t *record)
{
	const char *id = json_string_value(json_object_get(record, "id"));
	char plain[COOP_ID_SIZE + sizeof CURSOR_MARK];
	char text[2 * sizeof plain];
	int size = snprintf(plain, sizeof plain, CURSOR_MARK "%s", id ? id : "");

	if (size < 0 || (size_t)size >= sizeof plain)
		return NULL;
	coop_base64_encode(plain, (size_t)size, text);
	return json_stringn(text, coop_base64_length((size_t)size));
}

/* The id that a cursor of ours stands for; false: it is none. */
static bool cursor_read(const json_t *cursor, char ret_id[COOP_ID_SIZE])
{
	char plain[COOP_ID_SIZE + sizeof CURSOR_MARK];
	struct coop_mcp_process_uri target;
	char uri[COOP_MCP_URI_SIZE];
	const char *text = json_string_value(cursor);
	size_t length = json_string_length(cursor), size = 0, mark = strlen(CURSOR_MARK);

	if (!text || coop_base64_room(length) >= sizeof plain ||
	    coop_base64_decode(text, length, plain, &size) < 0 || size < mark ||
	    size - mark >= COOP_ID_SIZE || memcmp(plain, CURSOR_MARK, mark) != 0)
		return false;
	plain[size] = 0;
	coop_mcp_process_uri_write(plain + mark, false, uri);
	if (!coop_mcp_process_uri_read(uri, &target))
		return false;
	memcpy(ret_id, target.id, sizeof target.id);
	return true;
}

/* The page as a result; NULL without memory. */
static json_t *page(const json_t *answer)
{
	const json_t *records = json_object_get(answer, "processes"), *record = NULL;
	json_t *shown = json_array();
	size_t index;

	json_array_foreach(records, index, record)
	{
		/* One that is just being started has not yet the id that it will have. */
		const char *state = json_string_value(json_object_get(record, "state"));
		if (state && strcmp(state, "starting") == 0)
			continue;
		/* What remains of a process after a while is its record alone. */
		bool output = !json_is_true(json_object_get(record, "receipt"));
		if (!add(shown, record, false) || (output && !add(shown, record, true))) {
			json_decref(shown);
			return NULL;
		}
	}
	json_t *result = json_pack("{s:o}", "resources", shown);
	if (result && record && json_is_true(json_object_get(answer, "more")) &&
	    json_object_set_new(result, "nextCursor", cursor_after(record)) < 0) {
		json_decref(result);
		return NULL;
	}
	return result;
}

static void on_list(void *user, uint64_t id, int status, const char *json,
		    const struct coop_error *error)
{
	struct question *question = user;
	struct coop_mcp_request *request = taken(question);
	json_t *answer = json ? json_loads(json, 0, NULL) : NULL;
	json_t *result = answer ? page(answer) : NULL;

	(void)id;
	free(question);
	json_decref(answer);
	if (status == 0) {
		if (result)
			coop_mcp_cacheable(request, result, 0, "private");
		coop_mcp_answer(request, result);
	} else if (!strcmp(error->code, "no_such_process")) {
		coop_mcp_error(request, COOP_MCP_INVALID_PARAMS, NULL,
			       "the process that this cursor stands for has been released; begin "
			       "again without a cursor");
	} else {
		coop_mcp_error(request, COOP_MCP_INTERNAL, json_pack("{s:s}", "code", error->code),
			       "%s", error->message);
	}
}

static void list(struct coop_mcp_request *request)
{
	const json_t *cursor = coop_arg(request->params, "cursor");
	char after[COOP_ID_SIZE];

	if (cursor && !cursor_read(cursor, after)) {
		bad_cursor(request);
		return;
	}
	/* The older era has no way to ask for word of changes: who lists cares for them. */
	if (request->session)
		coop_mcp_subscription_lists(request->mcp, request->session);
	struct question *question = question_new(request);
	if (question)
		ask(question, "list",
		    json_pack("{s:b, s:b, s:i, s:s?}", "include_finished", 1, "brief", 1, "limit",
			      COOP_MCP_PAGE, "after", cursor ? after : NULL),
		    on_list);
}

static json_t *template_of(const char *uri, const char *name, const char *title,
			   const char *description, const char *type)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "uriTemplate", uri, "name", name, "title",
			 title, "description", description, "mimeType", type);
}

static void list_templates(struct coop_mcp_request *request)
{
	if (coop_arg(request->params, "cursor")) {
		bad_cursor(request);
		return;
	}
	json_t *record = template_of(
		COOP_MCP_URI_RECORD, "process", "Process",
		"Record of a process by its id: command, state, how it ended, what it uses.",
		"application/json");
	json_t *output = template_of(
		COOP_MCP_URI_OUTPUT, "process output", "Process output",
		"What the process wrote, as far as it is kept: all streams in order of arrival.",
		"text/plain");
	json_t *result = json_pack("{s:[o, o]}", "resourceTemplates", record, output);

	if (result)
		coop_mcp_cacheable(request, result, TEMPLATES_TTL_MS, "public");
	coop_mcp_answer(request, result);
}

static void answer_record(struct coop_mcp_request *request, const char *uri, const json_t *record)
{
	char *text = json_dumps(record, JSON_COMPACT);
	json_t *result = text ? json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri,
					  "mimeType", "application/json", "text", text)
			      : NULL;

	free(text);
	if (result)
		coop_mcp_cacheable(request, result,
				   coop_tool_is_over(record) ? COOP_MCP_ENDED_TTL_MS : 0,
				   "private");
	coop_mcp_answer(request, result);
}

static void on_record(void *user, uint64_t id, int status, const char *json,
		      const struct coop_error *error)
{
	struct question *question = user;
	struct coop_mcp_request *request = taken(question);
	json_t *answer = json ? json_loads(json, 0, NULL) : NULL;
	const json_t *record = json_object_get(answer, "process");
	const char *found = json_string_value(json_object_get(record, "id"));

	(void)id;
	if (status < 0)
		coop_mcp_resource_refused(request, question->uri, error);
	else if (!answer)
		no_memory(request);
	else if (!found || strcmp(found, question->target.id) != 0)
		coop_mcp_resource_missing(request, question->uri);
	else if (question->target.output)
		coop_mcp_resource_output(request, question->uri, record);
	else
		answer_record(request, question->uri, record);
	json_decref(answer);
	free(question);
}

static void read_resource(struct coop_mcp_request *request)
{
	const char *uri = coop_mcp_plain(json_object_get(request->params, "uri"));
	struct coop_mcp_process_uri target;

	if (!uri) {
		coop_mcp_error(request, COOP_MCP_INVALID_PARAMS, NULL,
			       "uri must be a string without NUL");
		return;
	}
	if (!coop_mcp_process_uri_read(uri, &target)) {
		coop_mcp_resource_missing(request, uri);
		return;
	}
	struct question *question = question_new(request);
	if (!question)
		return;
	question->target = target;
	coop_mcp_process_uri_write(target.id, target.output, question->uri);
	ask(question, "status", json_pack("{s:s}", "id", target.id), on_record);
}

const struct coop_mcp_method coop_mcp_methods_resources[] = {
	{"resources/list", true, true, list},
	{"resources/templates/list", true, true, list_templates},
	{"resources/read", true, true, read_resource},
	{0},
};
