#include "sandbox/layout/body.h"

#include <errno.h>
#include <string.h>

#include "sandbox/layout/layout.h"

/* What of a layout goes into this part. */
struct range {
	const struct coop_plan_op *ops;
	const struct coop_plan_rule *rules;
	const uint8_t *text;
	uint32_t op_count, rule_count, text_size;
	uint32_t text_first; /* offset that its text begins with */
};

static struct range range_of(const struct coop_layout *layout, enum coop_body_part part)
{
	if (!layout)
		return (struct range){0};
	const struct coop_plan_op *ops = (const void *)coop_buf_front(&layout->ops);
	const struct coop_plan_rule *rules = (const void *)coop_buf_front(&layout->rules);
	struct range all = {.ops = ops,
			    .rules = rules,
			    .text = coop_buf_front(&layout->text),
			    .op_count = (uint32_t)(coop_buf_size(&layout->ops) / sizeof *ops),
			    .rule_count = (uint32_t)(coop_buf_size(&layout->rules) / sizeof *rules),
			    .text_size = (uint32_t)coop_buf_size(&layout->text)};
	if (part == COOP_BODY_BASE) {
		all.op_count = layout->base_ops;
		all.rule_count = layout->base_rules;
		all.text_size = layout->base_text;
	} else if (part == COOP_BODY_REST) {
		all.ops = all.ops ? all.ops + layout->base_ops : NULL;
		all.rules = all.rules ? all.rules + layout->base_rules : NULL;
		all.text += layout->base_text;
		all.op_count -= layout->base_ops;
		all.rule_count -= layout->base_rules;
		all.text_size -= layout->base_text;
		all.text_first = layout->base_text;
	}
	return all;
}

static size_t measure(const char *const *vector, uint32_t *ret_count)
{
	size_t size = 0;
	uint32_t count = 0;

	for (; vector && *vector; vector++, count++)
		size += strlen(*vector) + 1;
	*ret_count = count;
	return size;
}

/* Offsets of a layout count from its own text; here that stands behind the strings of the command.
 * 0 stays: there is none. */
static uint32_t relocate(uint32_t offset, const struct range *range, size_t shift)
{
	return offset ? (uint32_t)(offset - range->text_first + shift) : 0;
}

static int append_ops(const struct range *range, size_t shift, struct coop_buf *body)
{
	for (uint32_t i = 0; i < range->op_count; i++) {
		struct coop_plan_op op = range->ops[i];
		op.path = relocate(op.path, range, shift);
		op.source = relocate(op.source, range, shift);
		op.data = relocate(op.data, range, shift);
		if (coop_buf_append(body, &op, sizeof op) < 0)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < range->rule_count; i++) {
		struct coop_plan_rule rule = range->rules[i];
		rule.path = relocate(rule.path, range, shift);
		if (coop_buf_append(body, &rule, sizeof rule) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int append_strings(const char *const *vector, struct coop_buf *body)
{
	for (; vector && *vector; vector++) {
		if (coop_buf_append(body, *vector, strlen(*vector) + 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

int coop_body_build(const struct coop_body *parts, struct coop_plan *plan,
		    struct coop_buf *ret_body)
{
	struct range range = range_of(parts->layout, parts->part);
	size_t start = coop_buf_size(ret_body);
	uint32_t argc, envc;
	size_t strings = measure(parts->argv, &argc) + measure(parts->envp, &envc);
	size_t cwd = parts->cwd ? strlen(parts->cwd) + 1 : 0;

	/* One byte in front where there is no other text: no offset is 0. */
	size_t front = strings || (parts->layout && parts->part != COOP_BODY_REST) ? 0 : 1;
	size_t size = range.op_count * sizeof *range.ops + range.rule_count * sizeof *range.rules +
		      parts->limit_count * sizeof *parts->limits + front + strings +
		      range.text_size + cwd + 1;
	if (size > COOP_PLAN_BODY_MAX || parts->limit_count > COOP_BODY_LIMITS_MAX ||
	    range.rule_count > COOP_BODY_RULES_MAX || argc + envc > COOP_BODY_STRINGS_MAX)
		return -E2BIG;
	if (!coop_buf_reserve(ret_body, size) ||
	    append_ops(&range, front + strings, ret_body) < 0 ||
	    coop_buf_append(ret_body, parts->limits, parts->limit_count * sizeof *parts->limits) <
		    0 ||
	    coop_buf_append(ret_body, "", front) < 0 || append_strings(parts->argv, ret_body) < 0 ||
	    append_strings(parts->envp, ret_body) < 0 ||
	    coop_buf_append(ret_body, range.text, range.text_size) < 0 ||
	    coop_buf_append(ret_body, parts->cwd, cwd) < 0 || coop_buf_append(ret_body, "", 1) < 0)
		return -ENOMEM;
	plan->op_count = range.op_count;
	plan->rule_count = range.rule_count;
	plan->limit_count = (uint32_t)parts->limit_count;
	plan->argc = argc;
	plan->envc = envc;
	if (cwd) {
		plan->cwd = (uint32_t)(front + strings + range.text_size);
		plan->flags |= COOP_PLAN_CWD_PATH;
	}
	plan->body_size = coop_buf_size(ret_body) - start;
	return 0;
}
