/* Commands in the background: wait_command, list_handles, cancel_handle, next_completions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/text.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/read.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/harn/harn_result.h"
#include "interface/schema.h"

/* Of a command in a list. */
#define COMMAND_SHOWN 300u
/* Of each stream of a completion at least, however many there are. */
#define COMPLETION_SHOWN 1000u

static int wait_command(struct coop_tool_call *call)
{
	const char *id = coop_arg_string(call->args, "handle_id", "");
	struct coop_harn_show show = coop_harn_show(call);
	struct coop_tool_answer answer;
	int r = coop_harn_wait(call, id, coop_arg_int(call->args, "timeout_ms", 0), &show, &answer);

	if (r < 0)
		return r;
	const json_t *record = json_object_get(answer.json, "process");
	r = coop_harn_answer(call, coop_harn_result(record, &answer, &show));
	/* The wait's own limit; the command's says status. */
	if (r == 0 && !coop_tool_is_over(record))
		coop_tool_set(call, "timed_out", json_true());
	coop_tool_answer_clear(&answer);
	return r;
}

static const char *session_of(const struct coop_tool_call *call)
{
	return call->setup->session ? call->setup->session : "default";
}

static json_t *handle_row(const json_t *record, const char *session)
{
	const json_t *command = json_object_get(record, "command");
	size_t size = json_string_length(command);
	struct coop_text text;

	if (coop_text_view(json_string_value(command), size < COMMAND_SHOWN ? size : COMMAND_SHOWN,
			   true, &text) < 0)
		return NULL;
	json_t *row =
		json_pack("{s:O, s:s, s:O, s:s%, s:O}", "handle_id", json_object_get(record, "id"),
			  "session_id", session, "lease", json_object_get(record, "lease"),
			  "command_or_op_descriptor", text.text, text.size, "started_at",
			  json_object_get(record, "started_at"));
	coop_text_clear(&text);
	return row;
}

struct listing {
	struct coop_tool_call *call;
	json_t *rows;
};

static int add_handle(void *user, const json_t *record)
{
	struct listing *listing = user;

	if (coop_tool_is_over(record) || !json_is_true(json_object_get(record, "completion")))
		return 0;
	return json_array_append_new(listing->rows, handle_row(record, session_of(listing->call))) <
			       0
		       ? coop_tool_no_memory(listing->call)
		       : 0;
}

static int list_handles(struct coop_tool_call *call)
{
	struct listing listing = {.call = call, .rows = json_array()};
	int r = coop_tool_each_record(call,
				      json_pack("{s:s, s:s, s:b}", "session", session_of(call),
						"agent", "self", "brief", 1),
				      add_handle, &listing);

	coop_tool_set(call, "handles", listing.rows);
	return r;
}

static int cancel_handle(struct coop_tool_call *call)
{
	const char *id = coop_arg_string(call->args, "handle_id", "");
	struct coop_tool_answer answer;
	int r = coop_tool_ask(call, "cancel", json_pack("{s:[s]}", "ids", id), &answer);

	if (r < 0)
		return r;
	bool cancelled = json_array_size(json_object_get(answer.json, "cancelled")) > 0;
	coop_tool_set(call, "handle_id", json_string(id));
	coop_tool_set(call, "cancelled", json_boolean(cancelled));
	coop_tool_answer_clear(&answer);
	return 0;
}

/* One completion; its output is added where it can still be had. */
static int add_completion(struct coop_tool_call *call, const json_t *record,
			  const struct coop_harn_show *show, json_t *list)
{
	const char *id = json_string_value(json_object_get(record, "id"));
	struct coop_tool_answer answer = {0};
	int r = coop_harn_wait(call, id, 0, show, &answer);

	if (r < 0 && r != -EREMOTEIO)
		return r;
	if (r == 0)
		record = json_object_get(answer.json, "process");
	json_t *result = coop_harn_result(record, r == 0 ? &answer : NULL, show);
	if (json_object_set_new(result, "kind", json_string("tool_result")) < 0 ||
	    json_array_append(list, result) < 0)
		r = coop_tool_no_memory(call);
	else
		r = 0;
	json_decref(result);
	coop_tool_answer_clear(&answer);
	return r;
}

static json_t *note_of(const json_t *note)
{
	json_t *copy = json_copy((json_t *)(uintptr_t)note);

	if (json_object_set(copy, "handle_id", json_object_get(note, "id")) < 0 ||
	    json_object_set_new(copy, "kind", json_string("progress")) < 0) {
		json_decref(copy);
		return NULL;
	}
	(void)json_object_del(copy, "id");
	return copy;
}

static int ask_queue(struct coop_tool_call *call, int64_t timeout_ms, struct coop_tool_answer *ret)
{
	json_t *args = json_pack("{s:I, s:I, s:s}", "limit",
				 (json_int_t)coop_arg_int(call->args, "limit", 10), "timeout_ms",
				 (json_int_t)timeout_ms, "session", session_of(call));

	return coop_tool_ask(call, "completions", args, ret);
}

/* The bound is one result's, not one of each; but none is left with next to nothing. */
static size_t share_of(size_t most, size_t count)
{
	size_t least = most < COMPLETION_SHOWN ? most : COMPLETION_SHOWN;

	return most / count > least ? most / count : least;
}

