#include "doors/tools/native/condition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "doors/tools/core/call.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/record.h"
#include "interface/schema.h"

static const char *const names[] = {"exit", "output", "silent_ms", "bytes", "port"};
#define KINDS (sizeof names / sizeof names[0])

/* Of what was found, in a result. */
#define MATCH_MAX 2000
/* A program that prints nothing for so long waits, as behind a prompt. */
#define PONDER_MS 50

const char *coop_condition_name(enum coop_condition_kind kind)
{
	return names[kind];
}

int coop_condition_kind(const json_t *item)
{
	int kind = -1, count = 0;

	for (size_t i = 0; i < KINDS; i++) {
		const json_t *value = coop_arg(item, names[i]);
		/* "exit": false is what models write to leave it out. */
		if (value && !json_is_false(value)) {
			kind = (int)i;
			count++;
		}
	}
	return count == 1 ? kind : -1;
}

static void on_done(void *context, int status, const char *json, const struct coop_error *error)
{
	struct coop_condition *one = context;

	if (status < 0) {
		one->status = status;
		one->call->error = *error;
	} else if (one->kind == COOP_CONDITION_EXIT) {
		one->held = true;
	} else if (one->kind == COOP_CONDITION_PORT) {
		json_t *result = json_loads(json, 0, NULL);
		one->held = json_is_true(json_object_get(result, "listening"));
		json_decref(result);
	}
	one->dead = status == 0 && !one->held;
	coop_tool_wake(one->call);
}

static void on_data(void *context, const struct coop_chunk *chunk)
{
	struct coop_condition *one = context;

	if (one->held || one->status < 0)
		return;
	if (one->kind == COOP_CONDITION_SILENT) {
		one->last_output = coop_tool_now();
		return;
	}
	one->held = chunk->offset + chunk->size >= (uint64_t)one->amount;
	if (one->held)
		coop_tool_wake(one->call);
}

int64_t coop_condition_due(const struct coop_condition *condition)
{
	if (condition->kind == COOP_CONDITION_OUTPUT)
		return coop_hunt_due(&condition->hunt);
	if (condition->kind != COOP_CONDITION_SILENT || condition->held || condition->dead ||
	    condition->status < 0)
		return -1;
	return condition->last_output + condition->amount;
}

void coop_condition_look(struct coop_condition *condition, bool last)
{
	struct coop_hunt *hunt = &condition->hunt;
	const int64_t due = coop_condition_due(condition);

	if (condition->kind == COOP_CONDITION_SILENT && due >= 0 && coop_tool_now() >= due)
		condition->held = true;
	if (condition->kind != COOP_CONDITION_OUTPUT)
		return;
	coop_hunt_look(hunt, last);
	condition->status = hunt->status < 0 ? hunt->status : hunt->tap.status;
	condition->held = condition->status == 0 && hunt->match.found;
	condition->dead = condition->status == 0 && hunt->tap.over && !condition->held;
	condition->looked = condition->looked || hunt->tap.next >= condition->present;
}

/* Bytes from the stream's present end on; or nothing of it but that it speaks. */
static json_t *follow_args(const struct coop_condition *one)
{
	if (one->kind == COOP_CONDITION_SILENT)
		return json_pack("{s:s, s:s, s:i}", "id", one->id, "until", "eof", "tail", 0);
	return json_pack("{s:s, s:s, s:{s:I}, s:[s]}", "id", one->id, "until", "eof", "from",
			 one->stream, (json_int_t)one->present, "streams", one->stream);
}

static int hunt_for(struct coop_tool_call *call, struct coop_condition *one, const json_t *item)
{
	const char *text = coop_arg_string(item, "output", "");

	/* What is searched for must not be overwritten before it is looked at. Agents above see the
	 * process, but hold nothing back. */
	one->hunt = (struct coop_hunt){
		.tap = {.stream = one->stream,
			.until_eof = true,
			.hold = coop_tool_is_own(one->record)},
		.from = (uint64_t)coop_arg_int(item, "from_offset", 0),
		.plain = true,
		.settle_ms = PONDER_MS,
	};
	one->looked = coop_tool_number(coop_tool_stream(one->record, one->stream), "start") >=
			      one->present ||
		      one->hunt.from >= one->present;
	int r = coop_hunt_begin(&one->hunt, call, one->id, text, strlen(text),
				coop_arg_bool(item, "regex", false));
	return r == -EINVAL ? coop_tool_fail(call, "invalid_input", "conditions", "output: %s",
					     one->hunt.reason)
			    : r;
}

