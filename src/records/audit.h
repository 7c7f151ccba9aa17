/* The audit: an append-only file of lines, each a JSON object chained to the one before it by
 * SHA-256.
 *
 * A line is {"seq":N,"at":"…",MEMBERS,"prev":"<hex>","hash":"<hex>"}; `hash` is over the line's
 * bytes up to and without `,"hash":`, `prev` is the hash of the line before (64 zeros before the
 * very first). `audit.log` is being written; full ones are renamed to `audit-<seq of their first
 * line, 20 digits>.log` (`….1.log` and so on if that name is taken, which only damage brings
 * about), and the oldest removed when there are more than `keep`. The chain goes on over files.
 * What it cannot show by itself, lines missing at either end, the anchor shows, which the keeper
 * holds in memory and in its database. */
#ifndef COOP_RECORDS_AUDIT_H
#define COOP_RECORDS_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "interface/err.h"
#include "records/backlog.h"
#include "records/secret.h"

/* A line, without its newline, is never longer. */
#define COOP_AUDIT_LINE_MAX (1u << 20)

struct coop_audit;

/* The ends of the chain as they ought to be. */
struct coop_audit_anchor {
	uint64_t first; /* seq of the oldest line kept; 0: nothing was ever written */
	char first_prev[COOP_HASH_TEXT]; /* its prev */
	uint64_t last;
	char last_hash[COOP_HASH_TEXT];
};

/* Opens `<dir>/audit.log` (0600, never through a link) and goes on where it ends. A last line that
 * is torn or does not verify stays as it is: the file is closed as a segment of its own, the chain
 * goes on from its last good line with a line {"kind":"damage",…} that says so. `max_bytes`,
 * `keep`: when a file is full, and how many full ones stay. 0, or the error filled. Before the loop
 * runs; then the helper thread's, as all that takes a struct coop_audit. */
int coop_audit_open(const char *dir, uint64_t max_bytes, unsigned keep, struct coop_audit **ret,
		    struct coop_err *err);
void coop_audit_close(struct coop_audit *audit); /* NULL is fine */

/* Bounds may change while it is open; each change is cheap to tell again. */
void coop_audit_limit(struct coop_audit *audit, uint64_t max_bytes, unsigned keep);

/* Adds a line; `members` is JSON text of members without braces ("\"kind\":\"spawn\",…"), without
 * newlines. Written with one write(2), not synced. 0 with its number, or -errno (-EMSGSIZE: longer
 * than COOP_AUDIT_LINE_MAX; -EINVAL: a newline): then nothing of it is in the file and the chain is
 * as before. A file that is full but cannot be renamed is written on. */
int coop_audit_append(struct coop_audit *audit, int64_t at_ms, const char *members,
		      uint64_t *ret_seq);

/* Writes the lines of the backlog before `end` that are not in the files yet. 0, or -errno at the
 * first that could not be (-EBADMSG: it does not follow the last one). *ret_done is the position
 * behind those that are there, and stays as it is if there are none. */
int coop_audit_carry(struct coop_audit *audit, const struct coop_backlog *backlog, uint64_t end,
		     uint64_t *ret_done);
/* The same for what an earlier keeper left. Lines that do not follow are given up, and a line
 * {"kind":"damage","file":"backlog",…} says so. The backlog has none of them afterwards. */
int coop_audit_recover(struct coop_audit *audit, struct coop_backlog *backlog);

/* As of now, on the disk. */
void coop_audit_anchor(const struct coop_audit *audit, struct coop_audit_anchor *ret);

/* For the database: one line of text, and back (-EBADMSG). */
#define COOP_AUDIT_ANCHOR_TEXT 192u
void coop_audit_anchor_format(const struct coop_audit_anchor *anchor,
			      char ret[COOP_AUDIT_ANCHOR_TEXT]);
int coop_audit_anchor_parse(const char *text, struct coop_audit_anchor *ret);

struct coop_audit_report {
	bool good;
	uint64_t lines;
	unsigned files;
	uint64_t first, last; /* seq; 0: none */
	/* The first fault; "" where there is none. */
	char file[64];
	uint64_t line;   /* in that file, from 1; 0: the file as a whole */
	char fault[160]; /* "line 12 was changed", "lines are missing before seq 40", … */
};

/* Reads all files and checks numbers, chain and ends. `anchor` may be NULL (then the ends are not
 * checked), or have first 0 and last not (then the beginning is not); lines past anchor->last that
 * were appended meanwhile are no fault if `live`. Reads in pieces: memory is bounded whatever the
 * size. Helper thread, as the writer: nothing changes meanwhile. 0, or -errno if a file cannot be
 * read. */
int coop_audit_verify(const char *dir, const struct coop_audit_anchor *anchor, bool live,
		      struct coop_audit_report *ret);

/* Gives each line from number `from` on, oldest first, without its newline; lines that are not as
 * they were written are left out. A callback that returns < 0 ends the walk with that. Helper
 * thread, or before the loop runs. 0 or -errno. */
int coop_audit_each(const char *dir, uint64_t from,
		    int (*line)(void *user, uint64_t seq, const char *bytes, size_t size),
		    void *user);

/* The last `count` lines in order, over file ends, as JSON objects separated by newlines, at most 4
 * MiB of them. In place of one that is not JSON stands {"kind":"unreadable","size":N}. Helper
 * thread. 0 or -errno. */
int coop_audit_tail(const char *dir, uint64_t count, struct coop_buf *out);

#endif
