/* What was answered and is not on the disk yet: lines of the audit and rows of the database, in
 * memory that outlives the keeper. The loop puts entries in and never waits; the helper thread
 * carries them to the disk; what is there when the keeper dies is carried by the next one.
 *
 * The memory is a file beside the socket where that folder is on a tmpfs: it outlives keeper and
 * guard. Elsewhere it is shared by guard and keeper, and the guard writes it to a file in the state
 * folder when the keeper has died.
 *
 * Positions only grow. An entry is put behind the others, and goes when `advance` has passed it. */
#ifndef COOP_RECORDS_BACKLOG_H
#define COOP_RECORDS_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each lane; entries have some bytes more than what is in them. */
#define COOP_BACKLOG_BYTES (4u << 20)

enum coop_lane { COOP_LANE_AUDIT, COOP_LANE_ROWS, COOP_LANE_COUNT };

struct coop_backlog;

struct coop_backlog_entry {
	uint64_t number; /* whatever the lane counts by */
	const uint8_t *bytes;
	size_t size;
	uint64_t end; /* the position behind it */
};

/* Makes the memory, or takes that over which an earlier keeper of this socket left in its file.
 * The caller holds the socket's lock. `socket` NULL: memory of this process and its children
 * alone. 0 or -errno. */
int coop_backlog_open(const char *socket, struct coop_backlog **ret);
/* The memory goes with its last user. A file stays while there is something in it. */
void coop_backlog_close(struct coop_backlog *backlog); /* NULL is fine */

/* The same memory as a file, of whose first COOP_BACKLOG_APART bytes the caller does what he wants:
 * something that is small, and written anew each time. */
#define COOP_BACKLOG_APART (16u << 20)
int coop_backlog_apart(const struct coop_backlog *backlog);

/* Where the file is; "": there is none. */
const char *coop_backlog_path(const struct coop_backlog *backlog);

/* For the guard of a dead keeper: what has no file is written to one in the state folder. 0 or
 * -errno. */
int coop_backlog_save(const struct coop_backlog *backlog, const char *state_dir);
/* Takes in what a guard saved there. What it does not understand it leaves out. 0 or -errno; the
 * file stays until coop_backlog_forget(). */
int coop_backlog_load(struct coop_backlog *backlog, const char *state_dir);
void coop_backlog_forget(const char *state_dir);

/* Loop's thread. Adds an entry if `spare` bytes stay free behind it. 0, or -ENOBUFS. */
int coop_backlog_put(struct coop_backlog *backlog, enum coop_lane lane, uint64_t number,
		     const void *bytes, size_t size, size_t spare);
/* The position behind the last entry. */
uint64_t coop_backlog_end(const struct coop_backlog *backlog, enum coop_lane lane);
/* Bytes that wait. */
size_t coop_backlog_waiting(const struct coop_backlog *backlog, enum coop_lane lane);
/* Everything before the position is on the disk. */
void coop_backlog_advance(struct coop_backlog *backlog, enum coop_lane lane, uint64_t position);

/* Any thread, while nobody advances past `*at`: the entry there, or the first one if that is 0.
 * 1 with *at behind it; 0: none before `end`; -EBADMSG: what is there is no entry. Its bytes stay
 * until they are advanced past. */
int coop_backlog_next(const struct coop_backlog *backlog, enum coop_lane lane, uint64_t *at,
		      uint64_t end, struct coop_backlog_entry *ret);

#endif
