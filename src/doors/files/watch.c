#include "doors/files/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "doors/files/upload.h"

#define EVENTS                                                                         \
	(IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | \
	 IN_DELETE_SELF | IN_MOVE_SELF)

static enum files_turn look_on(struct files_talk *talk);

static void drop_watch(struct files_talk *talk)
{
	struct files_watch *watch = talk->state;

	while (watch->interests) {
		struct files_interest *interest = watch->interests;
		watch->interests = interest->next_of_watch;
		files_interest_drop(talk->server->watches, interest);
	}
	while (watch->first) {
		struct files_unseen *unseen = watch->first;
		watch->first = unseen->next;
		free(unseen);
	}
	if (watch->dir)
		(void)closedir(watch->dir);
	coop_buf_clear(&watch->events);
	free(watch);
}

void files_watch_look(struct files_talk *talk, const char *path, bool tell)
{
	struct files_watch *watch = talk->state;
	const size_t size = strlen(path) + 1;
	struct files_unseen *unseen = NULL;

	if (watch->count < FILES_WATCH_MAX)
		unseen = coop_mem_alloc(sizeof *unseen + size);
	if (!unseen) {
		files_watch_tell_overflow(talk);
		return;
	}
	*unseen = (struct files_unseen){.tell = tell};
	memcpy(unseen->path, path, size);
	if (watch->last)
		watch->last->next = unseen;
	else
		watch->first = unseen;
	watch->last = unseen;
	watch->count++;
	if (watch->armed)
		talk->background = look_on;
}

static bool is_below(const char *path, const char *directory)
{
	const size_t size = strlen(directory);

	return strncmp(path, directory, size) == 0 && (path[size] == '/' || !path[size]);
}

void files_watch_forget(struct files_talk *talk, const char *path)
{
	struct files_watch *watch = talk->state;

	for (struct files_interest **at = &watch->interests; *at;) {
		struct files_interest *interest = *at;
		if (!is_below(interest->path, path)) {
			at = &interest->next_of_watch;
			continue;
		}
		*at = interest->next_of_watch;
		watch->count--;
		files_interest_drop(talk->server->watches, interest);
	}
}

/* Who is interested already only gets the name right: a directory may have been renamed. */
static int add_interest(struct files_talk *talk, struct files_watched *directory, const char *path)
{
	struct files_watch *watch = talk->state;
	struct files_interest *interest = directory->interests;

	while (interest && interest->talk != talk)
		interest = interest->next_of_directory;
	char *copy = coop_mem_strdup(path);
	if (copy && interest) {
		free(interest->path);
		interest->path = copy;
		return 0;
	}
	interest = copy ? coop_mem_alloc(sizeof *interest) : NULL;
	if (!interest) {
		free(copy);
		return -ENOMEM;
	}
	*interest = (struct files_interest){.next_of_directory = directory->interests,
					    .next_of_watch = watch->interests,
					    .directory = directory,
					    .talk = talk,
					    .path = copy};
	directory->interests = watch->interests = interest;
	watch->count++;
	return 0;
}

static int watch_directory(struct files_talk *talk, const char *path)
{
	struct files_watches *watches = talk->server->watches;
	const struct files_watch *watch = talk->state;
	const bool top = strcmp(path, watch->path) == 0;
	int number = inotify_add_watch(watches->fd, path,
				       EVENTS | IN_ONLYDIR | (top ? 0 : IN_DONT_FOLLOW));

	/* The kernel's word for too many. */
	if (number < 0)
		return errno == ENOSPC ? -EMFILE : -errno;
	struct files_watched *directory = coop_map_get(&watches->directories, (uint64_t)number);
	if (!directory) {
		directory = coop_mem_zalloc(sizeof *directory);
		if (!directory)
			return -ENOMEM;
		directory->number = number;
		if (coop_map_put(&watches->directories, (uint64_t)number, directory) < 0) {
			free(directory);
			return -ENOMEM;
		}
	}
	int r = add_interest(talk, directory, path);
	files_watched_settle(watches, directory);
	return r;
}

static void leave_unseen(struct files_watch *watch)
{
	struct files_unseen *unseen = watch->first;

	if (watch->dir)
		(void)closedir(watch->dir);
	watch->dir = NULL;
	watch->first = unseen->next;
	if (!watch->first)
		watch->last = NULL;
	watch->count--;
	free(unseen);
}

/* Begins with the next directory: from now on the kernel tells what happens there. 1: there is
 * nothing to be read in it. */
