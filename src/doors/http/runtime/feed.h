/* The output of one process on its way to all who read it. However many they are, the keeper is
 * followed once and each event is encoded once; a reader is a place in it.
 *
 * A slow reader costs what waits in its own socket and nothing else: the window (feed_window.h)
 * goes on without it, and it catches up with reads of its own. What the keeper does not have any
 * more by then it is told as a gap. Every reader gets each event at most once, in order, then the
 * exit; events that it does not get are in exactly one gap.
 *
 * A feed belongs to a user, as the keeper decides by user what may be seen, and to a dialect: how
 * events, gaps and the exit are said, and what they are sent on, is the dialect's affair alone. */
#ifndef COOP_HTTP_FEED_H
#define COOP_HTTP_FEED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "coop.h"

struct coop_feed;
struct coop_feed_reader;
struct coop_user;
struct coop_http_shared;

/* What its clients read from, behind the dialect's functions: a WebSocket, an answer that goes on.
 */
struct coop_feed_sink;

/* A count that nobody knows. */
#define COOP_FEED_UNKNOWN UINT64_MAX
#define COOP_FEED_GAP_MAX 160

/* What is known of a process that has ended. */
enum coop_feed_fate {
	COOP_FEED_TOLD,    /* its record says how */
	COOP_FEED_UNTOLD,  /* there is no record any more */
	COOP_FEED_REMOVED, /* its sandbox was removed, and all that ran in it */
};

/* Why nothing more is sent to a reader. */
enum coop_feed_close {
	COOP_FEED_EXITED,      /* it has its exit */
	COOP_FEED_DENIED,      /* it may not read any more */
	COOP_FEED_UNREACHABLE, /* the keeper does not answer: it may come back later */
};

struct coop_feed_dialect {
	/* What all events of a process have in common, made once: a new string, or NULL without
	 * memory. `name` is what clients call it. */
	char *(*common)(const char *name);
	/* An event as its readers get it: how long it is, the writing (returns where it ends), and
	 * how long one is that has been written. */
	size_t (*event_size)(const char *common, const struct coop_chunk *chunk);
	uint8_t *(*event_write)(const char *common, const struct coop_chunk *chunk, uint8_t *at);
	size_t (*event_length)(const uint8_t *event);
	/* Events [from, to) are lost, and so many bytes, or an unknown number. The text's length.
	 */
	size_t (*gap)(char ret[COOP_FEED_GAP_MAX], uint64_t from, uint64_t to, uint64_t bytes);
	/* Appends the exit, of which `cursor` is the number; the record is there with TOLD alone.
	 * 0, or a negative errno with nothing appended: it does not tell of an end, or -ENOMEM. */
	int (*exit)(struct coop_buf *ret, const char *name, enum coop_feed_fate fate,
		    const json_t *record, uint64_t cursor);
	/* The exit of a reader that has lost so many bytes, or more than that. A new string, or
	 * NULL without memory. */
	char *(*lossy_exit)(const struct coop_buf *exit, uint64_t lost, bool more);

	void (*send)(struct coop_feed_sink *sink, struct coop_http_shared *block, size_t from,
		     size_t to);                                                 /* whole events */
	void (*say)(struct coop_feed_sink *sink, const char *text, size_t size); /* gap or exit */
	size_t (*pending)(const struct coop_feed_sink *sink); /* bytes that wait to be taken */
	/* Readers whose process waits for them say often how far they are. */
	void (*expect_little)(struct coop_feed_sink *sink);
	void (*close)(struct coop_feed_sink *sink, enum coop_feed_close why, const char *reason);
};

/* The feed of the process that the keeper calls `id` and clients `name`, held once for the caller.
 * NULL without memory. */
struct coop_feed *coop_feed_get(struct coop_user *user, const struct coop_feed_dialect *dialect,
				const char *id, const char *name);
struct coop_feed *coop_feed_ref(struct coop_feed *feed);
void coop_feed_unref(struct coop_feed *feed); /* NULL is fine */

const char *coop_feed_id(const struct coop_feed *feed);   /* the keeper's */
const char *coop_feed_name(const struct coop_feed *feed); /* the clients' */

/* Sends events from `since` on, then the exit, and then closes. Nothing is sent before this
 * returns. NULL without memory. */
struct coop_feed_reader *coop_feed_read(struct coop_feed *feed, struct coop_feed_sink *sink,
					uint64_t since);
/* The process waits for this reader rather than lose output: `hold` as the keeper gave it, or none.
 * */
void coop_feed_reader_hold(struct coop_feed_reader *reader, const json_t *hold);
/* The same right, of one that has become nobody's. */
void coop_feed_hold_give_up(struct coop_user *user, const char *id, const json_t *hold);
/* The client has taken something, however little. */
void coop_feed_reader_taking(struct coop_feed_reader *reader);
/* The sink takes more. */
void coop_feed_reader_writable(struct coop_feed_reader *reader);
/* The sink is gone. NULL is fine. */
void coop_feed_reader_end(struct coop_feed_reader *reader);

bool coop_feed_ended(const struct coop_feed *feed);

/* Input of several sockets is written frame by frame: whoever has the turn may write. */
struct coop_feed_turn {
	struct coop_link link;
	void (*go)(struct coop_feed_turn *turn); /* it is yours now */
};
/* True: it is the caller's at once. Else it waits in line, and `go` is called. */
bool coop_feed_turn_take(struct coop_feed *feed, struct coop_feed_turn *turn);
/* Gives it up, or leaves the line. */
void coop_feed_turn_end(struct coop_feed *feed, struct coop_feed_turn *turn);

#endif
