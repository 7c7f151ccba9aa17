/* wait_command_output: waits until a text or a regular expression comes (B-042, B-043). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/views/pattern.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/table.h"
#include "doors/tools/harn/harn_output.h"
#include "doors/tools/harn/harn_result.h"
#include "interface/schema.h"

/* A match that more bytes could make longer is taken when there have been none for so long. */
#define SETTLE_MS 10

/* What is known while output comes in. Positions are offsets in what is searched: a stream, or all
 * in order of arrival. */
struct hunt {
	struct coop_tool_call *call;
	struct coop_pattern *pattern;
	struct coop_search *search; /* since the last gap */
	const char *source;
	bool combined;
	uint64_t from;      /* what lies before is not looked at */
	uint64_t base;      /* of the first byte that the search was fed */
	uint64_t position;  /* of the next byte to come */
	uint64_t caught_up; /* where the output ended when the search began */
	uint64_t dropped;
	bool attached, over,
		fresh; /* fresh: bytes came since the last look at the end of what is there */
	struct coop_pattern_match match;
	int status;
	char reason[256];
	struct coop_error error;
};

static void feed(struct hunt *hunt, const void *bytes, size_t size, bool last)
{
	if (hunt->match.found || hunt->status < 0 || !hunt->search)
		return;
	hunt->status =
		coop_search_feed(hunt->search, bytes, size, last, &hunt->match, hunt->reason);
}

/* Takes what has come so far for all there is. */
static void peek(struct hunt *hunt)
{
	if (!hunt->match.found && hunt->status == 0)
		hunt->status = coop_search_peek(hunt->search, &hunt->match, hunt->reason);
}

/* The functions that follow run on the loop; to wake the fiber is the last that they do. */
static void on_data(void *context, const struct coop_chunk *chunk)
{
	struct hunt *hunt = context;
	uint64_t at = hunt->combined ? hunt->position : chunk->offset;
	size_t skipped = 0;

	hunt->position = at + chunk->size;
	if (at < hunt->from)
		skipped = hunt->from - at < chunk->size ? (size_t)(hunt->from - at) : chunk->size;
	if (skipped < chunk->size) {
		feed(hunt, (const char *)chunk->data + skipped, chunk->size - skipped, false);
		hunt->fresh = true;
	}
	coop_tool_wake(hunt->call);
}

static uint64_t end_of(const struct hunt *hunt, const json_t *record)
{
	json_t *streams = json_object_get(record, "streams"), *stream;
	uint64_t end = 0;
	const char *name;

	json_object_foreach(streams, name, stream)
	{
		if (hunt->combined || strcmp(name, hunt->source) == 0)
			end += (uint64_t)json_integer_value(json_object_get(stream, "end"));
	}
	return end;
}

/* Bytes are lost: the search begins anew behind them. */
static void skip_gap(struct hunt *hunt, const json_t *event)
{
	const json_t *before = json_object_get(event, "bytes_before");
	uint64_t start = hunt->position, end = start;

	if (!hunt->combined)
		end = (uint64_t)json_integer_value(json_object_get(event, "to"));
	else if (json_is_integer(before))
		end = (uint64_t)json_integer_value(before);
	else
		end += (uint64_t)json_integer_value(json_object_get(event, "bytes"));
	hunt->position = end;
	if (start < hunt->from)
		start = hunt->from;
	if (end <= start)
		return;
	peek(hunt);
	if (hunt->match.found || hunt->status < 0)
		return;
	hunt->dropped += end - start;
	coop_search_free(hunt->search);
	hunt->search = coop_search_new(hunt->pattern);
	hunt->base = end;
	if (!hunt->search)
		hunt->status = -ENOMEM;
}

static void on_event(void *context, const char *json)
{
	struct hunt *hunt = context;
	json_t *event = json_loads(json, 0, NULL);
	const char *name = json_string_value(json_object_get(event, "event"));

	if (!name) {
		hunt->status = -ENOMEM;
	} else if (strcmp(name, "attached") == 0) {
		hunt->caught_up = end_of(hunt, json_object_get(event, "process"));
		hunt->attached = true;
	} else if (strcmp(name, "gap") == 0) {
		skip_gap(hunt, event);
	}
	json_decref(event);
	coop_tool_wake(hunt->call);
}

