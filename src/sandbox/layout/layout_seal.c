/* The way to a path that is sealed: every name on it that somebody inside could change is held,
 * links one by one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/layout/layout_builder.h"
#include "sandbox/layout/layout_path.h"

#define LINKS_MAX 40 /* the kernel follows no more */

struct way {
	struct coop_builder *b;
	enum coop_seal_kind kind;
	struct coop_stand_in missing;
	int links;
	uint32_t flags;
	char at[COOP_PATH_SIZE];   /* without links */
	char rest[COOP_PATH_SIZE]; /* as it was written */
};

/* Inside, a placeholder that is no folder reads as an empty file: most programs know no better than
 * to open it. `end`: no more names follow. */
static void hold_missing(struct coop_builder *b, const struct coop_stand_in *missing, bool end,
			 enum coop_seal_kind kind, const char *path)
{
	bool folder = end ? missing->folder : !missing->flat;
	const char *content = end && kind != COOP_SEAL_COVER ? missing->content : NULL;
	uint32_t flags = COOP_OP_OPTIONAL;

	struct coop_ghost *ghost = coop_builder_ghost(b, path, folder);
	if (ghost && content && !folder)
		ghost->content = content;
	else if (ghost && !folder)
		kind = COOP_SEAL_COVER;
	if (ghost)
		ghost->never_folder |= missing->never_folder;
	if (kind == COOP_SEAL_COVER)
		flags |= COOP_OP_ABSENT;
	coop_builder_seal(b, path, kind, flags);
}

/* Where the way ends. Outside of what can be written only reading matters. */
static void seal_end(struct way *way, const char *path)
{
	enum coop_zone zone = coop_builder_zone(way->b, path, NULL);

	if (zone == COOP_ZONE_WRITABLE)
		coop_builder_seal(way->b, path, way->kind, way->flags);
	else if (way->kind == COOP_SEAL_COVER)
		coop_builder_seal(way->b, path, way->kind, 0);
}

/* Puts what the link says before the rest. */
static bool follow(struct way *way, const char *link)
{
	return coop_path_follow(link, way->at, way->rest) == 0 && ++way->links <= LINKS_MAX;
}

/* One name further. False: the way has ended. */
static bool step(struct way *way, const char *name)
{
	struct coop_builder *b = way->b;
	char path[COOP_PATH_SIZE];
	const char *top;
	struct stat st;

	if (coop_path_join(way->at, name, path) < 0)
		return false;
	/* The top is a mount of its own, which nobody moves. */
	bool writable =
		coop_builder_zone(b, path, &top) == COOP_ZONE_WRITABLE && strcmp(path, top) != 0;
	int r = coop_builder_look(b, path, &st);
	if (r < 0) {
		/* Closed to us, so to the process; but its owner could open it. */
		if (writable && r != -ENOENT)
			coop_builder_seal(b, way->at, COOP_SEAL_READONLY, 0);
		else if (writable)
			hold_missing(b, &way->missing, !*way->rest, way->kind, path);
		return false;
	}
	if (S_ISLNK(st.st_mode)) {
		if (writable)
			coop_builder_seal(b, path, COOP_SEAL_PIN, way->flags);
		return follow(way, path);
	}
	(void)snprintf(way->at, sizeof way->at, "%s", path);
	if (!*way->rest)
		return true;
	if (writable)
		coop_builder_seal(b, path, S_ISDIR(st.st_mode) ? COOP_SEAL_PIN : COOP_SEAL_READONLY,
				  S_ISDIR(st.st_mode) ? way->flags : 0);
	if (b->input->root_keeper && !(st.st_mode & S_IXOTH))
		way->flags = COOP_OP_OPTIONAL;
	return S_ISDIR(st.st_mode);
}

void coop_layout_hold(struct coop_builder *b, const char *root, const char *name,
		      struct coop_stand_in missing)
{
	const char *rest = name + strcspn(name, "/");
	char path[COOP_PATH_SIZE];

	if (b->failed || coop_path_join(root, name, path) < 0)
		return;
	path[strlen(path) - strlen(rest)] = 0;
	hold_missing(b, &missing, !*rest || !rest[1], COOP_SEAL_READONLY, path);
}

void coop_layout_seal_in(struct coop_builder *b, const char *root, const char *path,
			 enum coop_seal_kind kind, struct coop_stand_in missing)
{
	char name[COOP_PATH_SIZE];
	struct way way;

	/* One by one: most of it is room that need not be cleared. */
	way.b = b;
	way.kind = kind;
	way.missing = missing;
	way.links = 0;
	way.flags = 0;
	(void)snprintf(way.at, sizeof way.at, "%s", root);
	(void)snprintf(way.rest, sizeof way.rest, "%s", path + (root[1] ? strlen(root) : 0));
	while (!b->failed && coop_path_cut(way.rest, name)) {
		if (!strcmp(name, ".."))
			coop_path_parent(way.at, way.at);
		else if (strcmp(name, ".") != 0 && !step(&way, name))
			return;
	}
	if (!b->failed)
		seal_end(&way, way.at);
}
