/* The output of one process on its way to all who read it. However many they are, the keeper is
 * followed once and each event is encoded once; a reader is a place in it.
 *
 * A slow reader costs what waits in its own socket and nothing else: the window (feed_window.h)
 * goes on without it, and it catches up with reads of its own. What the keeper does not have any
 * more by then it is told as a gap. Every reader gets each event at most once, in order, then the
 * exit; events that it does not get are in exactly one gap.
 *
 * A feed belongs to a user, as the keeper decides by user what may be seen. */
#ifndef COOP_HTTP_FEED_H
#define COOP_HTTP_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "doors/http/runtime/process_view.h"

struct coop_feed;
struct coop_feed_reader;
struct coop_user;
struct coop_ws;

/* The feed of a process, held once for the caller. NULL without memory. */
struct coop_feed *coop_feed_get(struct coop_user *user, const struct coop_process_view *view);
struct coop_feed *coop_feed_ref(struct coop_feed *feed);
void coop_feed_unref(struct coop_feed *feed); /* NULL is fine */

const char *coop_feed_id(const struct coop_feed *feed);   /* the keeper's */
const char *coop_feed_name(const struct coop_feed *feed); /* the clients' */

/* Sends events from `since` on to the WebSocket, then the exit, and then closes it. `started` must
 * have been sent. NULL without memory. */
struct coop_feed_reader *coop_feed_read(struct coop_feed *feed, struct coop_ws *ws, uint64_t since);
/* The process waits for this reader rather than lose output: `hold` as the keeper gave it, or none.
 * */
void coop_feed_reader_hold(struct coop_feed_reader *reader, const json_t *hold);
/* The same right, of one that has become nobody's. */
void coop_feed_hold_give_up(struct coop_user *user, const char *id, const json_t *hold);
/* The client has taken something, however little. */
void coop_feed_reader_taking(struct coop_feed_reader *reader);
/* The WebSocket takes more. */
void coop_feed_reader_writable(struct coop_feed_reader *reader);
/* The WebSocket is gone. NULL is fine. */
void coop_feed_reader_end(struct coop_feed_reader *reader);

bool coop_feed_ended(const struct coop_feed *feed);

/* Input of several sockets is written frame by frame: whoever has the turn may write. */
struct coop_feed_turn {
	struct coop_feed_turn *next;
	void (*go)(struct coop_feed_turn *turn); /* it is yours now */
};
/* True: it is the caller's at once. Else it waits in line, and `go` is called. */
bool coop_feed_turn_take(struct coop_feed *feed, struct coop_feed_turn *turn);
/* Gives it up, or leaves the line. */
void coop_feed_turn_end(struct coop_feed *feed, struct coop_feed_turn *turn);

#endif
