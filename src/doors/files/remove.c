/* Removes a file, or a directory with all that is in it. Links are removed, never followed.
 *
 * The directories on the way down are held open, up to a number of them. What lies deeper is first
 * moved up into the directory that is to go, under a name of its own, so that any depth needs no
 * more than that. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "doors/files/talk.h"

#define LEVELS 32u

struct level {
	DIR *dir;
	char name[NAME_MAX + 1]; /* in the level above */
	bool progress; /* something of it went since it was last read from its beginning */
};

struct removal {
	char path[FILES_PATH_MAX];
	int parent; /* of the directory that is to go */
	unsigned depth, moved;
	struct level levels[LEVELS];
};

static void drop_removal(struct files_talk *talk)
{
	struct removal *removal = talk->state;

	for (unsigned i = 0; i < removal->depth; i++)
		(void)closedir(removal->levels[i].dir);
	if (removal->parent >= 0)
		(void)close(removal->parent);
	free(removal);
}

static int above(const struct removal *removal, unsigned level)
{
	return level ? dirfd(removal->levels[level - 1].dir) : removal->parent;
}

static int descend(struct removal *removal, const char *name)
{
	COOP_AUTO_FD int fd = openat(above(removal, removal->depth), name,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	DIR *dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)COOP_TAKE_FD(fd);
	struct level *level = &removal->levels[removal->depth++];
	level->dir = dir;
	level->progress = false;
	(void)snprintf(level->name, sizeof level->name, "%s", name);
	return 0;
}

/* To the first level, where it is found when that is read again. */
static int move_up(struct removal *removal, const char *name)
{
	char fresh[64];
	int r;

	do {
		(void)snprintf(fresh, sizeof fresh, ".coop-remove-%d-%u", (int)getpid(),
			       removal->moved++);
		r = renameat2(above(removal, removal->depth), name, dirfd(removal->levels[0].dir),
			      fresh, RENAME_NOREPLACE);
	} while (r < 0 && errno == EEXIST);
	return r < 0 ? -errno : 0;
}

/* One name in the deepest level. */
static int remove_name(struct removal *removal, const struct dirent *entry)
{
	struct level *level = &removal->levels[removal->depth - 1];
	int directory = entry->d_type == DT_DIR;

	if (!directory) {
		if (unlinkat(dirfd(level->dir), entry->d_name, 0) == 0 || errno == ENOENT) {
			level->progress = true;
			return 0;
		}
		/* Not every file system tells the kind. */
		if (errno != EISDIR)
			return -errno;
	}
	if (removal->depth < LEVELS)
		return descend(removal, entry->d_name);
	level->progress = true;
	removal->levels[0].progress = true;
	return move_up(removal, entry->d_name);
}

/* The deepest level has been read to its end. */
static int ascend(struct removal *removal)
{
	struct level *level = &removal->levels[removal->depth - 1];

	if (unlinkat(above(removal, removal->depth - 1), level->name, AT_REMOVEDIR) < 0 &&
	    errno != ENOENT) {
		/* Names may be passed over while others go, and new ones may come. */
		if ((errno != ENOTEMPTY && errno != EEXIST) || !level->progress)
			return -errno;
		level->progress = false;
		rewinddir(level->dir);
		return 0;
	}
	(void)closedir(level->dir);
	removal->depth--;
	if (removal->depth)
		removal->levels[removal->depth - 1].progress = true;
	return 0;
}

static int work(struct removal *removal)
{
	int r = 0;

	for (unsigned i = 0; i < FILES_TURN && removal->depth && r == 0; i++) {
		errno = 0;
		const struct dirent *entry = readdir(removal->levels[removal->depth - 1].dir);
		if (!entry)
			r = errno ? -errno : ascend(removal);
		else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = remove_name(removal, entry);
	}
	return r;
}

/* 0: it is gone, or work is left. */
static int begin(struct removal *removal)
{
	const char *name = NULL;

	removal->parent = files_path_open_parent(removal->path, &name);
	if (removal->parent < 0)
		return removal->parent == -ENOTDIR ? -ENOENT : removal->parent;
	if (unlinkat(removal->parent, name, 0) == 0)
		return 0;
	return errno == EISDIR ? descend(removal, name) : -errno;
}

enum files_turn files_remove(struct files_talk *talk, struct files_request *request)
{
	struct removal *removal = talk->state;
	int r;

	if (removal) {
		r = work(removal);
	} else {
		removal = coop_mem_zalloc(sizeof *removal);
		if (!removal)
			return files_fail(talk, -ENOMEM, NULL);
		removal->parent = -1;
		talk->kind = FILES_WORK;
		talk->state = removal;
		talk->drop = drop_removal;
		if (files_take_path(talk, request, "path", removal->path) < 0)
			return FILES_OVER;
		r = begin(removal);
	}
	if (r < 0)
		return files_fail(talk, r, removal->path);
	if (removal->depth)
		return FILES_AGAIN;
	files_send_done(talk);
	return FILES_OVER;
}
