/* What the kernel tells of watched directories. */
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/map.h"
#include "doors/files/upload.h"
#include "doors/files/watch.h"

#define READ_SIZE (64u << 10)
/* Events are sent together, up to about this much. */
#define BATCH (128u << 10)

int files_watches_fd(const struct files_server *server)
{
	return server->watches ? server->watches->fd : -1;
}

void files_watches_free(struct files_server *server)
{
	/* The talks are gone, and with the last interest in it each directory. */
	if (!server->watches)
		return;
	coop_map_clear(&server->watches->directories);
	(void)close(server->watches->fd);
	free(server->watches);
	server->watches = NULL;
}

void files_watched_settle(struct files_watches *watches, struct files_watched *directory)
{
	if (directory->interests)
		return;
	(void)inotify_rm_watch(watches->fd, directory->number);
	(void)coop_map_remove(&watches->directories, (uint64_t)directory->number);
	free(directory);
}

void files_interest_drop(struct files_watches *watches, struct files_interest *interest)
{
	struct files_watched *directory = interest->directory;

	if (directory) {
		struct files_interest **at = &directory->interests;
		while (*at != interest)
			at = &(*at)->next_of_directory;
		*at = interest->next_of_directory;
		files_watched_settle(watches, directory);
	}
	free(interest->path);
	free(interest);
}

void files_watch_flush(struct files_talk *talk)
{
	struct files_watch *watch = talk->state;

	if (!coop_buf_size(&watch->events))
		return;
	coop_jsonw_array_end(&watch->w);
	coop_jsonw_end(&watch->w);
	files_send_json(talk, &watch->w, NULL, 0);
}

void files_watch_tell(struct files_talk *talk, const char *type, const char *path)
{
	struct files_watch *watch = talk->state;
	struct coop_jsonw *w = &watch->w;

	if (!watch->armed)
		return;
	if (!coop_buf_size(&watch->events)) {
		*w = (struct coop_jsonw){.out = &watch->events};
		coop_jsonw_begin(w, NULL);
		coop_jsonw_array(w, "events");
	}
	coop_jsonw_begin(w, NULL);
	coop_jsonw_string(w, "type", type);
	coop_jsonw_string(w, "path", path);
	if (watch->include_entry)
		(void)files_entry_of(w, "file", path, &talk->server->names); /* gone: without */
	coop_jsonw_end(w);
	if (coop_buf_size(&watch->events) > BATCH)
		files_watch_flush(talk);
}

void files_watch_tell_overflow(struct files_talk *talk)
{
	const struct files_watch *watch = talk->state;

	if (!watch->armed)
		return;
	files_watch_flush(talk);
	files_send(talk, "{\"overflow\":true}", 17, NULL, 0);
}

/* Everybody may have missed something, directories that were made among it. */
static void overflow(struct files_server *server)
{
	server->watches->overflows++;
	for (struct files_talk *talk = server->talks; talk; talk = talk->next) {
		if (talk->kind != FILES_WATCH)
			continue;
		struct files_watch *watch = talk->state;
		watch->missed = watch->recursive;
		if (watch->recursive)
			files_watch_look(talk, watch->path, false);
		else
			files_watch_tell_overflow(talk);
	}
}

static bool is_draft(const char *name)
{
	return strncmp(name, FILES_DRAFT, strlen(FILES_DRAFT)) == 0;
}

/* Uploads appear when they are whole: as new, and as written to. */
static void tell_arrival(struct files_interest *interest, const struct inotify_event *event,
			 const char *path)
{
	const struct files_watches *watches = interest->talk->server->watches;
	const bool upload = event->cookie && event->cookie == watches->draft_cookie;

	if (!upload || !watches->draft_replaces)
		files_watch_tell(interest->talk, "create", path);
	if (upload)
		files_watch_tell(interest->talk, "write", path);
}

static void tell_one(struct files_interest *interest, const struct inotify_event *event)
{
	const struct files_watch *watch = interest->talk->state;
	const bool directory = watch->recursive && (event->mask & IN_ISDIR);
	char path[FILES_PATH_MAX];

	if (files_path_join(interest->path, event->name, path) < 0)
		return;
	if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
		tell_arrival(interest, event, path);
		if (directory)
			files_watch_look(interest->talk, path, true);
	} else if (event->mask & IN_MOVED_FROM) {
		files_watch_tell(interest->talk, "rename", path);
		if (directory)
			files_watch_forget(interest->talk, path);
	} else if (event->mask & IN_DELETE) {
		files_watch_tell(interest->talk, "remove", path);
	} else if (event->mask & IN_MODIFY) {
		files_watch_tell(interest->talk, "write", path);
	} else if (event->mask & IN_ATTRIB) {
		files_watch_tell(interest->talk, "chmod", path);
	}
}

/* The kernel has stopped watching it. */
static void forget_directory(struct files_watches *watches, struct files_watched *directory)
{
	(void)coop_map_remove(&watches->directories, (uint64_t)directory->number);
	while (directory->interests) {
		struct files_interest *interest = directory->interests;
		struct files_watch *watch = interest->talk->state;
		struct files_interest **at = &watch->interests;
		directory->interests = interest->next_of_directory;
		while (*at != interest)
			at = &(*at)->next_of_watch;
		*at = interest->next_of_watch;
		watch->count--;
		interest->directory = NULL;
		files_interest_drop(watches, interest);
	}
	free(directory);
}

/* The directory itself: it is all over for those who asked for it by its name. */
static void lost(const struct files_watched *directory)
{
	for (struct files_interest *at = directory->interests; at; at = at->next_of_directory) {
		const struct files_watch *watch = at->talk->state;
		if (strcmp(at->path, watch->path) == 0)
			files_watch_end(at->talk);
	}
}

static void take_event(struct files_server *server, const struct inotify_event *event)
{
	struct files_watches *watches = server->watches;
	struct files_interest *next;

	if (event->mask & IN_Q_OVERFLOW) {
		overflow(server);
		return;
	}
	struct files_watched *directory =
		event->wd > 0 ? coop_map_get(&watches->directories, (uint64_t)event->wd) : NULL;
	if (!directory)
		return;
	if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))
		lost(directory);
	if (event->mask & IN_IGNORED) {
		forget_directory(watches, directory);
	} else if (event->len && is_draft(event->name)) {
		if (event->mask & IN_MOVED_FROM) {
			const char *mark = event->name + strlen(FILES_DRAFT);
			watches->draft_cookie = event->cookie;
			watches->draft_replaces = *mark == FILES_DRAFT_REPLACES[0];
		}
	} else if (event->len) {
		/* What is told of one may take away interests of its own, but none of another. */
		for (struct files_interest *at = directory->interests; at; at = next) {
			next = at->next_of_directory;
			tell_one(at, event);
		}
	}
}

void files_watches_read(struct files_server *server)
{
	_Alignas(struct inotify_event) char bytes[READ_SIZE];
	ssize_t size = read(server->watches->fd, bytes, sizeof bytes);

	for (ssize_t at = 0; at < size;) {
		const struct inotify_event *event = (const void *)(bytes + at);
		take_event(server, event);
		at += (ssize_t)(sizeof *event + event->len);
	}
	for (struct files_talk *talk = server->talks; talk; talk = talk->next)
		if (talk->kind == FILES_WATCH)
			files_watch_flush(talk);
}
