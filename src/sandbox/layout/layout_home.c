/* The home folder: seen as it is, less the credentials, with a private layer; or without writes; or
 * not at all. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/glob.h"
#include "sandbox/layout/layout.h"
#include "sandbox/layout/layout_builder.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/layout/masks.h"
#include "sandbox/policy/credentials.h"

#define LAYER_BYTES (512u << 20)
#define LAYER_INODES 131072u
#define HIDDEN_BYTES (128u << 20)
#define HIDDEN_INODES 16384u

static bool name_below(const char *name, const char *folder)
{
	size_t size = strlen(folder);

	return !strncmp(name, folder, size) && (!name[size] || name[size] == '/');
}

static bool masked(const struct coop_builder *b, const char *name)
{
	const char *mask = (const char *)coop_buf_front(&b->masks);

	for (uint32_t i = 0; i < b->mask_count; i++) {
		if (name_below(name, mask))
			return true;
		mask += strlen(mask) + 1;
	}
	return false;
}

/* What is hidden whole must not be there as a folder with something hidden in it. */
static void drop_below(struct coop_builder *b, const char *folder)
{
	char *from = (char *)coop_buf_front(&b->masks), *to = from;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->mask_count; i++) {
		size_t size = strlen(from) + 1;
		if (!name_below(from, folder)) {
			memmove(to, from, size);
			to += size;
			kept++;
		}
		from += size;
	}
	b->masks.tail -= (size_t)(from - to);
	b->mask_count = kept;
}

static void add_mask(struct coop_builder *b, const char *name)
{
	if (b->failed || masked(b, name))
		return;
	drop_below(b, name);
	if (coop_buf_append(&b->masks, name, strlen(name) + 1) < 0)
		coop_builder_no_memory(b);
	else
		b->mask_count++;
}

/* As add_mask, for names that come in their order: only the last one can hold the next. */
static void add_row(struct coop_builder *b, const char *name, size_t size, const char **last)
{
	if (b->failed || (*last && !strncmp(*last, name, size) && !(*last)[size]))
		return;
	if (coop_buf_append(&b->masks, name, size) < 0 || coop_buf_append(&b->masks, "", 1) < 0) {
		coop_builder_no_memory(b);
		return;
	}
	b->mask_count++;
	*last = (const char *)coop_buf_front(&b->masks) + coop_buf_size(&b->masks) - size - 1;
}

enum found { PLAIN, MISSING, LINKED };

/* How a path in the home is there, without resolving it: most have no link on the way. MISSING:
 * *path is cut behind the first name that is not there. */
static enum found look_in_home(const char *home, char *path)
{
	struct stat st;

	for (char *end = path + strlen(home); *end;) {
		end = strchrnul(end + 1, '/');
		char kept = *end;
		*end = 0;
		if (lstat(path, &st) < 0)
			return MISSING;
		if (S_ISLNK(st.st_mode))
			return LINKED;
		*end = kept;
	}
	return PLAIN;
}

/* A name in the home may lead elsewhere. What is in the home is hidden under its real name, and
 * under a link's. Of what is missing the first missing name is hidden: that needs no folders which
 * the home does not have. */
static void mask_path(struct coop_builder *b, const char *given)
{
	size_t skip = strlen(b->input->home) + 1;
	char path[COOP_PATH_SIZE], real[COOP_PATH_SIZE];
	bool exists;

	(void)snprintf(path, sizeof path, "%s", given);
	if (look_in_home(b->input->home, path) != LINKED) {
		add_mask(b, path + skip);
		return;
	}
	/* In a folder that is a link nothing can be hidden by the link's name. */
	if (!strcmp(path, given))
		add_mask(b, path + skip);
	if (coop_path_resolve(given, real, &exists) == 0 && coop_path_below(real, b->input->home) &&
	    strcmp(real, b->input->home) != 0)
		add_mask(b, real + skip);
}

static bool in_a_root(const struct coop_layout_input *input, const char *path)
{
	for (size_t i = 0; i < input->writable_count; i++) {
		if (coop_path_below(path, input->writable[i].path))
			return true;
	}
	for (size_t i = 0; i < input->readable_count; i++) {
		if (coop_path_below(path, input->readable[i].path))
			return true;
	}
	return false;
}

/* Denied paths in the home are hidden in the layer, whether they exist or not. */
static void mask_denied(struct coop_builder *b, const char *denied)
{
	const char *home = b->input->home;
	char path[COOP_PATH_SIZE], real[COOP_PATH_SIZE];
	bool exists;

	if (coop_glob_special(denied) || coop_path_expand(denied, home, path) < 0 ||
	    !coop_path_normal(path) || coop_path_resolve(path, real, &exists) < 0)
		return;
	if (coop_path_below(real, home) && strcmp(real, home) != 0 && !in_a_root(b->input, real))
		mask_path(b, real);
}