static void on_done(void *context, int status, const char *json, const struct coop_error *error)
{
	struct hunt *hunt = context;

	(void)json;
	hunt->over = true;
	if (status < 0 && hunt->status == 0) {
		hunt->status = status;
		hunt->error = *error;
	}
	if (status == 0)
		feed(hunt, NULL, 0, true);
	coop_tool_wake(hunt->call);
}

static json_t *follow_args(const struct hunt *hunt, const char *id)
{
	if (hunt->combined)
		return json_pack("{s:s, s:s, s:i}", "id", id, "mode", "events", "since", 0);
	return json_pack("{s:s, s:s, s:[s], s:{s:I}}", "id", id, "mode", "bytes", "streams",
			 hunt->source, "from", hunt->source, (json_int_t)hunt->from);
}

static bool is_decided(const struct hunt *hunt)
{
	return hunt->match.found || hunt->over || hunt->status < 0;
}

/* Until it is found, ended, or late. What has been written already is looked at in any case. */
static int wait_for_it(struct coop_tool_call *call, struct hunt *hunt)
{
	int64_t until = coop_tool_until(call, coop_arg_int(call->args, "timeout_ms", -1));
	int64_t bound = coop_tool_until(call, -1);

	while (!is_decided(hunt)) {
		bool there = hunt->attached && hunt->position >= hunt->caught_up;
		int64_t end = there ? until : bound, now = coop_tool_now(), quiet = now + SETTLE_MS;
		bool late = end >= 0 && end <= now, settles = hunt->fresh && there;
		if (settles && (end < 0 || end > quiet))
			end = quiet;
		int r = late ? -ETIME : coop_tool_pause(call, end);
		if (r == -ECANCELED)
			return r;
		if (r == -ETIME && hunt->fresh) {
			hunt->fresh = false;
			peek(hunt);
		}
		if (late)
			break;
	}
	return 0;
}

static int search_failed(struct coop_tool_call *call, const struct hunt *hunt)
{
	if (hunt->status == -ENOMEM)
		return coop_tool_no_memory(call);
	if (hunt->status == -ERANGE)
		return coop_tool_fail(call, "invalid_input", "pattern", "%s", hunt->reason);
	call->error = hunt->error;
	return hunt->status;
}

/* Where a next search should begin: what could be the start of a match is looked at again. */
static uint64_t next_offset(const struct hunt *hunt, size_t pattern_size, bool regex)
{
	uint64_t keep = regex ? COOP_PATTERN_SPAN : pattern_size - 1;
	uint64_t first = hunt->base > hunt->from ? hunt->base : hunt->from;

	if (hunt->match.found)
		return hunt->base + hunt->match.groups[0].end;
	if (hunt->over)
		return hunt->position > hunt->from ? hunt->position : hunt->from;
	return hunt->position > first + keep ? hunt->position - keep : first;
}

static void set_match(struct coop_tool_call *call, const struct hunt *hunt)
{
	size_t size = 0;
	const char *text =
		hunt->match.found ? coop_search_group(hunt->search, &hunt->match, 0, &size) : NULL;
	uint64_t start = hunt->base + hunt->match.groups[0].start;
	uint64_t end = hunt->base + hunt->match.groups[0].end;

	coop_tool_set(call, "match", text ? coop_tool_text(text, size) : json_null());
	coop_tool_set(call, "match_start", text ? json_integer((json_int_t)start) : json_null());
	coop_tool_set(call, "match_end", text ? json_integer((json_int_t)end) : json_null());
}

/* What became of the command, if it has ended. */
static int set_result(struct coop_tool_call *call, const char *id)
{
	struct coop_harn_show show = coop_harn_show(call);
	struct coop_tool_answer answer;
	int r = coop_harn_wait(call, id, 0, &show, &answer);

	if (r < 0)
		return r;
	const json_t *record = json_object_get(answer.json, "process");
	coop_tool_set(call, "handle_id", json_incref(json_object_get(record, "id")));
	coop_tool_set(call, "result",
		      coop_tool_is_over(record) ? coop_harn_result(record, &answer, &show)
						: json_null());
	coop_tool_answer_clear(&answer);
	return 0;
}

