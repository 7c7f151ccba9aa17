#include "sandbox/layout/layout_builder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "interface/err.h"
#include "sandbox/layout/ghosts.h"

#define GHOST_ROOM 48
/* A layout is built in the keeper's loop, from what an earlier command may have left: it is refused
 * as soon as it is too much, and not only when it is written. Of seals many are the same. */
#define GHOSTS_MAX 2048u
#define SEALS_MAX (4 * COOP_PLAN_OPS_MAX)

static struct coop_zone_entry *zones(const struct coop_builder *b, size_t *ret_count)
{
	*ret_count = coop_buf_size(&b->zones) / sizeof(struct coop_zone_entry);
	return (struct coop_zone_entry *)(void *)coop_buf_front(&b->zones);
}

static struct coop_seal *seals(const struct coop_builder *b, size_t *ret_count)
{
	*ret_count = coop_buf_size(&b->seals) / sizeof(struct coop_seal);
	return (struct coop_seal *)(void *)coop_buf_front(&b->seals);
}

void coop_builder_clear(struct coop_builder *b)
{
	size_t count;
	struct coop_zone_entry *entries = zones(b, &count);

	for (size_t i = 0; i < count; i++)
		free(entries[i].path);
	struct coop_seal *sealed = seals(b, &count);
	for (size_t i = 0; i < count; i++)
		free(sealed[i].path);
	coop_buf_clear(&b->zones);
	coop_buf_clear(&b->seals);
	coop_buf_clear(&b->masks);
	coop_ghost_parent_close(&b->near);
	coop_mountinfo_clear(&b->mounts);
}

void coop_builder_fail(struct coop_builder *b, int status)
{
	if (!b->failed)
		b->failed = status;
}

void coop_builder_no_memory(struct coop_builder *b)
{
	if (!b->failed)
		b->failed = coop_err_no_memory(b->err);
}

uint32_t coop_builder_text(struct coop_builder *b, const void *bytes, size_t size)
{
	size_t offset = coop_buf_size(&b->out->text);

	if (b->failed)
		return 0;
	if (size > COOP_PLAN_BODY_MAX - offset) {
		coop_builder_fail(b, coop_err_set(b->err, COOP_TOO_LARGE,
						  "the sandbox's description is too large"));
		return 0;
	}
	if (coop_buf_append(&b->out->text, bytes, size) < 0)
		coop_builder_no_memory(b);
	return (uint32_t)offset;
}

uint32_t coop_builder_string(struct coop_builder *b, const char *text)
{
	return coop_builder_text(b, text, strlen(text) + 1);
}

void coop_builder_op(struct coop_builder *b, struct coop_plan_op op, const char *path)
{
	if (b->degraded || b->failed)
		return;
	if (coop_buf_size(&b->out->ops) / sizeof op >= COOP_PLAN_OPS_MAX) {
		coop_builder_fail(b, coop_err_set(b->err, COOP_TOO_LARGE,
						  "the sandbox would need more than %u mounts",
						  COOP_PLAN_OPS_MAX));
		return;
	}
	op.path = path ? coop_builder_string(b, path) : 0;
	if (!b->failed && coop_buf_append(&b->out->ops, &op, sizeof op) < 0)
		coop_builder_no_memory(b);
}

void coop_builder_rule(struct coop_builder *b, enum coop_plan_access access, const char *path)
{
	struct coop_plan_rule rule = {.access = access, .path = coop_builder_string(b, path)};

	if (!b->failed && coop_buf_append(&b->out->rules, &rule, sizeof rule) < 0)
		coop_builder_no_memory(b);
}

void coop_builder_enter(struct coop_builder *b, const char *path, enum coop_zone zone)
{
	struct coop_zone_entry entry = {.path = coop_mem_strdup(path), .zone = zone};

	if (!entry.path || coop_buf_append(&b->zones, &entry, sizeof entry) < 0) {
		free(entry.path);
		coop_builder_no_memory(b);
	}
}

enum coop_zone coop_builder_zone(const struct coop_builder *b, const char *path,
				 const char **ret_top)
{
	size_t count;
	const struct coop_zone_entry *entries = zones(b, &count);

	while (count--) {
		if (!coop_path_below(path, entries[count].path))
			continue;
		if (ret_top)
			*ret_top = entries[count].path;
		return entries[count].zone;
	}
	if (ret_top)
		*ret_top = "/";
	return COOP_ZONE_HOST;
}

bool coop_builder_holds_tree(const struct coop_builder *b, const char *path)
{
	size_t count;
	const struct coop_zone_entry *entries = zones(b, &count);

	while (count--) {
		if ((entries[count].zone == COOP_ZONE_READABLE ||
		     entries[count].zone == COOP_ZONE_WRITABLE) &&
		    coop_path_below(entries[count].path, path))
			return true;
	}
	return false;
}

