/* What must not be read: it is covered, wherever the view shows it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text/glob.h"
#include "interface/err.h"
#include "sandbox/layout/layout_builder.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/layout/mountinfo.h"
#include "sandbox/layout/path_walk.h"

#define MATCHES_MAX 1024u
#define ENTRIES_MAX 20000u
#define EMPTIED_BYTES (256u << 10) /* for the mount points of trees */
#define EMPTIED_INODES 256u

/* Under a root keeper the process is somebody else: what it cannot reach need not be covered, and
 * cannot. */
static uint32_t cover_flags(const struct coop_builder *b)
{
	return b->input->root_keeper ? COOP_OP_OPTIONAL : 0;
}

/* A missing path where the process cannot write. Somebody else may make it while the process runs:
 * if that is us, the name is held. */
static void deny_missing(struct coop_builder *b, const char *path)
{
	char part[COOP_PATH_SIZE], parent[COOP_PATH_SIZE];
	struct stat st;
	bool last = true;

	(void)snprintf(part, sizeof part, "%s", path);
	for (;;) {
		coop_path_parent(part, parent);
		int r = coop_builder_look(b, parent, &st);
		if (r == 0)
			break;
		if (r != -ENOENT)
			return;
		(void)snprintf(part, sizeof part, "%s", parent);
		last = false;
	}
	if (!S_ISDIR(st.st_mode) || faccessat(AT_FDCWD, parent, W_OK | X_OK, AT_EACCESS) < 0)
		return;
	(void)coop_builder_ghost(b, part, !last);
	coop_builder_seal(b, part, COOP_SEAL_COVER, COOP_OP_OPTIONAL);
}

static void cover(struct coop_builder *b, const char *path, bool exists)
{
	const char *top;

	switch (coop_builder_zone(b, path, &top)) {
	case COOP_ZONE_WRITABLE:
		coop_layout_seal_in(b, top, path, COOP_SEAL_COVER, (struct coop_stand_in){0});
		break;
	case COOP_ZONE_HOST:
	case COOP_ZONE_READABLE:
		if (exists)
			coop_builder_seal(b, path, COOP_SEAL_COVER, cover_flags(b));
		else
			deny_missing(b, path);
		break;
	case COOP_ZONE_LAYER:
		/* Names in the layer are hidden in it; matches of patterns are not. */
		if (coop_builder_holds_tree(b, path) ||
		    (exists && !coop_layout_masks_path(b, path)))
			coop_builder_seal(b, path, COOP_SEAL_COVER, 0);
		break;
	case COOP_ZONE_PRIVATE:
		if (coop_builder_holds_tree(b, path))
			coop_builder_seal(b, path, COOP_SEAL_COVER, 0);
		break;
	case COOP_ZONE_OWN:
		coop_builder_seal(b, path, COOP_SEAL_COVER, COOP_OP_OPTIONAL);
		break;
	}
}

struct alias_context {
	struct coop_builder *b;
	struct stat st;
};

/* The same file under another mount. Where that is covered by a third one, the path shows something
 * else. */
static void deny_alias(void *context, const char *alias)
{
	struct alias_context *known = context;
	struct coop_builder *b = known->b;
	struct stat st;

	if (!coop_path_normal(alias) || !alias[1] || lstat(alias, &st) < 0)
		return;
	if (S_ISLNK(st.st_mode) || st.st_dev != known->st.st_dev)
		return;
	cover(b, alias, true);
}

const struct coop_mountinfo *coop_layout_mounts(struct coop_builder *b)
{
	if (b->input->mounts)
		return b->input->mounts;
	int r = b->mounts.mounts || b->failed ? 0 : coop_mountinfo_read(&b->mounts);
	if (r < 0) {
		coop_mountinfo_clear(&b->mounts);
		if (r == -ENOMEM)
			coop_builder_no_memory(b);
		coop_builder_note(b, "other mounts of the same files are not known: %s",
				  coop_err_errno_name(-r));
	}
	return &b->mounts;
}

void coop_layout_aliases(struct coop_builder *b, const char *real,
			 void (*tell)(void *context, const char *alias), void *context)
{
	const struct coop_mountinfo *mounts = coop_layout_mounts(b);

	if (!b->failed)
		coop_mountinfo_aliases(mounts, real, tell, context);
}

