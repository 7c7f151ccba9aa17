/* Placeholders one by one, and the list of them: what ghosts.c does on disk. */
#ifndef COOP_SANDBOX_GHOSTS_DISK_H
#define COOP_SANDBOX_GHOSTS_DISK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "sandbox/layout/ghosts.h"

#define COOP_GHOST_LIST_MAX (16u << 20) /* bytes of a list that are read */

/* By which a placeholder is known again. */
struct coop_ghost_mark {
	dev_t dev;
	ino_t ino;
	mode_t type; /* S_IFDIR, S_IFSOCK or S_IFREG */
	off_t size;  /* of a plain file */
};

/* A socket that stays: in folders on the same file system placeholders are further names of it.
 * To make and to free an inode costs more than ten names. */
struct coop_ghost_stock {
	int folder; /* where it lies, which nobody else writes to; -1: there is none */
	uid_t uid;
	gid_t gid;
	struct coop_ghost_mark mark;
};
#define COOP_GHOST_STOCK ((struct coop_ghost_stock){.folder = -1})
/* In that folder, in place of what an earlier keeper had there. 0 or -errno: then placeholders
 * are made without it. */
int coop_ghost_stock_open(struct coop_ghost_stock *stock, const char *folder);
void coop_ghost_stock_close(struct coop_ghost_stock *stock);

/* The folder that the last one lay in: most lie side by side. Begins as COOP_GHOST_PARENT, must be
 * closed in the end. */
struct coop_ghost_parent {
	const struct coop_ghost_stock *stock; /* NULL: none */
	int fd;
	bool strange;                       /* the stock does not serve in it */
	int socket;                         /* one that was made in it, -1: none yet */
	struct coop_ghost_mark socket_mark; /* of that one */
	size_t size;                        /* of its path */
	char path[4096];
};
#define COOP_GHOST_PARENT ((struct coop_ghost_parent){.fd = -1, .socket = -1})
void coop_ghost_parent_close(struct coop_ghost_parent *parent);

/* 0 or -errno. No link is followed on the way, here and in the following. Where the file system has
 * no sockets it is an empty folder. */
int coop_ghost_make(struct coop_ghost_parent *parent, const struct coop_ghost *ghost,
		    struct coop_ghost_mark *ret_mark);
/* Of a folder in which we may not make anything: whether a process of its owner's could. */
bool coop_ghost_openable(struct coop_ghost_parent *parent, const char *path);
/* Whether it still is what was made: nobody put anything in its place, or into it. */
bool coop_ghost_unchanged(struct coop_ghost_parent *parent, const char *path,
			  const struct coop_ghost_mark *mark);
/* Only then it is removed; also where its folder, which is ours, was closed meanwhile. A removed
 * folder's descriptor, the caller's to close, or -1: the disk is at work only when that is
 * closed. */
int coop_ghost_remove(struct coop_ghost_parent *parent, const char *path,
		      const struct coop_ghost_mark *mark);

/* The numbers of a mark as text, from one line to the next: most lines have those of the last.
 * Begins with all zeroes. */
struct coop_ghost_front {
	struct coop_ghost_mark mark;
	size_t size; /* 0: none yet */
	char text[96];
};
/* A list is a run of "TYPE DEVICE INODE SIZE /path" (inode 0: announced, and SIZE is the time in
 * seconds), numbers, each with its NUL; an empty one ends it. 0 or -errno. */
int coop_ghost_list_add(struct coop_ghost_front *front, struct coop_buf *text, const char *path,
			const struct coop_ghost_mark *mark);
/* A line for one that is about to be made, when nobody knows yet by what it will be known. Should
 * its maker die before it has another, what stands there is removed if it looks like one and is no
 * older than the line. */
int coop_ghost_list_announce(struct coop_buf *text, const struct coop_ghost *ghost);
/* Replaces what the file holds from there on; ends the text. */
int coop_ghost_list_write(int fd, off_t at, struct coop_buf *text);
/* Adds to the text, which is empty, what the file holds, perhaps more than the list. 0 or
 * -errno. */
int coop_ghost_list_read(int fd, struct coop_buf *text);
/* Removes from disk what the file names. */
void coop_ghost_list_remove_all(int fd);

#endif
