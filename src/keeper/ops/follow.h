/* A follower: positions in the streams of one process, served as its connection has room. It holds
 * no bytes. A slow one finds its place overwritten, is told of the gap, and goes on; it slows
 * nobody. */
#ifndef COOP_KEEPER_FOLLOW_H
#define COOP_KEEPER_FOLLOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "interface/err.h"
#include "keeper/process/holder.h"

struct coop_conn_watch;
struct coop_observer;
struct coop_request;

struct coop_follow {
	struct coop_request *request;
	struct coop_link in_process, in_conn;
	bool by_event, until_eof, drain, tidy;
	bool wanted[5];        /* by stream number; notes are the last */
	uint64_t position[5];  /* mode bytes */
	uint64_t cursor;       /* mode events */
	uint64_t bytes_before; /* of all events before the cursor, if known */
	bool bytes_known;
	struct coop_holder holder;       /* at work if it holds the process back */
	struct coop_follow_fetch *fetch; /* bytes are on their way from the spool */
};

extern const struct coop_observer coop_follow_observer;
extern const struct coop_conn_watch coop_follow_watch;

/* Arguments that are right alone and wrong together: 0, or the error filled. */
int coop_follow_check(const json_t *args, struct coop_err *err);

/* From now on the request is a follow of that process: what comes is sent as its events and data,
 * and its answer when that is over. 0, or the error filled: nothing has changed. */
int coop_follow_begin(struct coop_request *request, struct coop_process *process,
		      const json_t *args, struct coop_err *err);

/* The operation's handler. */
void coop_op_follow(struct coop_request *request);

#endif
