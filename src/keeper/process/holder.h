/* A holder: a reader of a process for whom the process waits rather than lose output.
 *
 * While a holder is behind, the streams of the process behave as with `backpressure`: what it has
 * not taken yet is overwritten neither in the rings nor in the index. A holder keeps that right
 * while it moves. One that stands still for the setting `hold_idle_ms` while the process waits for
 * it loses it, and finds a gap as any other reader does; one whose connection goes gives it up at
 * once. Other readers hold nobody back, and neither does a holder of a process that spools or has
 * backpressure of its own.
 *
 * There are two kinds. One belongs to a follow (`hold: true`) and moves with it. The other has a
 * number, and its owner moves it with the operation `hold`: for a door that passes output on at the
 * speed of somebody else's socket. */
#ifndef COOP_KEEPER_HOLDER_H
#define COOP_KEEPER_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json/jsonw.h"
#include "base/list.h"
#include "interface/err.h"

#define COOP_HOLDERS_MAX 256u /* of a process, those of follows included */

struct coop_conn;
struct coop_conn_watch;
struct coop_observer;
struct coop_process;
struct coop_request;
struct coop_outlet;

struct coop_holder {
	struct coop_link in_process, in_conn; /* in no list: the right is gone */
	struct coop_process *process;         /* numbered ones hold a reference */
	struct coop_conn *conn;
	uint64_t number;      /* names it; 0: of a follow */
	uint64_t cursor;      /* events from this one on are held; UINT64_MAX: it goes by bytes */
	uint64_t position[5]; /* by stream: bytes from here on are held; UINT64_MAX: none are */
	uint64_t moved;       /* when it moved last, or when the process began to wait for it */
};

/* Makes a numbered one at event `cursor`, until it is ended, loses its right, or the connection
 * goes. NULL: the error is filled. */
struct coop_holder *coop_holder_new(struct coop_process *process, struct coop_conn *conn,
				    uint64_t cursor, struct coop_err *err);
/* Sets the holder of a follow to work, which embeds it: by events from `cursor` on, or with
 * UINT64_MAX by bytes from `positions` (as in the struct). 0, or the error filled. */
int coop_holder_begin(struct coop_holder *holder, struct coop_process *process,
		      struct coop_conn *conn, uint64_t cursor, const uint64_t positions[4],
		      struct coop_err *err);

/* It needs nothing before event `cursor` any more, or nothing of a stream before `position`. The
 * process may go on: its streams may be read, and its end be told, before this returns; a numbered
 * holder may be gone then. */
void coop_holder_pass(struct coop_holder *holder, uint64_t cursor);
void coop_holder_take(struct coop_holder *holder, unsigned stream, uint64_t position);

/* Gives the right up, if it is still there, and the process goes on. Numbered ones are freed. */
void coop_holder_end(struct coop_holder *holder);
/* The same for all of a connection that goes. */
extern const struct coop_conn_watch coop_holders_watch;

/* The same for all of a process that is forgotten, or whose keeper leaves. */
void coop_holders_clear(struct coop_process *process);

/* How many bytes may come into a stream without overwriting what somebody holds; SIZE_MAX where
 * nobody does. */
size_t coop_holders_room(const struct coop_outlet *stream);
/* A stream waits for its holders from now on. */
void coop_holders_wait(struct coop_process *process);
/* Whether any does. */
bool coop_holders_waited_for(const struct coop_process *process);

/* The end has been told: who has all needs nothing more. */
extern const struct coop_observer coop_holders_observer;

/* What the owner of a numbered one must know, as a member of a result; NULL is written as null. */
void coop_holder_write(const struct coop_holder *holder, struct coop_jsonw *w, const char *name);
/* The one that a connection has made for a process, or NULL. */
const struct coop_holder *coop_holder_of(const struct coop_process *process,
					 const struct coop_conn *conn);

/* The operation's handler. */
void coop_op_hold(struct coop_request *request);

#endif