/* The user's own home is looked through once for a layout. */
static const struct coop_found *rows_of(struct coop_builder *b, const char *home,
					struct coop_found *room)
{
	bool own = home == b->input->home;
	struct coop_found *rows = own ? b->credentials : room;

	if (!own || !b->looked)
		coop_credentials_look(home, own ? b->input->credentials : NULL, rows);
	b->looked |= own;
	return rows;
}

static void collect_masks(struct coop_builder *b)
{
	const struct coop_found *rows = rows_of(b, b->input->home, NULL);
	char path[COOP_PATH_SIZE];
	const char *last = NULL;

	for (uint32_t i = 0; i < coop_credentials_count; i++) {
		const char *name = coop_credentials[i];
		if (rows[i].state != COOP_FOUND_LINKED)
			add_row(b, name,
				rows[i].state == COOP_FOUND_PLAIN ? strlen(name) : rows[i].known,
				&last);
	}
	/* What links lead to may hold, or lie in, any of the others. */
	for (uint32_t i = 0; i < coop_credentials_count; i++) {
		if (rows[i].state == COOP_FOUND_LINKED &&
		    coop_path_join(b->input->home, coop_credentials[i], path) == 0)
			mask_path(b, path);
	}
	for (const char *const *p = b->input->hidden; p && *p; p++) {
		if (coop_path_below(*p, b->input->home) && strcmp(*p, b->input->home) != 0)
			add_mask(b, *p + strlen(b->input->home) + 1);
	}
	for (char *const *p = b->input->policy->deny_read; p && *p; p++)
		mask_denied(b, *p);
}

bool coop_layout_masks_path(const struct coop_builder *b, const char *path)
{
	size_t size = strlen(b->input->home);

	return path[size] && masked(b, path + size + 1);
}

/* Whether something is mounted in the home, not on it. */
static bool holds_mounts(struct coop_builder *b)
{
	const struct coop_mountinfo *mounts = coop_layout_mounts(b);
	const char *home = b->input->home;

	for (size_t i = 0; i < mounts->count; i++) {
		const char *point = mounts->mounts[i].point;
		if (coop_path_below(point, home) && strcmp(point, home) != 0)
			return true;
	}
	return false;
}

/* What can be had. An overlay keeps the owners of files: with other owners below, as under a root
 * keeper, it would show a home that the process may hardly read. And it shows what lies beneath
 * other mounts, which the kernel does not let an ordinary user look at: over a folder that holds
 * some there is none. */
static enum coop_home possible(struct coop_builder *b)
{
	const struct coop_layout_input *input = b->input;
	enum coop_home home = (enum coop_home)input->policy->home;

	if (home != COOP_HOME_COW)
		return home;
	if (input->root_keeper)
		return COOP_HOME_HIDDEN;
	return input->host->error[COOP_CAN_OVERLAY] || holds_mounts(b) ? COOP_HOME_READ_ONLY
								       : COOP_HOME_COW;
}

static void add_layer(struct coop_builder *b)
{
	collect_masks(b);
	struct coop_plan_op op = {.kind = COOP_OP_LAYER,
				  .fd = -1,
				  .size = LAYER_BYTES,
				  .inodes = LAYER_INODES,
				  .count = b->mask_count};
	const char *names = (const char *)coop_buf_front(&b->masks), *folder = NULL;
	if (!b->failed && b->input->masks)
		folder = coop_masks_find(b->input->masks, b->input->home, names,
					 coop_buf_size(&b->masks));
	if (folder)
		op.source = coop_builder_string(b, folder);
	op.data = coop_builder_text(b, names, coop_buf_size(&b->masks));
	coop_builder_op(b, op, b->input->home);
	coop_builder_enter(b, b->input->home, COOP_ZONE_LAYER);
}

static void add_hidden(struct coop_builder *b, const char *home)
{
	if (b->input->root_keeper)
		coop_builder_op(b, (struct coop_plan_op){.kind = COOP_OP_WAY, .fd = -1}, home);
	coop_builder_op(b,
			(struct coop_plan_op){.kind = COOP_OP_TMPFS,
					      .fd = -1,
					      .size = HIDDEN_BYTES,
					      .inodes = HIDDEN_INODES,
					      .mode = 0755},
			home);
	coop_builder_enter(b, home, COOP_ZONE_PRIVATE);
}

/* Before the home itself, which may lie in one of them. */
static void hide_others(struct coop_builder *b)
{
	struct stat st;

	if (possible(b) != COOP_HOME_HIDDEN)
		return;
	for (const char *const *other = b->input->other_homes; other && *other; other++) {
		if (coop_builder_zone(b, *other, NULL) == COOP_ZONE_HOST &&
		    lstat(*other, &st) == 0 && S_ISDIR(st.st_mode))
			add_hidden(b, *other);
	}
}

