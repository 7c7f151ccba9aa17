#include "sandbox/layout/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/layout/layout_builder.h"
#include "sandbox/layout/layout_path.h"

struct tree {
	const struct coop_layout_root *root;
	bool writable;
};

static bool write_denied(const struct coop_builder *b, const char *path)
{
	char denied[COOP_PATH_SIZE], real[COOP_PATH_SIZE];
	bool exists;

	for (char *const *p = b->input->policy->deny_write; p && *p; p++) {
		if (coop_path_expand(*p, b->input->home, denied) == 0 &&
		    coop_path_resolve(denied, real, &exists) == 0 && coop_path_below(path, real))
			return true;
	}
	return false;
}

/* Whether what is there already shows the tree as it is to be. One with an fd may have other owners
 * than what it lies in. */
static bool shown(const struct coop_builder *b, const struct tree *tree)
{
	const char *path = tree->root->path;

	switch (coop_builder_zone(b, path, NULL)) {
	case COOP_ZONE_WRITABLE:
		return !tree->writable || tree->root->fd < 0;
	case COOP_ZONE_HOST:
	case COOP_ZONE_READABLE:
		return !tree->writable && tree->root->fd < 0;
	case COOP_ZONE_LAYER:
		return !tree->writable && !coop_layout_masks_path(b, path);
	case COOP_ZONE_PRIVATE:
	case COOP_ZONE_OWN:
		break;
	}
	return false;
}

static void add_tree(struct coop_builder *b, const struct tree *given)
{
	const struct coop_layout_root *root = given->root;
	struct tree tree = *given;

	tree.writable = tree.writable && !write_denied(b, root->path);
	if (shown(b, &tree))
		return;
	if (b->input->root_keeper)
		coop_builder_op(b, (struct coop_plan_op){.kind = COOP_OP_WAY, .fd = -1},
				root->path);
	coop_builder_op(b,
			(struct coop_plan_op){.kind = COOP_OP_TREE,
					      .flags = tree.writable ? COOP_OP_WRITABLE : 0,
					      .fd = root->fd,
					      .dev = root->fd < 0 ? root->dev : 0,
					      .ino = root->fd < 0 ? root->ino : 0},
			root->path);
	coop_builder_enter(b, root->path, tree.writable ? COOP_ZONE_WRITABLE : COOP_ZONE_READABLE);
}

static int compare_trees(const void *one, const void *other)
{
	const struct tree *a = one, *b = other;
	int order = coop_path_compare(a->root->path, b->root->path);

	/* Of two at the same place the writable one is the one that counts. */
	return order ? order : (int)b->writable - (int)a->writable;
}

/* What may have come with it is not to be seen in it either. */
static void add_late_home(struct coop_builder *b)
{
	coop_layout_home(b);
	coop_layout_empty(b);
}

/* From the outside in. A home that lies in one of them comes after it, and before those that lie in
 * the home. */
static void add_trees(struct coop_builder *b)
{
	const struct coop_layout_input *input = b->input;
	size_t count = input->writable_count + input->readable_count;
	struct tree *trees = coop_mem_alloc(count * sizeof *trees);
	bool home_waits = b->home_later;

	if (!trees) {
		coop_builder_no_memory(b);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		size_t readable = i - input->writable_count;
		trees[i].writable = i < input->writable_count;
		trees[i].root =
			trees[i].writable ? &input->writable[i] : &input->readable[readable];
	}
	if (count)
		qsort(trees, count, sizeof *trees, compare_trees);
	for (size_t i = 0; i < count; i++) {
		if (home_waits && !coop_path_below(input->home, trees[i].root->path)) {
			add_late_home(b);
			home_waits = false;
		}
		add_tree(b, &trees[i]);
	}
	if (home_waits)
		add_late_home(b);
	free(trees);
}

/* In the command's own part, over the private one, which every process of a kind begins with. What
 * it holds has nothing to do with the host's /tmp. */
static void add_tmp(struct coop_builder *b)
{
	const struct coop_layout_root *tmp = b->input->tmp;

	if (!tmp)
		return;
	if (b->degraded) {
		coop_builder_enter(b, tmp->path, COOP_ZONE_WRITABLE);
		return;
	}
	coop_builder_op(b,
			(struct coop_plan_op){.kind = COOP_OP_TREE,
					      .flags = COOP_OP_WRITABLE,
					      .source = coop_builder_string(b, tmp->path),
					      .fd = tmp->fd,
					      .dev = tmp->fd < 0 ? tmp->dev : 0,
					      .ino = tmp->fd < 0 ? tmp->ino : 0},
			COOP_LAYOUT_TMP);
	coop_builder_enter(b, COOP_LAYOUT_TMP, COOP_ZONE_PRIVATE);
}

static bool home_in_a_root(const struct coop_layout_input *input)
{
	if (input->home && input->tmp && coop_path_below(input->home, COOP_LAYOUT_TMP))
		return true;
	for (size_t i = 0; input->home && i < input->writable_count; i++) {
		if (coop_path_below(input->home, input->writable[i].path))
			return true;
	}
	return false;
}

static uint32_t op_count(const struct coop_layout *layout)
{
	return (uint32_t)(coop_buf_size(&layout->ops) / sizeof(struct coop_plan_op));
}

static void build_base(struct coop_builder *b)
{
	struct coop_layout *out = b->out;

	(void)coop_builder_text(b, "", 1);
	coop_layout_base(b);
	coop_layout_replaced(b);
	b->home_later = home_in_a_root(b->input);
	if (!b->home_later)
		coop_layout_home(b);
	coop_layout_hide_keeper(b);
	coop_layout_empty(b);
	coop_layout_pivot(b, true);
	/* Where the root is left only later, /tmp is what becomes the root: a rule for it would be
	 * one for everything. */
	if (!coop_layout_pivots_late(b))
		coop_layout_base_rules(b);
	out->base_ops = op_count(out);
	out->base_rules = (uint32_t)(coop_buf_size(&out->rules) / sizeof(struct coop_plan_rule));
	out->base_text = (uint32_t)coop_buf_size(&out->text);
}