void coop_builder_seal(struct coop_builder *b, const char *path, enum coop_seal_kind kind,
		       uint32_t flags)
{
	if (b->failed)
		return;
	if (coop_buf_size(&b->seals) / sizeof(struct coop_seal) >= SEALS_MAX) {
		coop_builder_fail(b, coop_err_set(b->err, COOP_TOO_LARGE,
						  "the sandbox would protect more than %u paths",
						  SEALS_MAX));
		return;
	}
	struct coop_seal seal = {.path = coop_mem_strdup(path),
				 .kind = kind,
				 .flags = flags,
				 .shallow = b->shallow,
				 .firm = b->firm};
	if (!seal.path || coop_buf_append(&b->seals, &seal, sizeof seal) < 0) {
		free(seal.path);
		coop_builder_no_memory(b);
	}
}

bool coop_builder_sealed(const struct coop_builder *b, const char *path, enum coop_seal_kind kind)
{
	size_t count;
	const struct coop_seal *list = seals(b, &count);

	for (size_t i = 0; i < count; i++) {
		if (list[i].kind >= kind && coop_path_below(path, list[i].path))
			return true;
	}
	return false;
}

static int compare_seals(const void *one, const void *other)
{
	const struct coop_seal *a = one, *b = other;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	int order = coop_path_compare(a->path, b->path);
	/* Of two with the same path the one that insists comes first, and stays. */
	return order ? order : (int)a->flags - (int)b->flags;
}

/* Whether the seal adds nothing to the last one of its kind: pins hold one name each, the others
 * all below. */
static bool needless(const struct coop_seal *seal, const struct coop_seal *last)
{
	if (!last || last->kind != seal->kind)
		return false;
	if (seal->kind == COOP_SEAL_PIN)
		return !strcmp(seal->path, last->path);
	return coop_path_below(seal->path, last->path);
}

void coop_builder_write_seals(struct coop_builder *b)
{
	static const uint32_t kinds[COOP_SEAL_COUNT] = {[COOP_SEAL_PIN] = COOP_OP_PIN,
							[COOP_SEAL_READONLY] = COOP_OP_READONLY,
							[COOP_SEAL_COVER] = COOP_OP_COVER};
	size_t count;
	struct coop_seal *list = seals(b, &count);
	const struct coop_seal *last = NULL;

	if (count)
		qsort(list, count, sizeof *list, compare_seals);
	for (size_t i = 0; i < count; i++) {
		if (needless(&list[i], last))
			continue;
		last = &list[i];
		coop_builder_op(b,
				(struct coop_plan_op){
					.kind = kinds[last->kind], .flags = last->flags, .fd = -1},
				last->path);
	}
}

static struct coop_ghost *find_ghost(const struct coop_builder *b, const char *path)
{
	const struct coop_layout *out = b->out;

	for (size_t i = out->ghost_count; i--;) {
		if (!strcmp(out->ghosts[i].path, path))
			return &out->ghosts[i];
	}
	return NULL;
}

bool coop_builder_missing(const struct coop_builder *b, const char *path)
{
	return find_ghost(b, path) != NULL;
}

struct coop_ghost *coop_builder_ghost(struct coop_builder *b, const char *path, bool folder)
{
	struct coop_layout *out = b->out;

	if (b->failed || b->degraded)
		return NULL;
	struct coop_ghost *known = find_ghost(b, path);
	if (known) {
		known->folder |= folder;
		return known;
	}
	if (out->ghost_count == GHOSTS_MAX) {
		coop_builder_fail(b,
				  coop_err_set(b->err, COOP_TOO_LARGE,
					       "the sandbox would need more than %u placeholders",
					       GHOSTS_MAX));
		return NULL;
	}
	if (out->ghost_count == b->ghost_room) {
		size_t room = b->ghost_room ? 2 * b->ghost_room : GHOST_ROOM;
		struct coop_ghost *grown =
			coop_mem_realloc(out->ghosts, room * sizeof *out->ghosts);
		if (!grown) {
			coop_builder_no_memory(b);
			return NULL;
		}
		out->ghosts = grown;
		b->ghost_room = room;
	}
	char *copy = coop_mem_strdup(path);
	if (!copy) {
		coop_builder_no_memory(b);
		return NULL;
	}
	known = &out->ghosts[out->ghost_count++];
	*known = (struct coop_ghost){.path = copy, .folder = folder};
	return known;
}

void coop_builder_note(struct coop_builder *b, const char *format, ...)
{
	va_list list;

	if (*b->out->note)
		return;
	va_start(list, format);
	(void)vsnprintf(b->out->note, sizeof b->out->note, format, list);
	va_end(list);
}

int coop_builder_look(struct coop_builder *b, const char *path, struct stat *ret)
{
	if (coop_builder_missing(b, path) || coop_builder_stands(b, path))
		return -ENOENT;
	return lstat(path, ret) < 0 ? -errno : 0;
}

bool coop_builder_stands(struct coop_builder *b, const char *path)
{
	return b->input->ghosts && coop_ghosts_stands(b->input->ghosts, &b->near, path);
}