static int enter(struct files_talk *talk)
{
	struct files_watch *watch = talk->state;
	const char *path = watch->first->path;
	const bool top = strcmp(path, watch->path) == 0;
	int r = watch_directory(talk, path);

	if (r == -EMFILE || r == -ENOMEM || (r < 0 && top))
		return r;
	/* Gone already, a link by now, or not to be read: those who can tell its changes are told
	 * as of a file. */
	if (r < 0 || !watch->recursive)
		return 1;
	COOP_AUTO_FD int fd = files_path_open(
		path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | (top ? 0 : O_NOFOLLOW), 0);
	watch->dir = fd < 0 ? NULL : fdopendir(fd);
	if (!watch->dir)
		return 1;
	(void)COOP_TAKE_FD(fd);
	return 0;
}

static bool is_directory(DIR *dir, const struct dirent *entry)
{
	struct stat found;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(dirfd(dir), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(found.st_mode);
}

static void read_name(struct files_talk *talk)
{
	struct files_watch *watch = talk->state;
	const struct dirent *entry = readdir(watch->dir);
	char path[FILES_PATH_MAX];

	if (!entry) {
		leave_unseen(watch);
		return;
	}
	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
	    strncmp(entry->d_name, FILES_DRAFT, strlen(FILES_DRAFT)) == 0 ||
	    files_path_join(watch->first->path, entry->d_name, path) < 0)
		return;
	if (watch->first->tell)
		files_watch_tell(talk, "create", path);
	if (is_directory(watch->dir, entry))
		files_watch_look(talk, path, watch->first->tell);
}

/* Looks into directories for one turn. 0, or a failure of the one that it is all about, or of too
 * many. */
static int look(struct files_talk *talk)
{
	struct files_watch *watch = talk->state;

	for (unsigned i = 0; i < FILES_TURN && watch->first; i++) {
		if (watch->dir) {
			read_name(talk);
			continue;
		}
		int r = enter(talk);
		if (r != 0)
			leave_unseen(watch);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The turns of a watch that is armed. */
static enum files_turn look_on(struct files_talk *talk)
{
	struct files_watch *watch = talk->state;

	int r = look(talk);
	if (r < 0 || (watch->missed && !watch->first)) {
		watch->missed = false;
		files_watch_tell_overflow(talk);
	}
	files_watch_flush(talk);
	if (watch->gone) {
		files_send(talk, "{\"over\":true}", 13, NULL, 0);
		return FILES_OVER;
	}
	if (!watch->first)
		talk->background = NULL;
	return FILES_DONE;
}

void files_watch_end(struct files_talk *talk)
{
	struct files_watch *watch = talk->state;

	if (watch->gone)
		return;
	watch->gone = true;
	files_watch_tell(talk, "remove", watch->path);
	talk->background = look_on;
}

static int begin(struct files_talk *talk, const struct files_request *request)
{
	struct files_watch *watch = talk->state;
	struct files_server *server = talk->server;

	if (!server->watches) {
		struct files_watches *watches = coop_mem_zalloc(sizeof *watches);
		if (!watches)
			return -ENOMEM;
		watches->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		if (watches->fd < 0) {
			free(watches);
			return -errno;
		}
		server->watches = watches;
	}
	watch->overflows = server->watches->overflows;
	watch->recursive = json_is_true(json_object_get(request->json, "recursive"));
	watch->include_entry = json_is_true(json_object_get(request->json, "include_entry"));
	files_watch_look(talk, watch->path, false);
	return watch->first ? 0 : -ENOMEM;
}

static int open_talk(struct files_talk *talk)
{
	struct files_watch *watch = coop_mem_zalloc(sizeof *watch);

	if (!watch)
		return -ENOMEM;
	talk->kind = FILES_WORK;
	talk->state = watch;
	talk->drop = drop_watch;
	return 0;
}

enum files_turn files_watch(struct files_talk *talk, struct files_request *request)
{
	struct files_watch *watch = talk->state;
	int r = 0;

	if (!watch) {
		if (open_talk(talk) < 0)
			return files_fail(talk, -ENOMEM, NULL);
		watch = talk->state;
		if (files_take_path(talk, request, "path", watch->path) < 0)
			return FILES_OVER;
		r = begin(talk, request);
	}
	if (r == 0)
		r = look(talk);
	if (r == -ENOTDIR)
		r = files_path_not_directory(watch->path);
	if (r == 0 && watch->count >= FILES_WATCH_MAX)
		r = -EMFILE;
	if (r < 0)
		return files_fail(talk, r, watch->path);
	if (!watch->first && watch->recursive &&
	    watch->overflows != talk->server->watches->overflows) {
		/* Directories that came meanwhile may have been missed. */
		watch->overflows = talk->server->watches->overflows;
		files_watch_look(talk, watch->path, false);
	}
	if (watch->first)
		return FILES_AGAIN;
	watch->armed = true;
	talk->kind = FILES_WATCH;
	files_send_done(talk);
	/* It may have gone while it was looked into. */
	if (watch->gone) {
		watch->gone = false;
		files_watch_end(talk);
	}
	return FILES_DONE;
}
