#include "doors/tools/core/tap.h"

#include <string.h>

#include "doors/tools/core/record.h"

static bool is_combined(const struct coop_tap *tap)
{
	return strcmp(tap->stream, COOP_TAP_COMBINED) == 0;
}

bool coop_tap_is_current(const struct coop_tap *tap)
{
	return tap->over || (tap->attached && tap->next >= tap->present);
}

static bool skip(struct coop_tap *tap, uint64_t to)
{
	uint64_t from = tap->next;

	tap->next = to;
	return tap->gap(tap, from, to);
}

/* Waking may end the watch: it is the last thing that each of these does. */
static void on_data(void *context, const struct coop_chunk *chunk)
{
	struct coop_tap *tap = context;
	bool wake = false;

	if (!is_combined(tap) && chunk->offset != tap->next)
		wake = skip(tap, chunk->offset);
	uint64_t at = tap->next;
	tap->next += chunk->size;
	if (tap->bytes(tap, at, chunk->data, chunk->size) || wake)
		coop_tool_wake(tap->call);
}

static void attach(struct coop_tap *tap, const json_t *record)
{
	const json_t *stream = coop_tool_stream(record, tap->stream);

	tap->attached = true;
	tap->present =
		is_combined(tap) ? coop_tool_record_bytes(record) : coop_tool_number(stream, "end");
	tap->eof = json_is_true(json_object_get(stream, "eof"));
}

static uint64_t gap_end(const struct coop_tap *tap, const json_t *event)
{
	if (!is_combined(tap))
		return coop_tool_number(event, "to");
	return json_is_integer(json_object_get(event, "bytes_before"))
		       ? coop_tool_number(event, "bytes_before")
		       : tap->next + coop_tool_number(event, "bytes");
}

static void on_event(void *context, const char *text)
{
	struct coop_tap *tap = context;
	json_t *event = json_loads(text, 0, NULL);
	const char *name = json_string_value(json_object_get(event, "event"));
	bool wake = true;

	if (!name)
		tap->status = coop_tool_no_memory(tap->call);
	else if (strcmp(name, "attached") == 0)
		attach(tap, json_object_get(event, "process"));
	else if (strcmp(name, "gap") == 0)
		wake = skip(tap, gap_end(tap, event));
	json_decref(event);
	if (wake)
		coop_tool_wake(tap->call);
}

static void on_done(void *context, int status, const char *json, const struct coop_error *error)
{
	struct coop_tap *tap = context;

	(void)json;
	tap->over = true;
	if (status < 0 && tap->status == 0) {
		tap->status = status;
		tap->call->error = *error;
	}
	if (tap->ended)
		tap->ended(tap);
	coop_tool_wake(tap->call);
}

static json_t *follow_args(const struct coop_tap *tap, const char *id, uint64_t from)
{
	if (is_combined(tap))
		return json_pack("{s:s, s:s, s:i}", "id", id, "mode", "events", "since", 0);
	return json_pack("{s:s, s:[s], s:{s:I}, s:s, s:b}", "id", id, "streams", tap->stream,
			 "from", tap->stream, (json_int_t)from, "until",
			 tap->until_eof ? "eof" : "exit", "hold", tap->hold);
}

int coop_tap_open(struct coop_tap *tap, struct coop_tool_call *call, const char *id, uint64_t from)
{
	const struct coop_tool_listener listener = {on_data, on_event, on_done, tap};

	coop_tap_close(tap);
	tap->call = call;
	tap->attached = tap->over = false;
	tap->next = is_combined(tap) ? 0 : from;
	return coop_tool_open(call, "follow", follow_args(tap, id, from), &listener, &tap->watch);
}

void coop_tap_close(struct coop_tap *tap)
{
	coop_tool_close(tap->watch);
	tap->watch = NULL;
}