void coop_layout_home(struct coop_builder *b)
{
	const char *home = b->input->home;
	struct stat st;

	b->out->home = COOP_HOME_READ_ONLY;
	if (!home || !home[1] || b->degraded)
		return;
	hide_others(b);
	bool exists = lstat(home, &st) == 0 && S_ISDIR(st.st_mode);
	const char *top;
	enum coop_home wanted = possible(b);
	enum coop_zone zone = coop_builder_zone(b, home, &top);
	bool private = zone == COOP_ZONE_PRIVATE;
	/* Nothing can be shown where the host has nothing, and what is private already needs no
	 * second cover. */
	if ((private && !strcmp(top, home)) || (private && !exists))
		wanted = COOP_HOME_HIDDEN;
	else if (!exists)
		return;
	b->out->home = (int)wanted;
	if (wanted == COOP_HOME_COW) {
		add_layer(b);
	} else if (wanted == COOP_HOME_HIDDEN) {
		if (strcmp(top, home) != 0)
			add_hidden(b, home);
	} else if (private || zone == COOP_ZONE_WRITABLE) {
		coop_builder_op(b, (struct coop_plan_op){.kind = COOP_OP_TREE, .fd = -1}, home);
		coop_builder_enter(b, home, COOP_ZONE_READABLE);
	}
}

/* Where the home has no layer, or a tree or a link shows them all the same, credentials are covered
 * as other denied paths are. Those that are missing matter only where they could be made, in the
 * home itself: others may lie in a folder for work. */
static void cover_credential(struct coop_builder *b, const char *home, const char *path,
			     enum coop_found_state state)
{
	char real[COOP_PATH_SIZE];
	const char *top;
	bool exists = state == COOP_FOUND_PLAIN;

	(void)snprintf(real, sizeof real, "%s", path);
	if (state == COOP_FOUND_LINKED && coop_path_resolve(path, real, &exists) < 0)
		return;
	enum coop_zone zone = coop_builder_zone(b, real, &top);
	bool brought = zone == COOP_ZONE_READABLE || zone == COOP_ZONE_WRITABLE;
	/* Who grants a folder in one of them by its name means it. */
	if (brought && coop_path_below(top, real))
		return;
	if (exists || (zone == COOP_ZONE_WRITABLE && home == b->input->home))
		coop_layout_deny_real(b, real);
}

bool coop_layout_is_credential(const char *home, struct coop_found_memory **memory,
			       const char *path)
{
	struct coop_found rows[COOP_CREDENTIALS_MAX];
	char at[COOP_PATH_SIZE], real[COOP_PATH_SIZE];
	bool exists;

	coop_credentials_look(home, memory, rows);
	bool at_home = coop_path_below(path, home);
	for (uint32_t i = 0; i < coop_credentials_count; i++) {
		bool linked = rows[i].state == COOP_FOUND_LINKED;
		if ((!at_home && !linked) || coop_path_join(home, coop_credentials[i], at) < 0)
			continue;
		if (coop_path_below(path, at))
			return true;
		if (linked && coop_path_resolve(at, real, &exists) == 0 &&
		    coop_path_below(path, real))
			return true;
	}
	return false;
}

static void cover_in(struct coop_builder *b, const char *home)
{
	const struct coop_layout_input *input = b->input;
	struct coop_found room[COOP_CREDENTIALS_MAX];
	char path[COOP_PATH_SIZE];
	bool brings_back = false, writes = false;

	/* A link in the home may lead into a folder that is seen. */
	for (size_t i = 0; i < input->writable_count; i++) {
		brings_back |= coop_path_below(input->writable[i].path, home);
		writes |= coop_path_below(home, input->writable[i].path);
	}
	writes |= brings_back;
	for (size_t i = 0; i < input->readable_count; i++)
		brings_back |= coop_path_below(input->readable[i].path, home);
	/* What lies in a private home, and in no folder that was brought back, is not there at all;
	 * what its links lead to may be. */
	bool hidden = !brings_back && coop_builder_zone(b, home, NULL) == COOP_ZONE_PRIVATE;
	const struct coop_found *rows = rows_of(b, home, room);
	for (uint32_t i = 0; i < coop_credentials_count; i++) {
		enum coop_found_state state = rows[i].state;
		bool matters = state == COOP_FOUND_LINKED ||
			       (!hidden && (state == COOP_FOUND_PLAIN || writes));
		if (matters && coop_path_join(home, coop_credentials[i], path) == 0)
			cover_credential(b, home, path, state);
	}
}

void coop_layout_cover_masks(struct coop_builder *b)
{
	const char *home = b->input->home;

	/* Browsers keep many thousand files: looking at each for every process would cost more than
	 * it is worth. */
	b->shallow = true;
	if (home && home[1])
		cover_in(b, home);
	for (const char *const *other = b->input->other_homes; other && *other; other++)
		cover_in(b, *other);
	b->shallow = false;
}