static int tell_completions(struct coop_tool_call *call, const json_t *answer)
{
	const json_t *processes = json_object_get(answer, "processes"), *item;
	struct coop_harn_show show = coop_harn_show(call);
	size_t index, count = json_array_size(processes);
	json_t *list = json_array(), *notes = json_array();
	int r = list && notes ? 0 : coop_tool_no_memory(call);

	for (int i = COOP_STDOUT; count && i <= COOP_PTY; i++)
		show.most[i] = share_of(show.most[i], count);
	json_array_foreach(processes, index, item) r =
		r < 0 ? r : add_completion(call, item, &show, list);
	json_array_foreach(json_object_get(answer, "notes"), index, item)
	{
		if (r == 0 && json_array_append_new(notes, note_of(item)) < 0)
			r = coop_tool_no_memory(call);
	}
	if (r == 0) {
		coop_tool_set(call, "completions", json_incref(list));
		coop_tool_set(call, "notes", json_incref(notes));
		coop_tool_set(call, "more", json_incref(json_object_get(answer, "more")));
	}
	json_decref(list);
	json_decref(notes);
	return r;
}

static int next_completions(struct coop_tool_call *call)
{
	int64_t limit = coop_tool_patience(call, coop_arg_int(call->args, "timeout_ms", 0));
	struct coop_tool_answer answer;
	int r = ask_queue(call, limit, &answer);

	if (r < 0)
		return r;
	r = tell_completions(call, answer.json);
	if (r == 0 && !json_array_size(json_object_get(call->result, "completions")))
		coop_tool_set(
			call, "hint",
			json_string("Nothing has ended. list_handles shows what still runs."));
	coop_tool_answer_clear(&answer);
	return r;
}

static const struct coop_field none[] = {FIELDS_END};
static const struct coop_field handle_input[] = {
	IN_STRING_NEEDED("handle_id", 512, NULL),
	FIELDS_END,
};
static const struct coop_field wait_input[] = {
	IN_STRING_NEEDED("handle_id", 512, NULL),
	ARG_TIMEOUT("answer then at the latest (0: at once)"),
	FIELDS_END,
};
static const struct coop_field next_input[] = {
	ARG_TIMEOUT("wait for one so long (0: answer at once)"),
	IN_INT("limit", 1, 100, "at most so many (10)"),
	FIELDS_END,
};

static const struct coop_field handle_fields[] = {
	OUT_STRING("handle_id"),  OUT_STRING("session_id"),
	OUT_STRING("lease"),      OUT_STRING("command_or_op_descriptor"),
	OUT_STRING("started_at"), FIELDS_END,
};
static const struct coop_field list_output[] = {
	{.name = "handles", .type = COOP_FIELD_OBJECTS, .fields = handle_fields},
	FIELDS_END,
};
static const struct coop_field cancel_output[] = {
	OUT_STRING("handle_id"),
	OUT_BOOL("cancelled"),
	FIELDS_END,
};
/* Those of the foreground's result, of which these are named. */
static const struct coop_field completion_fields[] = {
	OUT_STRING("kind"),
	OUT_STRING("handle_id"),
	OUT_STRING("status"),
	OUT_INT_NULL("exit_code"),
	OUT_STRING_NULL("stdout"),
	OUT_STRING_NULL("stderr"),
	FIELDS_END,
};
static const struct coop_field note_fields[] = {
	OUT_STRING("kind"),    OUT_STRING("handle_id"), OUT_OBJECT("bytes"), OUT_INT("new_bytes"),
	OUT_INT("silence_ms"), OUT_STRING("at"),        FIELDS_END,
};
static const struct coop_field next_output[] = {
	{.name = "completions", .type = COOP_FIELD_OBJECTS, .fields = completion_fields},
	{.name = "notes", .type = COOP_FIELD_OBJECTS, .fields = note_fields},
	OUT_BOOL("more"),
	OUT_STRING("hint"),
	FIELDS_END,
};

const struct coop_tool coop_tool_wait_command = {
	.name = "wait_command",
	.title = "Wait for a command",
	.description = "Waits for the end of a command that runs in the background and gives its "
		       "result; status running "
		       "means that it has not ended: call again.",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_HARN,
	.input = wait_input,
	.output = coop_fields_harn_result,
	.waits = true,
	.run = wait_command,
};

const struct coop_tool coop_tool_list_handles = {
	.name = "list_handles",
	.title = "List background commands",
	.description = "Commands of this session that run in the background.",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_HARN,
	.input = none,
	.output = list_output,
	.run = list_handles,
};

const struct coop_tool coop_tool_cancel_handle = {
	.name = "cancel_handle",
	.title = "Cancel a command",
	.description = "Ends a command that runs in the background; next_completions will not tell "
		       "of it. cancelled is "
		       "false if it had ended or is unknown.",
	.kind = COOP_TOOL_END,
	.sets = COOP_TOOLS_HARN,
	.input = handle_input,
	.output = cancel_output,
	.run = cancel_handle,
};

const struct coop_tool coop_tool_next_completions = {
	.name = "next_completions",
	.title = "Results of background commands",
	.description = "Takes the results of commands in the background that have ended, each "
		       "once, and notes on those that "
		       "run.",
	.kind = COOP_TOOL_MOVE,
	.sets = COOP_TOOLS_HARN,
	.input = next_input,
	.output = next_output,
	.waits = true,
	.run = next_completions,
};
