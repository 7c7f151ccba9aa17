/* Watches: directories whose changes are told as they happen.
 *
 * There is one inotify instance for all talks. The kernel gives a directory one number, however
 * often it is asked to watch it, so that each directory has a list of those who want to know; each
 * of them has its own name for it. A recursive watch adds what is made below it, and tells what was
 * in there when it came to look: a name may be told twice, none is missed. */
#ifndef COOP_FILES_WATCH_H
#define COOP_FILES_WATCH_H

#include <dirent.h>

#include "base/map.h"
#include "doors/files/talk.h"

/* Directories that one watch may have: more is EMFILE, or "overflow" once it has begun. */
#define FILES_WATCH_MAX 8192u

/* One directory of one watch. */
struct files_interest {
	struct files_interest *next_of_directory, *next_of_watch;
	struct files_watched *directory;
	struct files_talk *talk;
	char *path;
};

/* A directory that the kernel watches for us. */
struct files_watched {
	int number;
	struct files_interest *interests;
};

struct files_watches {
	int fd;
	struct coop_map directories; /* by number */
	/* The last upload's file that was renamed: where it went, it was written. */
	uint32_t draft_cookie;
	bool draft_replaces;
	unsigned overflows; /* so far */
};

/* A directory that is still to be looked into. */
struct files_unseen {
	struct files_unseen *next;
	bool tell; /* what is in it is new */
	char path[];
};

/* The state of a talk that watches. */
struct files_watch {
	bool recursive, include_entry;
	bool armed; /* it has been answered */
	/* an overflow, which is told when all directories have been looked into again */
	bool missed;
	bool gone;          /* the directory itself is */
	unsigned overflows; /* that it knows of */
	struct files_interest *interests;
	size_t count; /* of interests and unseen ones */
	struct files_unseen *first, *last;
	DIR *dir; /* of the first unseen one, while it is being read */
	struct coop_buf events;
	struct coop_jsonw w;
	char path[FILES_PATH_MAX];
};

/* The fd to poll, or -1. */
int files_watches_fd(const struct files_server *server);
/* Takes what the kernel tells and passes it on. */
void files_watches_read(struct files_server *server);
void files_watches_free(struct files_server *server);

/* Adds an event to those that the next files_watch_flush() sends. Before the watch is armed it does
 * nothing. */
void files_watch_tell(struct files_talk *talk, const char *type, const char *path);
void files_watch_tell_overflow(struct files_talk *talk);
void files_watch_flush(struct files_talk *talk);

/* Has a directory looked into in a turn to come; too many are an overflow. */
void files_watch_look(struct files_talk *talk, const char *path, bool tell);
/* Forgets a directory and all below it. */
void files_watch_forget(struct files_talk *talk, const char *path);
/* The directory itself is gone: says so in a turn to come, and ends the talk. */
void files_watch_end(struct files_talk *talk);

/* Ends the watching of a directory, and frees it, if nobody is interested. */
void files_watched_settle(struct files_watches *watches, struct files_watched *directory);
/* Takes an interest out of its directory's list and frees it. Its watch's list is the caller's
 * affair. */
void files_interest_drop(struct files_watches *watches, struct files_interest *interest);

#endif
