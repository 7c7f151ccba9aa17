/* Several steps in a shell as one call. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/shell/expect.h"
#include "doors/tools/shell/shell.h"
#include "interface/schema.h"

#define STEPS_MAX 100

enum step_type { STEP_SEND, STEP_EXPECT, STEP_CASES, STEP_SIGNAL };
static const char *const step_types[] = {"send", "expect", "expect_cases", "signal", NULL};
/* The argument that a type needs, and of which the others know nothing. */
static const char *const step_needs[] = {"input", "pattern", "cases", "signal"};

struct step {
	enum step_type type;
	const json_t *args;
	struct coop_expect_case_list list; /* of the two that expect */
	int64_t timeout_ms;
};

struct batch {
	struct step *steps;
	size_t count;
};

static const struct coop_field step_fields[] = {
	{.name = "type", .type = COOP_FIELD_ENUM, .required = true, .choices = step_types},
	IN_STRING("input", COOP_WRITE_STDIN_MAX, NULL),
	IN_STRING("pattern", COOP_PATTERN_TEXT_MAX, NULL),
	/* Written out once is enough: a case is what it is in shell_expect_cases. */
	{.name = "cases", .type = COOP_FIELD_OBJECTS, .doc = "as of shell_expect_cases"},
	IN_SIGNAL(NULL),
	IN_INT("timeout_secs", 0, COOP_SHELL_SECS_MAX, NULL),
	FIELDS_END,
};
static const struct coop_field batch_input[] = {
	IN_SESSION,
	{.name = "steps",
	 .type = COOP_FIELD_OBJECTS,
	 .required = true,
	 .max = STEPS_MAX,
	 .fields = step_fields},
	IN_INT("timeout_secs", 0, COOP_SHELL_SECS_MAX, "of each step; default 30"),
	FIELDS_END,
};
static const struct coop_field batch_output[] = {
	{.name = "steps", .type = COOP_FIELD_OBJECTS},
	OUT_INT("completed"),
	OUT_INT("total"),
	FIELDS_END,
};

static void clear(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		coop_expect_clear(&batch->steps[i].list);
	free(batch->steps);
}

/* What belongs to another type is a mistake that should not be carried out half. */
static int check_members(struct coop_tool_call *call, const struct step *step, size_t index)
{
	for (size_t i = 0; step_types[i]; i++) {
		bool given = coop_arg(step->args, step_needs[i]) != NULL;
		bool wanted = i == step->type;
		if (given && !wanted)
			return coop_tool_fail(call, "invalid_input", "steps",
					      "steps[%zu] of type %s does not take %s", index,
					      step_types[step->type], step_needs[i]);
		if (wanted && !given && step->type != STEP_SIGNAL)
			return coop_tool_fail(call, "invalid_input", "steps",
					      "steps[%zu] of type %s needs %s", index,
					      step_types[step->type], step_needs[i]);
	}
	return 0;
}

static int prepare_step(struct coop_tool_call *call, const json_t *args, size_t index,
			struct step *step)
{
	char where[64];

	step->args = args;
	step->type = (enum step_type)coop_arg_enum(args, "type", step_types, STEP_SEND);
	step->timeout_ms =
		1000 * coop_arg_int(args, "timeout_secs",
				    coop_arg_int(call->args, "timeout_secs", COOP_SHELL_SECS));
	int r = check_members(call, step, index);
	if (r < 0)
		return r;
	(void)snprintf(where, sizeof where, "steps[%zu].%s", index, step_needs[step->type]);
	if (step->type == STEP_EXPECT)
		return coop_expect_compile_one(call, where, coop_arg(args, "pattern"), &step->list);
	if (step->type == STEP_CASES)
		return coop_expect_compile(call, where, coop_arg(args, "cases"), &step->list);
	return 0;
}

static int prepare(struct coop_tool_call *call, struct batch *batch)
{
	const json_t *list = coop_arg(call->args, "steps");
	size_t count = json_array_size(list);
	int r = coop_tool_check_list(call, "steps", step_fields);

	if (r < 0)
		return r;
	if (count < 1 || count > STEPS_MAX)
		return coop_tool_fail(call, "invalid_input", "steps",
				      "steps must have 1 to %d elements", STEPS_MAX);
	batch->steps = coop_mem_zalloc(count * sizeof *batch->steps);
	if (!batch->steps)
		return coop_tool_no_memory(call);
	for (size_t i = 0; r == 0 && i < count; i++) {
		batch->count = i + 1;
		r = prepare_step(call, json_array_get(list, i), i, &batch->steps[i]);
	}
	return r;
}

/* The results of one step share what one result may have. */
static size_t budget_of(const struct coop_tool_call *call, const struct batch *batch)
{
	return coop_tool_inline(call) / batch->count;
}

