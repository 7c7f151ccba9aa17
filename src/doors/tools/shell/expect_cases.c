/* Lists of cases, and shell_expect_cases. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "client/views/pattern.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/table.h"
#include "doors/tools/shell/expect.h"
#include "doors/tools/shell/shell.h"
#include "interface/err.h"
#include "interface/schema.h"

const char *const coop_expect_tags[] = {
	[COOP_EXPECT_OK] = "ok",
	[COOP_EXPECT_FAIL] = "fail",
	[COOP_EXPECT_CONTINUE] = "continue",
	[COOP_EXPECT_NEXT] = "next",
	[COOP_EXPECT_NEEDS_USER] = "needs_user",
	NULL,
};

const struct coop_field coop_expect_case_fields[] = {
	IN_STRING_NEEDED("pattern", COOP_PATTERN_TEXT_MAX, NULL),
	{.name = "tag",
	 .type = COOP_FIELD_ENUM,
	 .required = true,
	 .choices = coop_expect_tags,
	 .doc = "continue: go on after it; next: do not consume; needs_user: a person must act"},
	IN_STRING("respond", COOP_WRITE_STDIN_MAX, "typed then; $1 is group 1"),
	IN_STRING("label", 256, NULL),
	FIELDS_END,
};

static int compile(struct coop_tool_call *call, const char *where, const json_t *pattern,
		   struct coop_pattern **ret)
{
	char reason[256] = "";
	int r = coop_pattern_new(json_string_value(pattern), json_string_length(pattern), true, ret,
				 reason);

	if (r == -ENOMEM)
		return coop_tool_no_memory(call);
	if (r < 0)
		return coop_tool_fail(call, "invalid_input", where, "%s is no valid regex: %s",
				      where, reason);
	return 0;
}

static int compile_case(struct coop_tool_call *call, const char *where, const json_t *item,
			struct coop_expect_case *ret)
{
	struct coop_err err = {0};
	char name[128];

	if (!json_is_object(item))
		return coop_tool_fail(call, "invalid_input", where, "%s must be an object", where);
	if (coop_schema_check(coop_expect_case_fields, item, &err) < 0)
		return coop_tool_fail(call, coop_err_name(err.code), where, "in %s: %s", where,
				      err.message);
	ret->tag =
		(enum coop_expect_tag)coop_arg_enum(item, "tag", coop_expect_tags, COOP_EXPECT_OK);
	ret->respond = coop_arg_string(item, "respond", NULL);
	ret->label = coop_arg_string(item, "label", NULL);
	(void)snprintf(name, sizeof name, "%s.pattern", where);
	return compile(call, name, coop_arg(item, "pattern"), &ret->pattern);
}

int coop_expect_compile(struct coop_tool_call *call, const char *where, const json_t *list,
			struct coop_expect_case_list *ret)
{
	size_t count = json_array_size(list);
	int r = 0;

	memset(ret, 0, sizeof *ret);
	if (count < 1 || count > COOP_EXPECT_CASES)
		return coop_tool_fail(call, "invalid_input", where, "%s must have 1 to %d cases",
				      where, COOP_EXPECT_CASES);
	ret->cases = coop_mem_zalloc(count * sizeof *ret->cases);
	if (!ret->cases)
		return coop_tool_no_memory(call);
	for (size_t i = 0; r == 0 && i < count; i++) {
		char name[96];
		(void)snprintf(name, sizeof name, "%.64s[%zu]", where, i);
		ret->count = i + 1;
		r = compile_case(call, name, json_array_get(list, i), &ret->cases[i]);
	}
	if (r < 0)
		coop_expect_clear(ret);
	return r;
}

int coop_expect_compile_one(struct coop_tool_call *call, const char *where, const json_t *pattern,
			    struct coop_expect_case_list *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->cases = coop_mem_zalloc(sizeof *ret->cases);
	if (!ret->cases)
		return coop_tool_no_memory(call);
	ret->count = 1;
	int r = compile(call, where, pattern, &ret->cases[0].pattern);
	if (r < 0)
		coop_expect_clear(ret);
	return r;
}

void coop_expect_clear(struct coop_expect_case_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		coop_pattern_free(list->cases[i].pattern);
	free(list->cases);
	memset(list, 0, sizeof *list);
}

int coop_expect_tell_case(const struct coop_expect_case_list *list,
			  const struct coop_expect_result *result, json_t *into)
{
	const struct coop_expect_case *match =
		result->index < 0 ? NULL : &list->cases[result->index];
	const char *label = match ? match->label : NULL;

	if (json_object_set_new(into, "matched_case",
				match ? json_integer(result->index) : json_null()) < 0 ||
	    json_object_set_new(into, "tag",
				match ? json_string(coop_expect_tags[match->tag]) : json_null()) <
		    0 ||
	    json_object_set_new(into, "label", label ? json_string(label) : json_null()) < 0)
		return -ENOMEM;
	return 0;
}

static const struct coop_field cases_input[] = {
	IN_SESSION,
	{.name = "cases",
	 .type = COOP_FIELD_OBJECTS,
	 .required = true,
	 .max = COOP_EXPECT_CASES,
	 .fields = coop_expect_case_fields},
	IN_INT("timeout_secs", 0, COOP_SHELL_SECS_MAX, "default 30"),
	FIELDS_END,
};
static const struct coop_field cases_output[] = {
	OUT_BOOL("matched"),       OUT_INT_NULL("matched_case"),
	OUT_STRING_NULL("tag"),    OUT_STRING_NULL("label"),
	OUT_STRING("output"),      OUT_STRINGS("captures"),
	OUT_STRING_NULL("reason"), FIELDS_END,
};

static int tell_case(struct coop_tool_call *call, const struct coop_expect_case_list *list,
		     const struct coop_expect_result *result)
{
	if (result->index >= 0)
		call->failed = list->cases[result->index].tag == COOP_EXPECT_FAIL;
	return coop_expect_tell_case(list, result, call->result);
}

static int run_cases(struct coop_tool_call *call)
{
	struct coop_expect_case_list list;
	int r = coop_expect_compile(call, "cases", coop_arg(call->args, "cases"), &list);

	return r < 0 ? r : coop_expect_run(call, &list, tell_case);
}

const struct coop_tool coop_tool_shell_expect_cases = {
	.name = "shell_expect_cases",
	.title = "Answer a shell",
	.description =
		"Like shell_expect with several regexes: the first in order that matches wins, "
		"and its response is typed.",
	.kind = COOP_TOOL_START,
	.sets = COOP_TOOLS_DEFAULT,
	.input = cases_input,
	.output = cases_output,
	.run = run_cases,
};
