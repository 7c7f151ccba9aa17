/* shell_expect, and how results of expecting are told. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "client/views/budget.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/shell/expect.h"
#include "doors/tools/shell/shell.h"
#include "interface/schema.h"

void coop_expect_result_clear(struct coop_expect_result *result)
{
	json_decref(result->output);
	json_decref(result->omitted);
	json_decref(result->captures);
	memset(result, 0, sizeof *result);
}

/* The number behind a dollar: one or two digits, or any in braces; *ret_size is the length of all.
 * -1: none, the dollar is one. */
static int group_of(const char *text, size_t *ret_size)
{
	bool braced = text[1] == '{';
	const char *digits = text + 1 + braced, *at = digits;
	int group = 0;

	while (*at >= '0' && *at <= '9' && at - digits < 2)
		group = group * 10 + (*at++ - '0');
	if (at == digits || (braced && *at != '}'))
		return -1;
	*ret_size = (size_t)(at - text) + braced;
	return group;
}

static int add(struct coop_buf *into, const char *bytes, size_t size)
{
	if (coop_buf_size(into) + size > COOP_WRITE_STDIN_MAX)
		return -EMSGSIZE;
	return size ? coop_buf_append(into, bytes, size) : 0;
}

int coop_expect_fill(const char *text, const json_t *captures, struct coop_buf *into)
{
	while (*text) {
		size_t size = strcspn(text, "$");
		int r = add(into, text, size);
		text += size;
		if (r < 0 || !*text)
			return r;
		int group = group_of(text, &size);
		if (group >= 0) {
			const json_t *value = json_array_get(captures, (size_t)group);
			r = add(into, json_string_value(value), json_string_length(value));
		} else {
			size = text[1] == '$' ? 2 : 1;
			r = add(into, "$", 1);
		}
		if (r < 0)
			return r;
		text += size;
	}
	return 0;
}

/* As much of the captures as fits. */
static json_t *fitting(const json_t *captures, size_t budget, bool *ret_cut)
{
	json_t *list = json_array(), *item;
	size_t index;

	json_array_foreach(captures, index, item)
	{
		size_t size = json_string_length(item);
		const char *text = json_string_value(item);
		json_t *copy = json_incref(item);
		if (text && size > budget) {
			json_decref(copy);
			size = coop_budget_head(text, size, budget);
			copy = json_stringn_nocheck(text, size);
			*ret_cut = true;
		}
		budget -= size;
		if (json_array_append_new(list, copy) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

int coop_expect_tell(const struct coop_expect_result *result, size_t budget, json_t *into)
{
	bool cut = false;
	json_t *captures = fitting(result->captures, budget, &cut);

	if (json_object_set(into, "output", result->output) < 0 ||
	    (result->omitted && json_object_set(into, "omitted", result->omitted) < 0)) {
		json_decref(captures);
		return -ENOMEM;
	}
	if (json_object_set_new(into, "captures", captures) < 0 ||
	    (cut && json_object_set_new(into, "captures_cut", json_true()) < 0))
		return -ENOMEM;
	return 0;
}

const char *coop_expect_hint(const struct coop_expect_case_list *list,
			     const struct coop_expect_result *result)
{
	if (result->index >= 0 && list->cases[result->index].tag == COOP_EXPECT_NEEDS_USER)
		return "The shell waits for a person: ask the user, then send the answer with "
		       "shell_write.";
	if (result->index >= 0)
		return result->omitted ? "Read what is omitted with read_process_output, offset "
					 "omitted.from."
				       : NULL;
	if (strcmp(result->reason, "timeout") != 0)
		return "The shell has ended: call close_shell.";
	if (result->cut_short)
		return "The wait was cut short by this connection's limit: call again to go on "
		       "waiting, nothing is lost.";
	if (result->went_on)
		return "The last match of a continue case was consumed, what came after it was "
		       "not. Look "
		       "at the output and add a case, or answer with shell_write.";
	return "Nothing was consumed. If it still works call again; if it asks something answer "
	       "with "
	       "shell_write; shell_signal interrupts it.";
}

static const struct coop_field expect_input[] = {
	IN_SESSION,
	IN_STRING_NEEDED("pattern", COOP_PATTERN_TEXT_MAX, "regex"),
	IN_INT("timeout_secs", 0, COOP_SHELL_SECS_MAX, "default 30; 0: only look"),
	FIELDS_END,
};
static const struct coop_field expect_output[] = {
	OUT_BOOL("matched"),     OUT_STRING("pattern"),     OUT_STRING("output"),
	OUT_STRINGS("captures"), OUT_STRING_NULL("reason"), FIELDS_END,
};

static int expect(struct coop_tool_call *call, const char *id,
		  const struct coop_expect_case_list *list, coop_expect_teller *tell)
{
	struct coop_expect_result result;
	int64_t secs = coop_arg_int(call->args, "timeout_secs", COOP_SHELL_SECS);
	int r = coop_expect(call, id, list, secs * 1000, coop_tool_inline(call), &result);

	if (r < 0)
		return r;
	const char *hint = coop_expect_hint(list, &result);
	call->failed = result.index < 0;
	coop_tool_set(call, "matched", json_boolean(result.index >= 0));
	if (tell(call, list, &result) < 0 ||
	    coop_expect_tell(&result, coop_tool_inline(call), call->result) < 0)
		r = coop_tool_no_memory(call);
	coop_tool_set(call, "reason", result.reason ? json_string(result.reason) : json_null());
	if (hint)
		coop_tool_set(call, "hint", json_string(hint));
	coop_expect_result_clear(&result);
	return r;
}

int coop_expect_run(struct coop_tool_call *call, struct coop_expect_case_list *list,
		    coop_expect_teller *tell)
{
	json_t *record = NULL;
	int r = coop_shell_find(call, &record);

	list->hold = coop_tool_is_own(record);
	if (r == 0)
		r = expect(call, coop_tool_record_id(record), list, tell);
	json_decref(record);
	coop_expect_clear(list);
	return r;
}

static int tell_pattern(struct coop_tool_call *call, const struct coop_expect_case_list *list,
			const struct coop_expect_result *result)
{
	(void)list;
	(void)result;
	coop_tool_set(call, "pattern", json_incref(json_object_get(call->args, "pattern")));
	return 0;
}

static int run_expect(struct coop_tool_call *call)
{
	struct coop_expect_case_list list;
	int r = coop_expect_compile_one(call, "pattern", coop_arg(call->args, "pattern"), &list);

	return r < 0 ? r : coop_expect_run(call, &list, tell_pattern);
}

const struct coop_tool coop_tool_shell_expect = {
	.name = "shell_expect",
	.title = "Expect in a shell",
	.description =
		"Waits until the shell's output since the last match matches a regex (colours "
		"are taken out), and gives the text up to there. A miss consumes nothing.",
	.kind = COOP_TOOL_MOVE,
	.waits = true,
	.sets = COOP_TOOLS_DEFAULT,
	.input = expect_input,
	.output = expect_output,
	.run = run_expect,
};
