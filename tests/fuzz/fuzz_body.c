/* The launcher's check of a plan's body: of what it lets through everything can be read, and
 * nothing lies outside. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/layout/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static size_t read_string(const struct coop_body_view *view, uint32_t offset)
{
	assert(offset < view->text_size);
	size_t size = strlen(view->text + offset);
	assert(offset + size < view->text_size);
	return size;
}

static void read_op(const struct coop_body_view *view, const struct coop_plan_op *op)
{
	if (op->path)
		assert(read_string(view, op->path) && view->text[op->path] == '/');
	if (op->source)
		(void)read_string(view, op->source);
	if (op->kind == COOP_OP_LAYER) {
		uint32_t at = op->data;
		for (uint32_t i = 0; i < op->count; i++)
			at += (uint32_t)read_string(view, at) + 1;
	} else if (op->kind == COOP_OP_FILE) {
		assert(op->data + op->size <= view->text_size);
	} else if (op->kind == COOP_OP_LINK) {
		assert(read_string(view, op->data));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct coop_plan plan;
	struct coop_body_view view;

	if (size < sizeof plan)
		return 0;
	memcpy(&plan, input, sizeof plan);
	size -= sizeof plan;
	/* Sizes are guessed too rarely; the counts are left to chance. */
	if (plan.magic & 1)
		plan.body_size = size;
	/* Of its own size, so that the sanitizer sees a byte too far. */
	uint8_t *body = malloc(size ? size : 1);
	assert(body);
	memcpy(body, input + sizeof plan, size);
	if (coop_body_valid(&plan, body, size, &view)) {
		assert((const uint8_t *)view.text + view.text_size == body + size);
		for (uint32_t i = 0; i < plan.op_count; i++)
			read_op(&view, &view.ops[i]);
		for (uint32_t i = 0; i < plan.rule_count; i++)
			(void)read_string(&view, view.rules[i].path);
		uint32_t at = 0;
		for (uint32_t i = 0; i < plan.argc + plan.envc; i++)
			at += (uint32_t)read_string(&view, at) + 1;
		if (plan.flags & COOP_PLAN_CWD_PATH)
			(void)read_string(&view, plan.cwd);
	}
	free(body);
	return 0;
}
