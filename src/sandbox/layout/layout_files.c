/* Files that the caller gives to the process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "interface/err.h"
#include "sandbox/layout/layout_builder.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/layout/path_walk.h"

#define FIELD_SIZE 48

static void refuse(struct coop_builder *b, size_t i, const char *why)
{
	char field[FIELD_SIZE];

	(void)snprintf(field, sizeof field, "file_injections[%zu].path", i);
	coop_builder_fail(b, coop_err_field(b->err, COOP_INVALID_INPUT, field, "%s %s: %.300s",
					    field, why, b->input->injections[i].path));
}

/* In a /tmp that is shared the name would stay: it is a placeholder on disk, too. In folders that
 * are not there yet, or are links, it is made when the view is. */
static const char *place_in_tmp(struct coop_builder *b, const char *path)
{
	char disk[COOP_PATH_SIZE], parent[COOP_PATH_SIZE], real[COOP_PATH_SIZE];
	struct stat st;
	bool exists;

	if (!strcmp(path, COOP_LAYOUT_TMP))
		return "is a folder";
	if (coop_path_join(b->input->tmp->path, path + strlen(COOP_LAYOUT_TMP "/"), disk) < 0)
		return "is too long";
	int r = coop_builder_look(b, disk, &st);
	if (r == 0)
		return S_ISDIR(st.st_mode) ? "is a folder" : NULL;
	coop_path_parent(disk, parent);
	if (r == -ENOENT && coop_path_resolve(parent, real, &exists) == 0 && exists &&
	    !strcmp(real, parent))
		(void)coop_builder_ghost(b, disk, false);
	return NULL;
}

/* Where a file can be put: on one that exists, or in what is private; in a writable root on a
 * placeholder. NULL, or why not. */
static const char *place(struct coop_builder *b, const char *path)
{
	char parent[COOP_PATH_SIZE];
	struct stat st;
	int r = coop_builder_look(b, path, &st);
	const char *top;
	enum coop_zone zone = coop_builder_zone(b, path, &top);

	/* A denied file itself may be given another content. */
	coop_path_parent(path, parent);
	if (coop_builder_sealed(b, parent, COOP_SEAL_COVER))
		return "is denied";
	if (zone == COOP_ZONE_PRIVATE && coop_builder_holds_tree(b, path))
		return "is a folder";
	if (zone == COOP_ZONE_PRIVATE)
		return b->input->tmp && !strcmp(top, COOP_LAYOUT_TMP) ? place_in_tmp(b, path)
								      : NULL;
	if (zone == COOP_ZONE_OWN)
		return "must not lie in /dev, /proc or /sys";
	/* Of what the layer hides nothing is there. */
	if (zone == COOP_ZONE_LAYER && b->input->seen && coop_layout_masks_path(b, path))
		return NULL;
	if (r == 0)
		return S_ISDIR(st.st_mode) ? "is a folder" : NULL;
	if (zone == COOP_ZONE_LAYER)
		return NULL;
	if (zone != COOP_ZONE_WRITABLE || lstat(parent, &st) < 0 || !S_ISDIR(st.st_mode))
		return "is not there, and its folder is neither writable nor private as /run and "
		       "/tmp are";
	if (coop_builder_sealed(b, path, COOP_SEAL_READONLY))
		return "is protected";
	(void)coop_builder_ghost(b, path, false);
	return NULL;
}

static void put_file(struct coop_builder *b, const struct coop_injection *file, const char *path)
{
	struct coop_plan_op op = {.kind = COOP_OP_FILE, .fd = -1, .size = file->size, .mode = 0444};

	op.data = coop_builder_text(b, file->bytes, file->size);
	coop_builder_op(b, op, path);
}

/* Where must not be looked, a file is put into what is private, and on what the home's layer
 * shows or hides: there the command sees for itself. `real` is where it leads by its words.
 * NULL, or why not; one reason for all of it. */
static const char *find_outside(const struct coop_builder *b, char *real)
{
	char place[COOP_PATH_SIZE];
	bool exists;

	switch (*real ? coop_builder_zone(b, real, NULL) : COOP_ZONE_HOST) {
	case COOP_ZONE_PRIVATE:
		return NULL;
	case COOP_ZONE_LAYER:
		if (coop_layout_masks_path(b, real) ||
		    (coop_path_resolve(real, place, &exists) == 0 && !strcmp(place, real)))
			return NULL;
		break;
	case COOP_ZONE_HOST:
	case COOP_ZONE_READABLE:
	case COOP_ZONE_WRITABLE:
	case COOP_ZONE_OWN:
		break;
	}
	return "lies outside of what this agent may read, and is not private as /run and /tmp are";
}

/* What the path leads to. NULL, or why nothing can be put there. */
static const char *find(const struct coop_builder *b, const char *path, char *real)
{
	const struct coop_lookable *seen = b->input->seen;
	bool exists;
	int r = seen ? coop_path_walk(seen, path, real) : coop_path_resolve(path, real, &exists);

	if (seen && r == -EXDEV)
		return find_outside(b, real);
	if (seen && *real && (r == -ENOENT || r == -ENOTDIR))
		return NULL;
	return r < 0 ? "cannot be reached" : NULL;
}

static void add_file(struct coop_builder *b, size_t i)
{
	const struct coop_injection *injection = &b->input->injections[i];
	const char *path = injection->path, *why;
	char real[COOP_PATH_SIZE];

	if (!coop_path_normal(path) || !path[1]) {
		refuse(b, i, "must be absolute, without . and ..");
		return;
	}
	if (coop_path_below(path, "/proc") || coop_path_below(path, "/dev") ||
	    coop_path_below(path, "/sys")) {
		refuse(b, i, "must not lie in /dev, /proc or /sys");
		return;
	}
	/* What is private in the view has nothing to do with the host's links. */
	if (coop_builder_zone(b, path, NULL) != COOP_ZONE_PRIVATE) {
		why = find(b, path, real);
		if (why) {
			refuse(b, i, why);
			return;
		}
		path = real;
	}
	why = place(b, path);
	if (why) {
		refuse(b, i, why);
		return;
	}
	put_file(b, injection, path);
}

/* They are there already, and plain files: whatever a link leads to is left as it is. */
void coop_layout_replaced(struct coop_builder *b)
{
	char real[COOP_PATH_SIZE];
	struct stat st;
	bool exists;

	for (size_t i = 0; i < b->input->replaced_count && !b->degraded && !b->failed; i++) {
		const struct coop_injection *file = &b->input->replaced[i];
		if (coop_path_resolve(file->path, real, &exists) < 0 || !exists ||
		    strcmp(real, file->path) != 0 || lstat(real, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		put_file(b, file, real);
	}
}

void coop_layout_files(struct coop_builder *b)
{
	if (b->degraded && b->input->injection_count && !b->failed) {
		coop_builder_fail(b, coop_err_set(b->err, COOP_SANDBOX_UNAVAILABLE,
						  "sandbox: files cannot be injected at a path "
						  "without mounts"));
		coop_err_detail(b->err, "protection", "files");
		return;
	}
	for (size_t i = 0; i < b->input->injection_count && !b->failed; i++)
		add_file(b, i);
}
