/* wait_command_output: waits until a text or a regular expression comes (B-042, B-043). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doors/tools/core/call.h"
#include "doors/tools/core/hunt.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/core/tap.h"
#include "doors/tools/harn/harn_output.h"
#include "doors/tools/harn/harn_result.h"
#include "interface/schema.h"

/* A match that more bytes could make longer is taken when there have been none for so long. */
#define SETTLE_MS 10

/* Until it is found, ended, or late. What has been written already is looked at in any case. */
static int wait_for_it(struct coop_tool_call *call, struct coop_hunt *hunt)
{
	int64_t until = coop_tool_until(call, coop_arg_int(call->args, "timeout_ms", -1));
	int64_t bound = coop_tool_until(call, -1);

	for (;;) {
		int64_t end = coop_tap_is_current(&hunt->tap) ? until : bound;
		bool late = end >= 0 && end <= coop_tool_now();
		coop_hunt_look(hunt, late);
		if (late || coop_hunt_is_decided(hunt))
			return 0;
		int64_t due = coop_hunt_due(hunt);
		int r = coop_tool_pause(call, due >= 0 && (end < 0 || due < end) ? due : end);
		if (r == -ECANCELED)
			return r;
	}
}

static int search_failed(struct coop_tool_call *call, const struct coop_hunt *hunt)
{
	if (hunt->status == -ENOMEM)
		return coop_tool_no_memory(call);
	if (hunt->status == -ERANGE)
		return coop_tool_fail(call, "invalid_input", "pattern", "%s", hunt->reason);
	return hunt->tap.status;
}

/* Where a next search should begin: what could be the start of a match is looked at again. */
static uint64_t next_offset(const struct coop_hunt *hunt, size_t pattern_size, bool regex)
{
	uint64_t keep = regex ? COOP_PATTERN_SPAN : pattern_size - 1, at = hunt->tap.next;
	uint64_t first = hunt->base > hunt->from ? hunt->base : hunt->from;

	if (hunt->match.found)
		return coop_hunt_found(hunt).end;
	if (hunt->tap.over)
		return at > hunt->from ? at : hunt->from;
	return at > first + keep ? at - keep : first;
}

static void set_match(struct coop_tool_call *call, const struct coop_hunt *hunt)
{
	struct coop_hunt_find find = {0};

	if (hunt->match.found)
		find = coop_hunt_found(hunt);
	coop_tool_set(call, "match",
		      find.text ? coop_tool_text(find.text, find.size) : json_null());
	coop_tool_set(call, "match_start",
		      find.text ? json_integer((json_int_t)find.start) : json_null());
	coop_tool_set(call, "match_end",
		      find.text ? json_integer((json_int_t)find.end) : json_null());
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

static int tell(struct coop_tool_call *call, const struct coop_hunt *hunt, const char *id)
{
	size_t size = json_string_length(json_object_get(call->args, "pattern"));
	uint64_t next = next_offset(hunt, size, coop_arg_bool(call->args, "regex", false));
	const char *status = hunt->match.found ? "matched"
			     : hunt->tap.over  ? "exited"
					       : "timed_out";

	coop_tool_set(call, "status", json_string(status));
	set_match(call, hunt);
	coop_tool_set(call, "source", json_string(hunt->tap.stream));
	coop_tool_set(call, "next_offset", json_integer((json_int_t)next));
	coop_tool_set(call, "bytes_dropped", json_integer((json_int_t)hunt->dropped));
	if (!hunt->match.found)
		coop_tool_set(call, "hint",
			      hunt->tap.over
				      ? json_string("It ended without writing that: see result.")
				      : json_sprintf("It has not come yet, and the command runs: "
						     "call again with from_offset %llu, or look "
						     "with read_command_output.",
						     (unsigned long long)next));
	call->failed = !hunt->match.found;
	return set_result(call, id);
}

static int begin(struct coop_tool_call *call, struct coop_hunt *hunt, const char *id)
{
	const json_t *pattern = coop_arg(call->args, "pattern");
	size_t size = json_string_length(pattern);
	int r = -EINVAL;

	if (!size || size > COOP_PATTERN_TEXT_MAX)
		(void)snprintf(hunt->reason, sizeof hunt->reason, "pattern must have 1 to %u bytes",
			       COOP_PATTERN_TEXT_MAX);
	else
		r = coop_hunt_begin(hunt, call, id, json_string_value(pattern), size,
				    coop_arg_bool(call->args, "regex", false));
	return r == -EINVAL ? coop_tool_fail(call, "invalid_input", "pattern", "%s", hunt->reason)
			    : r;
}

static int wait_output(struct coop_tool_call *call)
{
	const char *id = coop_arg_string(call->args, "handle_id", "");
	struct coop_hunt hunt = {
		.tap.stream = coop_arg_string(call->args, "source", COOP_TAP_COMBINED),
		.from = (uint64_t)coop_arg_int(call->args, "from_offset", 0),
		.settle_ms = SETTLE_MS,
	};
	int r = begin(call, &hunt, id);

	if (r == 0)
		r = wait_for_it(call, &hunt);
	coop_tap_close(&hunt.tap);
	if (r == 0)
		r = hunt.status < 0 || hunt.tap.status < 0 ? search_failed(call, &hunt)
							   : tell(call, &hunt, id);
	coop_hunt_end(&hunt);
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
