#include "doors/tools/core/condition.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/tools/core/output.h"
#include "doors/tools/core/process_arg.h"
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

/* What is new of the text. A match may begin in what has been looked at. */
static void search_text(struct coop_condition *one, bool last)
{
	size_t size, most = 2 * (size_t)COOP_PATTERN_SPAN;
	const char *text = coop_plain_text(one->plain, &size);
	size_t at = (size_t)(one->seen - one->gone);

	one->status =
		coop_search_feed(one->search, text + at, size - at, last, &one->match, one->reason);
	one->seen += size - at;
	one->held = one->status == 0 && one->match.found;
	if (!one->held && size > most) {
		coop_plain_consume(one->plain, size - most);
		one->gone += size - most;
	}
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
		one->dead = !one->held;
		json_decref(result);
	} else if (one->kind == COOP_CONDITION_OUTPUT && !one->held) {
		/* Its end is one for $ and \b. */
		if (coop_plain_finish(one->plain) == 0)
			search_text(one, true);
		one->dead = !one->held;
	} else {
		one->dead = !one->held;
	}
	coop_tool_wake(one->call);
}

/* Where bytes are missing no match can lie: the search begins behind them. */
static int begin_anew(struct coop_condition *one, uint64_t offset)
{
	if (one->search && offset == one->fed)
		return 0;
	coop_search_free(one->search);
	coop_plain_free(one->plain);
	one->search = coop_search_new(one->pattern);
	one->plain = coop_plain_new(0, offset);
	one->fed = offset;
	one->seen = one->gone = 0;
	return one->search && one->plain ? 0 : -ENOMEM;
}

static void search(struct coop_condition *one, const struct coop_chunk *chunk)
{
	int r = begin_anew(one, chunk->offset);

	if (r == 0)
		r = coop_plain_feed(one->plain, chunk->data, chunk->size);
	one->fed += chunk->size;
	if (r < 0)
		one->status = r;
	else
		search_text(one, false);
	one->ponder_at = coop_tool_now() + PONDER_MS;
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
	const uint64_t end = chunk->offset + chunk->size;
	const bool waited_for = !one->looked || !one->ponder_at;
	one->looked = end >= one->present;
	if (one->kind == COOP_CONDITION_BYTES)
		one->held = end >= (uint64_t)one->amount;
	else
		search(one, chunk);
	if (one->held || one->status < 0 || waited_for)
		coop_tool_wake(one->call);
}

int64_t coop_condition_due(const struct coop_condition *condition)
{
	if (condition->held || condition->dead || condition->status < 0)
		return -1;
	if (condition->kind == COOP_CONDITION_SILENT)
		return condition->last_output + condition->amount;
	return condition->ponder_at ? condition->ponder_at : -1;
}

void coop_condition_look(struct coop_condition *condition, bool last)
{
	struct coop_condition *one = condition;
	const int64_t due = coop_condition_due(one);

	if (due < 0 || (coop_tool_now() < due && !(last && one->kind == COOP_CONDITION_OUTPUT)))
		return;
	if (one->kind == COOP_CONDITION_SILENT) {
		one->held = true;
		return;
	}
	one->ponder_at = 0;
	const int r = coop_search_peek(one->search, &one->match, one->reason);
	one->status = r < 0 ? r : one->status;
	one->held = r == 0 && one->match.found;
}

static json_t *follow_args(const struct coop_condition *one)
{
	json_t *args = json_pack("{s:s, s:s}", "id", one->id, "until", "eof");
	uint64_t from = one->kind == COOP_CONDITION_BYTES ? one->present : one->from;

	if (!args)
		return NULL;
	if (one->kind == COOP_CONDITION_SILENT)
		(void)json_object_set_new(args, "tail", json_integer(0));
	else
		(void)json_object_set_new(args, "from",
					  json_pack("{s:I}", one->stream, (json_int_t)from));
	if (one->kind != COOP_CONDITION_SILENT)
		(void)json_object_set_new(args, "streams", json_pack("[s]", one->stream));
	/* What is searched for must not be overwritten before it is looked at. Agents above see the
	 * process, but hold nothing back. */
	const char *agent = json_string_value(json_object_get(one->record, "agent"));
	if (one->kind == COOP_CONDITION_OUTPUT && agent && strcmp(agent, "self") == 0)
		(void)json_object_set_new(args, "hold", json_true());
	return args;
}

static int compile(struct coop_tool_call *call, struct coop_condition *one, const json_t *item)
{
	const char *text = coop_arg_string(item, "output", "");
	int r = coop_pattern_new(text, strlen(text), coop_arg_bool(item, "regex", false),
				 &one->pattern, one->reason);

	if (r == -EINVAL)
		return coop_tool_fail(call, "invalid_input", "conditions", "output: %s",
				      one->reason);
	if (r == 0)
		r = begin_anew(one, one->from);
	return r < 0 ? coop_tool_no_memory(call) : 0;
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
	const json_t *state = json_object_get(json_object_get(one->record, "streams"), one->stream);
	uint64_t start = (uint64_t)json_integer_value(json_object_get(state, "start"));

	one->present = (uint64_t)json_integer_value(json_object_get(state, "end"));
	one->last_output = coop_tool_now();
	one->looked = one->kind != COOP_CONDITION_OUTPUT || start >= one->present ||
		      one->from >= one->present;
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
				      coop_tool_stream_name(coop_tool_main_stream(ret->record)));
	ret->amount = coop_arg_int(item, names[ret->kind], 0);
	ret->from = (uint64_t)coop_arg_int(item, "from_offset", 0);
	look_at_record(ret);
	if (ret->kind == COOP_CONDITION_OUTPUT && (r = compile(call, ret, item)) < 0)
		return r;
	return ret->held || ret->dead ? 0 : open_watch(call, ret);
}

void coop_condition_end(struct coop_condition *condition)
{
	coop_tool_close(condition->watch);
	coop_search_free(condition->search);
	coop_plain_free(condition->plain);
	coop_pattern_free(condition->pattern);
	json_decref(condition->record);
	free(condition->id);
}

int coop_condition_fail(struct coop_tool_call *call, const struct coop_condition *condition,
			size_t index)
{
	if (condition->status == -ERANGE)
		return coop_tool_fail(call, "invalid_input", "conditions",
				      "conditions[%zu].output: %s", index, condition->reason);
	if (condition->status == -ENOMEM)
		return coop_tool_no_memory(call);
	return condition->status;
}

json_t *coop_condition_offset(const struct coop_condition *condition, const json_t *record)
{
	const json_t *state =
		json_object_get(json_object_get(record, "streams"), condition->stream);
	json_t *end = json_object_get(state, "end");

	return end ? json_incref(end) : json_null();
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
	size_t size;
	const char *text = coop_search_group(condition->search, &condition->match, 0, &size);
	size_t start = (size_t)(condition->match.groups[0].start - condition->gone);
	uint64_t first = coop_plain_offset(condition->plain, start), behind = first;

	/* Right behind its last byte: escape codes that follow are not part of it. */
	if (size)
		behind = coop_plain_offset(condition->plain, start + size - 1) + 1;
	coop_tool_set(call, "match", coop_tool_text(text, size > MATCH_MAX ? MATCH_MAX : size));
	coop_tool_set(call, "match_start", json_integer((json_int_t)first));
	coop_tool_set(call, "next_offset", json_integer((json_int_t)behind));
}