static int tell(struct coop_tool_call *call, struct hunt *hunt, const char *id)
{
	size_t size = json_string_length(json_object_get(call->args, "pattern"));
	uint64_t next = next_offset(hunt, size, coop_arg_bool(call->args, "regex", false));
	const char *status = hunt->match.found ? "matched" : hunt->over ? "exited" : "timed_out";

	coop_tool_set(call, "status", json_string(status));
	set_match(call, hunt);
	coop_tool_set(call, "source", json_string(hunt->source));
	coop_tool_set(call, "next_offset", json_integer((json_int_t)next));
	coop_tool_set(call, "bytes_dropped", json_integer((json_int_t)hunt->dropped));
	if (!hunt->match.found)
		coop_tool_set(call, "hint",
			      hunt->over
				      ? json_string("It ended without writing that: see result.")
				      : json_sprintf("It has not come yet, and the command runs: "
						     "call again with from_offset %llu, or look "
						     "with read_command_output.",
						     (unsigned long long)next));
	call->failed = !hunt->match.found;
	return set_result(call, id);
}

static int compile(struct coop_tool_call *call, struct hunt *hunt)
{
	const json_t *pattern = coop_arg(call->args, "pattern");
	size_t size = json_string_length(pattern);
	int r = -EINVAL;

	if (!size || size > COOP_PATTERN_TEXT_MAX)
		(void)snprintf(hunt->reason, sizeof hunt->reason, "pattern must have 1 to %u bytes",
			       COOP_PATTERN_TEXT_MAX);
	else
		r = coop_pattern_new(json_string_value(pattern), size,
				     coop_arg_bool(call->args, "regex", false), &hunt->pattern,
				     hunt->reason);
	if (r == -EINVAL)
		return coop_tool_fail(call, "invalid_input", "pattern", "%s", hunt->reason);
	if (r == 0)
		hunt->search = coop_search_new(hunt->pattern);
	return hunt->search ? 0 : coop_tool_no_memory(call);
}

static int hunt_down(struct coop_tool_call *call, struct hunt *hunt)
{
	struct coop_tool_listener listener = {on_data, on_event, on_done, hunt};
	const char *id = coop_arg_string(call->args, "handle_id", "");
	struct coop_tool_watch *watch = NULL;
	int r = compile(call, hunt);

	if (r == 0)
		r = coop_tool_open(call, "follow", follow_args(hunt, id), &listener, &watch);
	if (r == 0)
		r = wait_for_it(call, hunt);
	coop_tool_close(watch);
	if (r < 0)
		return r;
	return hunt->status < 0 ? search_failed(call, hunt) : tell(call, hunt, id);
}

static int wait_output(struct coop_tool_call *call)
{
	const char *source = coop_arg_string(call->args, "source", "combined");
	uint64_t from = (uint64_t)coop_arg_int(call->args, "from_offset", 0);
	bool combined = strcmp(source, "combined") == 0;
	struct hunt hunt = {
		.call = call,
		.source = source,
		.combined = combined,
		.from = from,
		.base = from,
		.position = combined ? 0 : from,
	};
	int r = hunt_down(call, &hunt);

	coop_search_free(hunt.search);
	coop_pattern_free(hunt.pattern);
	return r;
}

static const struct coop_field input[] = {
	IN_STRING_NEEDED("handle_id", 512, NULL),
	IN_STRING_NEEDED("pattern", COOP_PATTERN_TEXT_MAX, "what to wait for"),
	IN_BOOL("regex", "pattern is a regular expression (false: plain text)"),
	IN_ENUM("source", coop_harn_sources, "combined (default): all in order of arrival"),
	IN_INT("from_offset", 0, COOP_JSON_INT_MAX,
	       "where to begin (0); next_offset of an earlier call"),
	IN_INT("timeout_ms", 0, TOOL_MS_MAX, "0: what has come already; default: until its end"),
	FIELDS_END,
};

static const struct coop_field output[] = {
	OUT_STRING("handle_id"),
	OUT_STRING("status"),
	OUT_STRING_NULL("match"),
	OUT_INT_NULL("match_start"),
	OUT_INT_NULL("match_end"),
	OUT_INT("next_offset"),
	OUT_INT("bytes_dropped"),
	OUT_STRING("source"),
	{.name = "result", .type = COOP_FIELD_OBJECT, .nullable = true},
	OUT_STRING("hint"),
	FIELDS_END,
};

const struct coop_tool coop_tool_wait_command_output = {
	.name = "wait_command_output",
	.title = "Wait for output",
	.description =
		"Waits until a command writes something (\"listening on\"), also in what it wrote "
		"before. "
		"status: matched, exited (it ended without; see result) or timed_out (it runs on).",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_HARN,
	.input = input,
	.output = output,
	.waits = true,
	.run = wait_output,
};
