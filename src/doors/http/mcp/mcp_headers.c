#include "doors/http/mcp/mcp_headers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text/base64.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/head.h"

/* How exactly a range of Accept means a type: 3 itself, 2 all of its kind, 1 everything, 0 not at
 * all. */
static int range_fits(const char *range, size_t size, const char *type)
{
	size_t kind = strcspn(type, "/") + 1;

	if (size == strlen(type) && strncasecmp(range, type, size) == 0)
		return 3;
	if (size == kind + 1 && range[kind] == '*' && strncasecmp(range, type, kind) == 0)
		return 2;
	return size == 3 && memcmp(range, "*/*", 3) == 0;
}

/* Whether the parameters of a range ("; level=1; q=0") forbid it. */
static bool is_zero(const char *text, const char *end)
{
	while (text < end) {
		text += strspn(text, "; \t");
		if (text + 2 < end && (*text == 'q' || *text == 'Q') && text[1] == '=')
			return strtod(text + 2, NULL) <= 0;
		text += strcspn(text, ";,");
		if (text < end && *text == ',')
			return false;
	}
	return false;
}

struct choice {
	int best; /* the more exact range decides */
	bool allowed;
};

static void weigh_line(const char *line, const char *type, struct choice *choice)
{
	while (*line) {
		line += strspn(line, ", \t");
		const char *end = line + strcspn(line, ",");
		int fit = range_fits(line, strcspn(line, ",; \t"), type);
		const char *rest = line + strcspn(line, ",;");
		if (fit > choice->best || (fit && fit == choice->best && !choice->allowed)) {
			choice->best = fit;
			choice->allowed = !is_zero(rest, end);
		}
		line = end;
	}
}

bool coop_mcp_accepts(const struct coop_http_exchange *exchange, const char *type)
{
	const struct coop_head *head = exchange->conn->head;
	struct choice choice = {0};
	bool any = false;

	for (unsigned i = 0; i < head->line_count; i++) {
		if (strcmp(head->lines[i].name, "accept") != 0)
			continue;
		any = true;
		weigh_line(head->lines[i].value, type, &choice);
	}
	return !any || choice.allowed;
}

bool coop_mcp_is_json(const struct coop_http_exchange *exchange)
{
	const char *type = coop_http_header(exchange, "content-type");

	return type && strcspn(type, "; \t") == 16 &&
	       strncasecmp(type, "application/json", 16) == 0;
}

const json_t *coop_mcp_meta_version(const json_t *message)
{
	const json_t *params = json_object_get(message, "params");
	const json_t *meta = json_object_get(params, "_meta");

	return json_object_get(meta, COOP_MCP_META_VERSION);
}

/* What Mcp-Name must say; NULL: the method has no such thing, or the message lacks it. */
static const char *name_of(const json_t *message)
{
	static const struct {
		const char *method, *member;
	} rows[] = {
		{"tools/call", "name"},
		{"prompts/get", "name"},
		{"resources/read", "uri"},
		/* Others of tasks/ do not exist, whatever their headers say. */
		{"tasks/cancel", "taskId"},
		{"tasks/get", "taskId"},
		{"tasks/update", "taskId"},
	};
	const char *method = json_string_value(json_object_get(message, "method"));
	const json_t *params = json_object_get(message, "params");
	const char *member = NULL;

	for (size_t i = 0; method && i < sizeof rows / sizeof rows[0]; i++) {
		if (strcmp(method, rows[i].method) == 0)
			member = rows[i].member;
	}
	return member ? json_string_value(json_object_get(params, member)) : NULL;
}

/* The value of a header in the form =?base64?…?=, decoded; NULL: it is not in that form, or broken.
 * For the caller to free. */
static char *decode(const char *value)
{
	static const char begin[] = "=?base64?", end[] = "?=";
	size_t head = sizeof begin - 1, tail = sizeof end - 1, length = strlen(value), size;

	if (length < head + tail || strncasecmp(value, begin, head) != 0 ||
	    strcmp(value + length - tail, end) != 0)
		return NULL;
	length -= head + tail;
	char *text = coop_mem_alloc(coop_base64_room(length) + 1);
	if (!text)
		return NULL;
	if (coop_base64_decode(value + head, length, (uint8_t *)text, &size) < 0 ||
	    memchr(text, 0, size)) {
		free(text);
		return NULL;
	}
	text[size] = 0;
	return text;
}

static bool same(const char *value, const char *expected)
{
	char *decoded = decode(value);
	bool equal = strcmp(decoded ? decoded : value, expected) == 0;

	free(decoded);
	return equal;
}

/* Whether a header is there, once, with this value. */
static bool says(const struct coop_http_exchange *exchange, const char *name, const char *expected)
{
	const char *value = coop_http_header(exchange, name);

	return value && expected && coop_head_count(exchange->conn->head, name) == 1 &&
	       strcmp(value, expected) == 0;
}

static bool names(const struct coop_http_exchange *exchange, const char *expected)
{
	const char *value = coop_http_header(exchange, "mcp-name");

	return value && coop_head_count(exchange->conn->head, "mcp-name") == 1 &&
	       same(value, expected);
}

const char *coop_mcp_header_fault(const struct coop_http_exchange *exchange, const json_t *message)
{
	const char *name = name_of(message);
	const char *version = json_string_value(coop_mcp_meta_version(message));

	if (!says(exchange, "mcp-protocol-version", version))
		return "the header MCP-Protocol-Version must be there and equal "
		       "params._meta[\"" COOP_MCP_META_VERSION "\"]";
	if (!says(exchange, "mcp-method", json_string_value(json_object_get(message, "method"))))
		return "the header Mcp-Method must be there and equal the message's method";
	if (name && !names(exchange, name))
		return "the header Mcp-Name must be there and equal params.name (tools/call, "
		       "prompts/get), params.uri (resources/read) or params.taskId (tasks/*)";
	return NULL;
}
