/* The launcher's look at a body, before anything of it is believed. No heap, no system call. */
#include <errno.h>
#include <string.h>

#include "sandbox/layout/body.h"
#include "sandbox/plan/plain_path.h"

#define PATH_BYTES 4096u

/* The text's last byte is a NUL, so a string that begins in it ends in it. */
static const char *string_at(const struct coop_body_view *view, uint32_t offset)
{
	return offset && offset < view->text_size ? view->text + offset : NULL;
}

static bool normal(const char *path)
{
	return path && coop_plain_path(path);
}

/* `count` strings from there on, each relative and without empty, . and .. parts. */
static bool names_valid(const struct coop_body_view *view, uint32_t offset, uint32_t count)
{
	size_t at = offset;

	while (count--) {
		if (at == 0 || at >= view->text_size)
			return false;
		const char *name = view->text + at;
		size_t size = strlen(name);
		if (!size || size >= PATH_BYTES || *name == '/')
			return false;
		for (const char *part = name; *part;) {
			size_t length = strcspn(part, "/");
			if (!length || (length == 1 && *part == '.') ||
			    (length == 2 && !memcmp(part, "..", 2)))
				return false;
			part += length;
			/* A slash at the end begins a part that is empty. */
			if (*part && !*++part)
				return false;
		}
		at += size + 1;
	}
	return true;
}

static bool op_valid(const struct coop_plan *plan, const struct coop_body_view *view,
		     const struct coop_plan_op *op)
{
	bool pathless = op->kind == COOP_OP_ROOT_READONLY || op->kind == COOP_OP_ROOT_EMPTY ||
			op->kind == COOP_OP_PIVOT;

	if (op->kind == 0 || op->kind >= COOP_OP_COUNT)
		return false;
	if (pathless ? op->path != 0 : !normal(string_at(view, op->path)))
		return false;
	if (op->source && !normal(string_at(view, op->source)))
		return false;
	if (op->fd != -1 && (op->fd < 0 || (uint32_t)op->fd >= plan->extra_fds))
		return false;
	switch (op->kind) {
	case COOP_OP_LAYER:
		return names_valid(view, op->data, op->count);
	case COOP_OP_LINK:
		return string_at(view, op->data) && *string_at(view, op->data);
	case COOP_OP_FILE:
		return op->data && op->data <= view->text_size &&
		       op->size <= view->text_size - op->data;
	default:
		return true;
	}
}

/* The strings of the command stand in front. */
static bool strings_valid(const struct coop_body_view *view, uint32_t argc, uint32_t envc)
{
	size_t at = 0;

	for (uint32_t i = 0; i < argc + envc; i++) {
		if (at >= view->text_size)
			return false;
		at += strlen(view->text + at) + 1;
	}
	return true;
}

bool coop_body_valid(const struct coop_plan *plan, const void *body, size_t size,
		     struct coop_body_view *ret_view)
{
	struct coop_body_view view;
	const char *bytes = body;

	if (plan->body_size != size || size > COOP_PLAN_BODY_MAX ||
	    plan->op_count > COOP_PLAN_OPS_MAX || plan->rule_count > COOP_BODY_RULES_MAX ||
	    plan->limit_count > COOP_BODY_LIMITS_MAX || plan->argc > COOP_BODY_STRINGS_MAX ||
	    plan->envc > COOP_BODY_STRINGS_MAX || plan->extra_fds > COOP_PLAN_EXTRA_FDS_MAX)
		return false;
	size_t rules = plan->op_count * sizeof *view.ops;
	size_t limits = rules + plan->rule_count * sizeof *view.rules;
	size_t text = limits + plan->limit_count * sizeof *view.limits;
	if (text >= size || bytes[size - 1] != 0)
		return false;
	view = (struct coop_body_view){.ops = body,
				       .rules = (const void *)(bytes + rules),
				       .limits = (const void *)(bytes + limits),
				       .text = bytes + text,
				       .text_size = size - text};
	if (!strings_valid(&view, plan->argc, plan->envc))
		return false;
	for (uint32_t i = 0; i < plan->op_count; i++) {
		if (!op_valid(plan, &view, &view.ops[i]))
			return false;
	}
	for (uint32_t i = 0; i < plan->rule_count; i++) {
		if (!normal(string_at(&view, view.rules[i].path)) || !view.rules[i].access ||
		    view.rules[i].access > COOP_ACCESS_PROC)
			return false;
	}
	if ((plan->flags & COOP_PLAN_CWD_PATH) && !normal(string_at(&view, plan->cwd)))
		return false;
	*ret_view = view;
	return true;
}

int coop_body_receive(const struct coop_plan *plan, size_t size, const int *received, size_t count,
		      int *ret_fds)
{
	static const struct {
		enum coop_plan_fd fd;
		uint32_t flag;
	} optional[] = {{COOP_PLAN_FD_BODY, COOP_PLAN_BODY_FD},
			{COOP_PLAN_FD_NET, COOP_PLAN_NET_FD},
			{COOP_PLAN_FD_CGROUP, COOP_PLAN_CGROUP_FD},
			{COOP_PLAN_FD_PROGRAM, COOP_PLAN_PROGRAM_FD}};
	/* A slot has its channel and its working directory is a path. */
	size_t at = plan->kind == COOP_PLAN_GO ? COOP_PLAN_FD_CHANNEL : COOP_PLAN_FD_BODY;

	if (size < sizeof *plan || plan->magic != COOP_PLAN_MAGIC || count < at ||
	    plan->body_size > COOP_PLAN_BODY_MAX || plan->extra_fds > COOP_PLAN_EXTRA_FDS_MAX ||
	    (!(plan->flags & COOP_PLAN_BODY_FD) && size != sizeof *plan + plan->body_size))
		return -EPROTO;
	for (size_t i = 0; i < COOP_PLAN_FD_COUNT; i++)
		ret_fds[i] = i < at ? received[i] : -1;
	for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
		if (!(plan->flags & optional[i].flag))
			continue;
		if (at >= count)
			return -EPROTO;
		ret_fds[optional[i].fd] = received[at++];
	}
	if (count - at != plan->extra_fds)
		return -EPROTO;
	memcpy(ret_fds + COOP_PLAN_FD_COUNT, received + at, (count - at) * sizeof *ret_fds);
	return 0;
}