static int send(struct coop_tool_call *call, const char *id, const struct step *step)
{
	const json_t *input = coop_arg(step->args, "input");
	size_t size = json_string_length(input), written;
	int r = coop_shell_send(call, id, json_string_value(input), size, &written);

	if (r == 0 && written < size)
		return coop_tool_fail(call, "unavailable", NULL,
				      "the program does not read: %zu of %zu bytes were taken",
				      written, size);
	return r;
}

static int expect(struct coop_tool_call *call, const char *id, const struct step *step,
		  size_t budget, json_t *into)
{
	struct coop_expect_result result;
	int r = coop_expect(call, id, &step->list, step->timeout_ms, budget, &result);

	if (r < 0)
		return r;
	const char *hint = coop_expect_hint(&step->list, &result);
	if (coop_expect_tell(&result, budget, into) < 0 ||
	    (step->type == STEP_CASES && coop_expect_tell_case(&step->list, &result, into) < 0))
		r = coop_tool_no_memory(call);
	if (hint)
		coop_tool_set(call, "hint", json_string(hint));
	if (r == 0 && result.index < 0)
		r = coop_tool_fail(call, "unavailable", NULL, "no match (%s)", result.reason);
	else if (r == 0 && step->list.cases[result.index].tag == COOP_EXPECT_FAIL)
		r = coop_tool_fail(call, "unavailable", NULL, "a case with tag fail matched");
	coop_expect_result_clear(&result);
	return r;
}

static int carry_out(struct coop_tool_call *call, const char *id, const struct step *step,
		     size_t budget, json_t *into)
{
	json_t *sent = NULL;
	int r;

	switch (step->type) {
	case STEP_SEND:
		return send(call, id, step);
	case STEP_SIGNAL:
		r = coop_shell_signal(call, id, coop_arg(step->args, "signal"), &sent);
		json_decref(sent);
		return r;
	case STEP_EXPECT:
	case STEP_CASES:
		break;
	}
	return expect(call, id, step, budget, into);
}

/* Whether the next step has its turn: not after one that failed, and not while a person must
 * act. */
static bool goes_on(const struct step *step, const json_t *told)
{
	const json_t *index = json_object_get(told, "matched_case");

	if (!json_is_true(json_object_get(told, "success")))
		return false;
	return !json_is_integer(index) ||
	       step->list.cases[json_integer_value(index)].tag != COOP_EXPECT_NEEDS_USER;
}

/* Carries out a step and adds how it went. What a step fails by is told in it; only what ends the
 * call is returned. */
static int do_step(struct coop_tool_call *call, const char *id, const struct batch *batch,
		   size_t index, json_t *told)
{
	const struct step *step = &batch->steps[index];
	int r = carry_out(call, id, step, budget_of(call, batch), told);

	if (r == -ECANCELED || r == -ENOMEM)
		return r;
	if (json_object_set_new(told, "index", json_integer((json_int_t)index)) < 0 ||
	    json_object_set_new(told, "step_type", json_string(step_types[step->type])) < 0 ||
	    json_object_set_new(told, "success", json_boolean(r == 0)) < 0 ||
	    (r < 0 && json_object_set_new(told, "error", json_string(call->error.message)) < 0))
		return coop_tool_no_memory(call);
	return 0;
}

static int run_steps(struct coop_tool_call *call, const char *id, const struct batch *batch)
{
	json_t *list = json_array();
	size_t completed = 0;
	bool on = true;
	int r = list ? 0 : coop_tool_no_memory(call);

	for (size_t i = 0; r == 0 && on && i < batch->count; i++) {
		json_t *told = json_object();
		if (json_array_append_new(list, told) < 0) {
			r = coop_tool_no_memory(call);
			break;
		}
		r = do_step(call, id, batch, i, told);
		on = r == 0 && goes_on(&batch->steps[i], told);
		if (json_is_true(json_object_get(told, "success")))
			completed++;
		else
			call->failed = true;
	}
	coop_tool_set(call, "steps", list);
	coop_tool_set(call, "completed", json_integer((json_int_t)completed));
	coop_tool_set(call, "total", json_integer((json_int_t)batch->count));
	return r;
}

static int run_batch(struct coop_tool_call *call)
{
	struct batch batch = {0};
	json_t *record = NULL;
	int r = prepare(call, &batch);

	if (r == 0)
		r = coop_shell_find(call, &record);
	if (r == 0)
		r = run_steps(call, coop_tool_record_id(record), &batch);
	json_decref(record);
	clear(&batch);
	return r;
}

const struct coop_tool coop_tool_shell_batch = {
	.name = "shell_batch",
	.title = "Shell steps",
	.description = "Runs steps in a shell in order, up to the first that fails.",
	.kind = COOP_TOOL_START,
	.sets = COOP_TOOLS_DEFAULT,
	.input = batch_input,
	.output = batch_output,
	.run = run_batch,
};
