#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/utf8.h"
#include "doors/mcp/mcp.h"
#include "doors/mcp/resources.h"
#include "doors/tools/core/record.h"

/* Bytes of one read in order of arrival, and of the largest event: an answer with less than the
 * difference was the last. */
#define READ_MAX (4u << 20)
#define EVENT_MAX (64u << 10)
/* Reads for one answer. What a process keeps at most fits into fewer; one that writes all the time
 * is not run after. */
#define READS_MAX 8

/* Where one stream has all that was written its end is read, as much as fits. Otherwise all that is
 * kept is read in the order of its arrival, and the latest of it remains. */
struct reading {
	struct coop_mcp_request *request;
	void *call;
	char uri[COOP_MCP_URI_SIZE];
	char id[COOP_ID_SIZE];
	char stream[8]; /* "" : in order of arrival */
	json_t *state;
	bool blocked; /* it waits for input */
	bool over;    /* it has ended */
	bool failed;
	int reads;
	struct coop_buf bytes;
	uint64_t total; /* bytes that the process has written up to here */
};

static void reading_free(struct reading *reading)
{
	json_decref(reading->state);
	coop_buf_clear(&reading->bytes);
	free(reading);
}

static void cancel(struct coop_mcp_request *request)
{
	struct reading *reading = request->context;

	request->mcp->host->drop(reading->call);
	reading_free(reading);
}

static void keep_latest(struct reading *reading, size_t max)
{
	size_t size = coop_buf_size(&reading->bytes);

	if (size > max)
		coop_buf_consume(&reading->bytes, size - COOP_MCP_OUTPUT_MAX);
}

static void on_data(void *user, uint64_t id, const struct coop_chunk *chunk)
{
	struct reading *reading = user;

	(void)id;
	if (coop_buf_append(&reading->bytes, chunk->data, chunk->size) < 0)
		reading->failed = true;
	keep_latest(reading, 2 * COOP_MCP_OUTPUT_MAX);
}

static bool is_text(const uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at < size;) {
		size_t length = bytes[at] < 0x80 ? 1 : coop_utf8_char(bytes + at, size - at);
		if (!length)
			return false;
		at += length;
	}
	return true;
}

/* Bytes at the front that belong to a character which was cut off. */
static size_t torn(const uint8_t *bytes, size_t size)
{
	size_t count = 0;

	while (count < 3 && count < size && (bytes[count] & 0xc0) == 0x80)
		count++;
	return count;
}

static json_t *encoded(const uint8_t *bytes, size_t size)
{
	char *text = coop_mem_alloc(coop_base64_length(size));
	json_t *value = NULL;

	if (text) {
		coop_base64_encode(bytes, size, text);
		value = json_stringn_nocheck(text, coop_base64_length(size));
	}
	free(text);
	return value;
}

/* Adds the bytes as text if they are some. Returns how many are shown. */
static size_t set_bytes(const struct reading *reading, json_t *content)
{
	size_t size = coop_buf_size(&reading->bytes);
	const uint8_t *bytes = size ? coop_buf_front(&reading->bytes) : (const uint8_t *)"";
	size_t front = reading->total > size ? torn(bytes, size) : 0;
	/* The rest of a character that has begun is still to come. */
	size_t back = reading->over ? 0 : coop_utf8_unfinished(bytes + front, size - front);
	bool text = is_text(bytes + front, size - front - back);
	json_t *value;

	if (text)
		value = json_stringn_nocheck((const char *)bytes + front, size - front - back);
	else
		value = encoded(bytes, size);
	(void)json_object_set_new(content, "mimeType",
				  json_string(text ? "text/plain" : "application/octet-stream"));
	(void)json_object_set_new(content, text ? "text" : "blob", value);
	return text ? size - front - back : size;
}

static json_t *contents(struct reading *reading)
{
	json_t *content = json_pack("{s:s}", "uri", reading->uri);

	keep_latest(reading, COOP_MCP_OUTPUT_MAX);
	size_t shown = content ? set_bytes(reading, content) : 0;
	if (!json_object_get(content, "text") && !json_object_get(content, "blob")) {
		json_decref(content);
		return NULL;
	}
	/* What is left out is older than what is shown: it is not kept, or does not fit. */
	uint64_t missing = reading->total > shown ? reading->total - shown : 0;
	json_t *meta =
		json_pack("{s:I, s:I, s:O}", "coop/total_bytes", (json_int_t)reading->total,
			  "coop/omitted_bytes", (json_int_t)missing, "coop/state", reading->state);
	if (reading->blocked)
		(void)json_object_set_new(meta, "coop/blocked_on_stdin", json_true());
	(void)json_object_set_new(content, "_meta", meta);
	return json_pack("{s:[o]}", "contents", content);
}