static bool hides(const struct coop_builder *b, const char *path)
{
	const char *top;

	for (const char *const *p = b->input->hidden; p && *p; p++) {
		if (coop_path_below(path, *p))
			return true;
	}
	/* Without mounts the folder of agents is sealed but for what was brought into it. */
	if (coop_builder_sealed(b, path, COOP_SEAL_COVER))
		return !b->degraded || !b->input->emptied ||
		       !coop_path_below(path, b->input->emptied) ||
		       coop_builder_zone(b, path, NULL) == COOP_ZONE_PRIVATE;
	switch (coop_builder_zone(b, path, &top)) {
	case COOP_ZONE_LAYER:
		return coop_layout_masks_path(b, path);
	case COOP_ZONE_PRIVATE:
		return strcmp(top, path) != 0 && !coop_builder_holds_tree(b, path) &&
		       !(b->input->tmp && !strcmp(top, COOP_LAYOUT_TMP));
	case COOP_ZONE_HOST:
	case COOP_ZONE_READABLE:
	case COOP_ZONE_WRITABLE:
	case COOP_ZONE_OWN:
		break;
	}
	return false;
}

static void build_command(struct coop_builder *b)
{
	add_tmp(b);
	add_trees(b);
	coop_layout_protect(b);
	coop_layout_deny(b);
	coop_layout_twins(b);
	b->out->cwd_hidden = b->input->cwd && hides(b, b->input->cwd);
	if (!b->degraded)
		coop_builder_write_seals(b);
	coop_layout_files(b);
	coop_layout_pivot(b, false);
	if (coop_layout_pivots_late(b))
		coop_layout_base_rules(b);
	coop_layout_rules(b);
}

int coop_layout_build(const struct coop_layout_input *input, struct coop_layout *ret,
		      struct coop_err *err)
{
	struct coop_layout layout = {.home = COOP_HOME_READ_ONLY};
	struct coop_builder b = {
		.input = input,
		.out = &layout,
		.err = err,
		.near = COOP_GHOST_PARENT,
		.degraded = input->host->error[COOP_CAN_USERNS] ||
			    input->host->error[COOP_CAN_NESTED] ||
			    input->host->error[COOP_CAN_MOUNT],
	};

	build_base(&b);
	build_command(&b);
	coop_builder_clear(&b);
	if (b.failed) {
		coop_layout_clear(&layout);
		return b.failed;
	}
	*ret = layout;
	return 0;
}

void coop_layout_insist(struct coop_layout *layout)
{
	struct coop_plan_op *ops = (void *)coop_buf_front(&layout->ops);
	const char *text = (const char *)coop_buf_front(&layout->text);

	for (uint32_t i = layout->base_ops; i < op_count(layout); i++) {
		for (size_t j = 0; j < layout->ghost_count && ops[i].flags & COOP_OP_OPTIONAL;
		     j++) {
			if (layout->ghosts[j].held &&
			    !strcmp(layout->ghosts[j].path, text + ops[i].path))
				ops[i].flags &= ~(uint32_t)COOP_OP_OPTIONAL;
		}
	}
}

static bool masked(const char *name, uint32_t count, const char *path)
{
	for (; count--; name += strlen(name) + 1) {
		size_t size = strlen(name);
		if (!strncmp(path, name, size) && (!path[size] || path[size] == '/'))
			return true;
	}
	return false;
}

/* Without mounts there are rules: what is allowed is named, with all below it. */
static const char *hidden_by_rules(const struct coop_layout *layout, const char *path)
{
	const struct coop_plan_rule *rules = (const void *)coop_buf_front(&layout->rules);
	const char *text = (const char *)coop_buf_front(&layout->text);

	for (size_t i = 0; i < coop_buf_size(&layout->rules) / sizeof *rules; i++) {
		if (coop_path_below(path, text + rules[i].path))
			return NULL;
	}
	return "not allowed by the file rules";
}

const char *coop_layout_hides(const struct coop_layout *layout, const char *path)
{
	const struct coop_plan_op *ops = (const void *)coop_buf_front(&layout->ops);
	const char *text = (const char *)coop_buf_front(&layout->text), *how = NULL;

	if (!op_count(layout))
		return hidden_by_rules(layout, path);
	/* The last operation that has to do with it counts. */
	for (uint32_t i = 0; i < op_count(layout); i++) {
		const char *at = text + ops[i].path;
		bool concerned = ops[i].path && coop_path_below(path, at);
		if (ops[i].kind == COOP_OP_ROOT_EMPTY)
			how = "not in the minimal root";
		else if (concerned && ops[i].kind == COOP_OP_TMPFS)
			how = "in a folder that is replaced by a private one";
		else if (concerned && ops[i].kind == COOP_OP_COVER)
			how = "covered";
		else if (concerned && ops[i].kind == COOP_OP_TREE)
			how = NULL;
		else if (concerned && ops[i].kind == COOP_OP_LAYER)
			how = path[strlen(at)] && masked(text + ops[i].data, ops[i].count,
							 path + strlen(at) + 1)
				      ? "taken out of the home's layer"
				      : NULL;
	}
	return how;
}

void coop_layout_clear(struct coop_layout *layout)
{
	coop_buf_clear(&layout->ops);
	coop_buf_clear(&layout->rules);
	coop_buf_clear(&layout->text);
	coop_ghosts_free_list(layout->ghosts, layout->ghost_count);
	*layout = (struct coop_layout){0};
}