static int open_watch(struct coop_tool_call *call, struct coop_condition *one)
{
	struct coop_tool_listener listener = {on_data, NULL, on_done, one};
	int64_t patience = coop_tool_patience(call, coop_arg_int(call->args, "timeout_ms", 30000));

	if (one->kind == COOP_CONDITION_EXIT) {
		one->looked = !coop_tool_is_over(one->record);
		return coop_tool_open(call, "wait",
				      json_pack("{s:s, s:b}", "id", one->id, "tidy", 1), &listener,
				      &one->watch);
	}
	if (one->kind == COOP_CONDITION_PORT) {
		/* With no time at all the keeper answers with its first look. */
		one->looked = patience != 0;
		json_t *args =
			json_pack("{s:s, s:I}", "id", one->id, "port", (json_int_t)one->amount);
		if (args && patience == 0)
			(void)json_object_set_new(args, "timeout_ms", json_integer(0));
		return coop_tool_open(call, "wait_port", args, &listener, &one->watch);
	}
	return coop_tool_open(call, "follow", follow_args(one), &listener, &one->watch);
}

/* What can be said without asking. */
static void look_at_record(struct coop_condition *one)
{
	one->present = coop_tool_stream_end(one->record, one->stream);
	one->last_output = coop_tool_now();
	one->looked = true;
	if (one->kind == COOP_CONDITION_BYTES)
		one->held = one->present >= (uint64_t)one->amount;
	/* What has ended prints nothing, but it is not silent: nobody waits for that. */
	if (one->kind == COOP_CONDITION_SILENT)
		one->dead = coop_tool_is_over(one->record);
}

int coop_condition_begin(struct coop_tool_call *call, struct coop_condition *ret,
			 const json_t *item)
{
	ret->call = call;
	ret->kind = (enum coop_condition_kind)coop_condition_kind(item);
	int r = coop_tool_id_of(call, "conditions", coop_arg(item, "pid"), &ret->id);
	if (r == 0)
		r = coop_tool_record(call, ret->id, &ret->record);
	if (r < 0)
		return r;
	ret->stream = coop_arg_string(item, "stream",
				      coop_tool_streams[coop_tool_main_stream(ret->record)]);
	ret->amount = coop_arg_int(item, names[ret->kind], 0);
	look_at_record(ret);
	if (ret->kind == COOP_CONDITION_OUTPUT)
		return hunt_for(call, ret, item);
	return ret->held || ret->dead ? 0 : open_watch(call, ret);
}

void coop_condition_end(struct coop_condition *condition)
{
	coop_tool_close(condition->watch);
	coop_hunt_end(&condition->hunt);
	json_decref(condition->record);
	free(condition->id);
}

int coop_condition_fail(struct coop_tool_call *call, const struct coop_condition *condition,
			size_t index)
{
	if (condition->status == -ERANGE)
		return coop_tool_fail(call, "invalid_input", "conditions",
				      "conditions[%zu].output: %s", index, condition->hunt.reason);
	if (condition->status == -ENOMEM)
		return coop_tool_no_memory(call);
	return condition->status;
}

json_t *coop_condition_offset(const struct coop_condition *condition, const json_t *record)
{
	return coop_tool_member(coop_tool_stream(record, condition->stream), "end");
}

void coop_condition_result(struct coop_tool_call *call, const struct coop_condition *condition,
			   const json_t *record)
{
	if (condition->kind != COOP_CONDITION_OUTPUT) {
		coop_tool_set(call, "next_offset", coop_condition_offset(condition, record));
		if (condition->kind == COOP_CONDITION_EXIT)
			coop_tool_set(call, "status", coop_tool_status(record));
		return;
	}
	const struct coop_hunt_find find = coop_hunt_found(&condition->hunt);
	coop_tool_set(call, "match",
		      coop_tool_text(find.text, find.size > MATCH_MAX ? MATCH_MAX : find.size));
	coop_tool_set(call, "match_start", json_integer((json_int_t)find.start));
	coop_tool_set(call, "next_offset", json_integer((json_int_t)find.end));
}
