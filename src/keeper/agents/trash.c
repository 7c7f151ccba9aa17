#include "keeper/agents/trash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/log.h"
#include "base/mem.h"
#include "keeper/agents/agent_folders.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/link/job.h"

#define SLICE 256 /* names that are deleted or moved before it is somebody else's turn */

struct coop_trash {
	struct coop_job job;
	char **paths;
	size_t count, capacity;
	uint64_t moved_up; /* folders that got a name in the top one */
	int top;           /* of the one that is being deleted */
	void (*moved)(struct coop_trash *trash, void *user);
	void *user;
};

struct coop_trash *coop_trash_new(void)
{
	return coop_mem_zalloc(sizeof(struct coop_trash));
}

void coop_trash_free(struct coop_trash *trash)
{
	for (size_t i = 0; trash && i < trash->count; i++)
		free(trash->paths[i]);
	if (trash)
		free(trash->paths);
	free(trash);
}

/* Moved by this keeper or by an earlier one that did not come to delete it. */
static bool ends_gone(const char *path)
{
	size_t size = strlen(path), end = strlen(COOP_AGENT_FOLDER_GONE);

	return size > end && !strcmp(path + size - end, COOP_AGENT_FOLDER_GONE);
}

int coop_trash_add(struct coop_trash *trash, const char *path)
{
	/* With room for its other name. */
	size_t size = strlen(path) + sizeof COOP_AGENT_FOLDER_GONE;

	if (trash->count == trash->capacity) {
		size_t capacity = trash->capacity ? 2 * trash->capacity : 4;
		char **grown = coop_mem_realloc(trash->paths, capacity * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		trash->paths = grown;
		trash->capacity = capacity;
	}
	char *copy = coop_mem_alloc(size);
	if (!copy)
		return -ENOMEM;
	(void)snprintf(copy, size, "%s", path);
	trash->paths[trash->count++] = copy;
	return 0;
}

static void move_away(char *path)
{
	char before[8192];
	size_t size = strlen(path);

	if (ends_gone(path) || size >= sizeof before)
		return;
	memcpy(before, path, size + 1);
	/* There is room: coop_trash_add. */
	memcpy(path + size, COOP_AGENT_FOLDER_GONE, sizeof COOP_AGENT_FOLDER_GONE);
	/* One that cannot be moved is not there any more, or is deleted where it is. */
	if (rename(before, path) < 0)
		path[size] = 0;
}

static void run_move(struct coop_job *job)
{
	struct coop_trash *trash = (struct coop_trash *)job;

	for (size_t i = 0; i < trash->count; i++)
		move_away(trash->paths[i]);
}

static void done_move(struct coop_job *job)
{
	struct coop_trash *trash = (struct coop_trash *)job;

	trash->moved(trash, trash->user);
}

void coop_trash_move(struct coop_keeper *keeper, struct coop_trash *trash,
		     void (*moved)(struct coop_trash *trash, void *user), void *user)
{
	trash->moved = moved;
	trash->user = user;
	trash->job = (struct coop_job){.run = run_move, .done = done_move};
	coop_job_begin(keeper, &trash->job);
}

/* Whoever made it may have taken the rights away that deleting needs. */
static int open_folder(int parent, const char *name)
{
	char link[64];
	COOP_AUTO_FD int place =
		openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (place < 0)
		return -1;
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", place);
	(void)chmod(link, 0700); /* where it is not ours to change, opening says so */
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Calls `one` for each name until it says that it is enough (1) or that it cannot be done (-errno).
 * 0: those were all. */
static int each_name(int fd, int (*one)(struct coop_trash *, int fd, const char *name, int *left),
		     struct coop_trash *trash, int *left)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *folder = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	if (!folder) {
		r = -errno;
		if (copy >= 0)
			(void)close(copy);
		return r;
	}
	while (r == 0 && (entry = readdir(folder))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = --*left < 0 ? 1 : one(trash, fd, entry->d_name, left);
	}
	(void)closedir(folder);
	return r;
}

/* 0: it is gone; 1: it is a folder that is not empty; -errno. */
static int delete_name(int fd, const char *name)
{
	if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return errno == ENOTEMPTY || errno == EEXIST || errno == EACCES ? 1 : -errno;
}

/* A name two levels down: a folder there gets a name in the top one, so that it never goes
 * deeper. */
static int empty_inner(struct coop_trash *trash, int fd, const char *name, int *left)
{
	char up[24];
	int r = delete_name(fd, name);

	(void)left;
	if (r <= 0)
		return r;
	/* Moving it changes it, and so needs its own rights. */
	int inner = open_folder(fd, name);
	if (inner >= 0)
		(void)close(inner);
	do {
		(void)snprintf(up, sizeof up, "%llu", (unsigned long long)trash->moved_up++);
		r = renameat2(fd, name, trash->top, up, RENAME_NOREPLACE) < 0 ? -errno : 0;
	} while (r == -EEXIST);
	return r;
}

static int empty_outer(struct coop_trash *trash, int fd, const char *name, int *left)
{
	int r = delete_name(fd, name);

	if (r <= 0)
		return r;
	COOP_AUTO_FD int inner = open_folder(fd, name);
	if (inner < 0)
		return -errno;
	r = each_name(inner, empty_inner, trash, left);
	if (r == 0 && unlinkat(fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = errno == ENOTEMPTY ? 1 : -errno;
	return r;
}

/* A slice of the last folder. 0: it is gone; 1: there is more; -errno. */
static int delete_some(struct coop_trash *trash, const char *path)
{
	int left = SLICE;
	COOP_AUTO_FD int fd = open_folder(AT_FDCWD, path);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	trash->top = fd;
	int r = each_name(fd, empty_outer, trash, &left);
	if (r == 0 && rmdir(path) < 0 && errno != ENOENT)
		r = errno == ENOTEMPTY ? 1 : -errno;
	return r;
}

static void run_slice(struct coop_job *job)
{
	struct coop_trash *trash = (struct coop_trash *)job;
	char *path = trash->paths[trash->count - 1];

	move_away(path);
	job->result = delete_some(trash, path);
}

static void done_slice(struct coop_job *job)
{
	struct coop_trash *trash = (struct coop_trash *)job;
	struct coop_keeper *keeper = job->keeper;

	if (job->result <= 0) {
		char *path = trash->paths[--trash->count];
		if (job->result < 0)
			coop_log(COOP_LOG_WARN,
				 "a folder could not be deleted path=%s error=\"%s\"", path,
				 strerror(-job->result));
		free(path);
	}
	coop_trash_empty(keeper, trash);
}

/* A slice is a job of its own, so that work of others for the disk comes in between. A keeper that
 * leaves does not wait: the next one finds the rest. */
void coop_trash_empty(struct coop_keeper *keeper, struct coop_trash *trash)
{
	if (!trash->count || coop_life_stopping(keeper)) {
		coop_trash_free(trash);
		return;
	}
	trash->job = (struct coop_job){.run = run_slice, .done = done_slice};
	coop_job_begin(keeper, &trash->job);
}