static void deny_aliases(struct coop_builder *b, const char *path)
{
	struct alias_context known = {.b = b};

	if (coop_path_normal(path) && path[1] && lstat(path, &known.st) == 0)
		coop_layout_aliases(b, path, deny_alias, &known);
}

void coop_layout_deny_real(struct coop_builder *b, const char *real)
{
	struct alias_context known = {.b = b};
	int r = coop_builder_look(b, real, &known.st);

	cover(b, real, r == 0);
	if (r == 0)
		coop_layout_aliases(b, real, deny_alias, &known);
}

/* What an agent names where must not be looked is covered by its words, whatever is there; what
 * comes to be there is not its business. */
static void cover_unlooked(struct coop_builder *b, const char *path)
{
	enum coop_zone zone = coop_builder_zone(b, path, NULL);

	if (zone != COOP_ZONE_PRIVATE || coop_builder_holds_tree(b, path))
		coop_builder_seal(b, path, COOP_SEAL_COVER, COOP_OP_OPTIONAL | COOP_OP_UNLOOKED);
}

static void refuse_outside(struct coop_builder *b, const char *field, const char *word)
{
	coop_builder_fail(b, coop_err_field(b->err, COOP_BOUNDARY_ESCAPE, field,
					    "%s %.300s leads outside of what this agent may read, "
					    "and cannot be looked for there",
					    field, word));
}

static void deny_path(struct coop_builder *b, const struct coop_lookable *seen, const char *field,
		      const char *path)
{
	char real[COOP_PATH_SIZE];
	bool exists;

	if (b->failed)
		return;
	int r = seen ? coop_path_walk(seen, path, real) : coop_path_resolve(path, real, &exists);
	if (seen && r == -EXDEV && *real)
		cover_unlooked(b, real);
	else if (seen && r == -EXDEV)
		refuse_outside(b, field, path);
	/* What we may not reach the process may not either. */
	else if (r == 0 || (seen && r == -ENOENT && *real))
		coop_layout_deny_real(b, real);
}

struct match_context {
	struct coop_builder *b;
	const struct coop_lookable *seen;
	const char *field;
	size_t count;
};

static void deny_match(void *context, const char *path)
{
	struct match_context *matches = context;

	matches->count++;
	deny_path(matches->b, matches->seen, matches->field, path);
}

static void deny_listed(struct coop_builder *b)
{
	char *const *list = b->input->policy->deny_read;
	/* Those of an agent that begin where must not be looked are counted apart, and of how
	 * many there are nothing is told. */
	struct match_context matches = {.b = b}, unseen = {.b = b};
	size_t entries = ENTRIES_MAX, unseen_entries = ENTRIES_MAX, patterns = 0;
	char path[COOP_PATH_SIZE], field[48];

	for (size_t i = 0; list && list[i] && !b->failed; i++) {
		int r = coop_path_expand(list[i], b->input->home, path);
		(void)snprintf(field, sizeof field, "sandbox.deny_read[%zu]", i);
		if (r == -ENOENT)
			continue;
		if (r < 0 || !coop_path_normal(path) || !path[1]) {
			coop_builder_fail(b, coop_err_field(b->err, COOP_INVALID_INPUT, field,
							    "%s cannot be denied: %.300s", field,
							    list[i]));
			return;
		}
		/* Without mounts what is there can be seen to be there anyway. */
		matches.seen = b->degraded || !b->input->seen ||
					       b->input->seen->owners(b->input->seen, list[i])
				       ? NULL
				       : b->input->seen;
		matches.field = field;
		if (!coop_glob_special(path)) {
			deny_path(b, matches.seen, field, path);
			continue;
		}
		patterns++;
		bool outside = matches.seen && coop_path_begins_outside(matches.seen, path);
		struct match_context *mine = outside ? &unseen : &matches;
		mine->seen = matches.seen;
		mine->field = field;
		r = coop_path_glob(path, outside ? NULL : matches.seen, MATCHES_MAX - mine->count,
				   outside ? &unseen_entries : &entries, deny_match, mine);
		if (r < 0)
			coop_builder_fail(b, coop_err_field(b->err, COOP_TOO_LARGE, field,
							    "%s has more than %u matches, or too "
							    "much to look through: %.300s",
							    field, MATCHES_MAX, list[i]));
	}
	if (patterns)
		(void)snprintf(b->out->globs, sizeof b->out->globs,
			       "%zu pattern%s, %zu match%s at the start", patterns,
			       patterns == 1 ? "" : "s", matches.count,
			       matches.count == 1 ? "" : "es");
}