static void finish(struct reading *reading)
{
	struct coop_mcp_request *request = reading->request;
	json_t *result = reading->failed ? NULL : contents(reading);

	if (result)
		coop_mcp_cacheable(request, result, reading->over ? COOP_MCP_ENDED_TTL_MS : 0,
				   "private");
	reading_free(reading);
	coop_mcp_answer(request, result);
}

static void ask(struct reading *reading, json_int_t cursor);

/* Bytes written up to the end of a read in order of arrival. */
static json_int_t arrived(const json_t *answer)
{
	json_int_t all = json_integer_value(json_object_get(answer, "bytes_before")) +
			 json_integer_value(json_object_get(answer, "bytes"));
	const json_t *gap;
	size_t index;

	json_array_foreach(json_object_get(answer, "gaps"), index, gap)
	{
		all += json_integer_value(json_object_get(gap, "bytes"));
	}
	return all;
}

/* Takes down where the read got to. Returns whether there is more to read. */
static bool note_answer(struct reading *reading, const json_t *answer)
{
	json_int_t bytes = json_integer_value(json_object_get(answer, "bytes"));
	json_int_t next = json_integer_value(json_object_get(answer, "next"));
	json_int_t total = json_integer_value(json_object_get(answer, "total"));

	reading->total = (uint64_t)(*reading->stream ? next : arrived(answer));
	if (reading->failed || reading->reads >= READS_MAX || !bytes)
		return false;
	return *reading->stream ? next < total : bytes > READ_MAX - EVENT_MAX;
}

static void on_read(void *user, uint64_t id, int status, const char *json,
		    const struct coop_error *error)
{
	struct reading *reading = user;
	struct coop_mcp_request *request = reading->request;
	json_t *answer = json ? json_loads(json, 0, NULL) : NULL;
	json_int_t next = json_integer_value(json_object_get(answer, "next"));
	bool more = answer && note_answer(reading, answer);

	(void)id;
	reading->failed |= status == 0 && !answer;
	request->cancel = NULL;
	request->context = NULL;
	json_decref(answer);
	if (status < 0) {
		coop_mcp_resource_refused(request, reading->uri, error);
		reading_free(reading);
	} else if (more) {
		ask(reading, next);
	} else {
		finish(reading);
	}
}

static json_t *read_args(const struct reading *reading, json_int_t cursor)
{
	if (!*reading->stream)
		return json_pack("{s:s, s:s, s:I, s:i}", "id", reading->id, "stream", "combined",
				 "cursor", cursor, "max", (int)READ_MAX);
	return json_pack("{s:s, s:s, s:I, s:i}", "id", reading->id, "stream", reading->stream,
			 reading->reads ? "cursor" : "tail",
			 reading->reads ? cursor : COOP_MCP_OUTPUT_MAX, "max",
			 (int)COOP_MCP_OUTPUT_MAX);
}

static void ask(struct reading *reading, json_int_t cursor)
{
	struct coop_mcp_request *request = reading->request;
	const struct coop_tool_host *host = request->mcp->host;
	const struct coop_handler handler = {.data = on_data, .done = on_read, .user = reading};
	json_t *args = read_args(reading, cursor);

	reading->reads++;
	reading->call = args ? host->call(host->context, "read", args, NULL, 0, &handler) : NULL;
	if (!reading->call) {
		reading->failed = true;
		finish(reading);
		return;
	}
	request->context = reading;
	request->cancel = cancel;
}

/* Names the stream that has all output, if there is such a one. */
static void choose_stream(struct reading *reading, const json_t *record)
{
	const char *name, *only = NULL;
	unsigned count = 0;
	json_t *stream;

	json_object_foreach(json_object_get(record, "streams"), name, stream)
	{
		if (json_integer_value(json_object_get(stream, "end")) == 0)
			continue;
		only = name;
		count++;
	}
	/* What comes on the other one meanwhile is for the next reader. */
	if (count == 1)
		(void)strncpy(reading->stream, only, sizeof reading->stream - 1);
}

void coop_mcp_resource_output(struct coop_mcp_request *request, const char *uri,
			      const json_t *record)
{
	struct reading *reading = coop_mem_zalloc(sizeof *reading);
	const char *id = json_string_value(json_object_get(record, "id"));

	if (!reading) {
		coop_mcp_answer(request, NULL);
		return;
	}
	reading->request = request;
	reading->state = json_incref(json_object_get(record, "state"));
	reading->blocked = json_is_true(json_object_get(record, "blocked_on_stdin"));
	reading->over = coop_tool_is_over(record);
	choose_stream(reading, record);
	(void)strncpy(reading->uri, uri, sizeof reading->uri - 1);
	(void)strncpy(reading->id, id, sizeof reading->id - 1);
	if (json_is_true(json_object_get(record, "receipt"))) {
		reading->total = coop_tool_record_bytes(record);
		finish(reading);
		return;
	}
	ask(reading, 0);
}