/* Sockets in the workspace are the workspace's own. */
static void deny_sockets(struct coop_builder *b)
{
	char real[COOP_PATH_SIZE];
	struct stat st;
	bool exists;

	for (const char *const *p = b->input->sockets; p && *p; p++) {
		enum coop_zone zone = coop_builder_zone(b, *p, NULL);
		/* There may be many, and most lie in what is private. */
		if (zone != COOP_ZONE_HOST && zone != COOP_ZONE_READABLE && zone != COOP_ZONE_LAYER)
			continue;
		if (!coop_path_normal(*p) || coop_path_resolve(*p, real, &exists) < 0 || !exists ||
		    strcmp(real, *p) != 0 || coop_builder_look(b, real, &st) < 0 ||
		    !S_ISSOCK(st.st_mode))
			continue;
		/* They come and go. */
		coop_builder_seal(b, real, COOP_SEAL_COVER, COOP_OP_OPTIONAL);
	}
}

void coop_layout_hide_keeper(struct coop_builder *b)
{
	struct stat st;

	for (const char *const *p = b->input->hidden; p && *p; p++) {
		enum coop_zone zone = coop_builder_zone(b, *p, NULL);
		if (!coop_path_normal(*p) || !(*p)[1] || lstat(*p, &st) < 0)
			continue;
		/* In the layer it is hidden by its name, unless it is all of the home. */
		if (zone == COOP_ZONE_HOST || zone == COOP_ZONE_READABLE ||
		    (zone == COOP_ZONE_LAYER && !strcmp(*p, b->input->home)))
			coop_builder_op(b,
					(struct coop_plan_op){.kind = COOP_OP_COVER,
							      .flags = cover_flags(b),
							      .fd = -1},
					*p);
	}
}

void coop_layout_empty(struct coop_builder *b)
{
	const char *path = b->input->emptied;
	struct stat st;

	if (!path || !coop_path_normal(path) || !path[1] || lstat(path, &st) < 0 ||
	    !S_ISDIR(st.st_mode))
		return;
	enum coop_zone zone = coop_builder_zone(b, path, NULL);
	/* In what is private nothing of it is seen anyway. */
	if (zone != COOP_ZONE_HOST && zone != COOP_ZONE_READABLE && zone != COOP_ZONE_LAYER)
		return;
	if (b->input->root_keeper)
		coop_builder_op(b, (struct coop_plan_op){.kind = COOP_OP_WAY, .fd = -1}, path);
	coop_builder_op(b,
			(struct coop_plan_op){.kind = COOP_OP_TMPFS,
					      .fd = -1,
					      .size = EMPTIED_BYTES,
					      .inodes = EMPTIED_INODES,
					      .mode = 0555},
			path);
	coop_builder_enter(b, path, COOP_ZONE_PRIVATE);
}

/* Once more for what a tree brought back, or whose home came later. */
static void deny_keeper(struct coop_builder *b)
{
	for (const char *const *p = b->input->hidden; p && *p; p++) {
		enum coop_zone zone = coop_builder_zone(b, *p, NULL);
		if (coop_path_normal(*p) && (*p)[1] &&
		    (b->degraded || zone == COOP_ZONE_READABLE || zone == COOP_ZONE_WRITABLE ||
		     coop_builder_holds_tree(b, *p)))
			cover(b, *p, access(*p, F_OK) == 0);
		/* What is shown by name may hold another mount of the same folder. */
		if (b->input->readable_count && !b->degraded)
			deny_aliases(b, *p);
	}
	const char *emptied = b->input->emptied;
	if (!emptied || !coop_path_normal(emptied) || access(emptied, F_OK) < 0)
		return;
	enum coop_zone zone = coop_builder_zone(b, emptied, NULL);
	if (b->degraded)
		coop_builder_seal(b, emptied, COOP_SEAL_COVER, 0);
	else if (zone == COOP_ZONE_READABLE || zone == COOP_ZONE_WRITABLE)
		cover(b, emptied, true);
}

void coop_layout_deny(struct coop_builder *b)
{
	deny_keeper(b);
	coop_layout_cover_masks(b);
	deny_listed(b);
	/* Landlock says nothing of connecting. */
	if (!b->degraded)
		deny_sockets(b);
}
