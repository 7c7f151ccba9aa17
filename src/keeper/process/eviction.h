/* What becomes of ended processes: finished records are kept in full up to a number per agent, then
 * turn into receipts, of which each principal keeps a number. First go those whose end their owner
 * has been told. Nothing that lives ever goes, nor a persistent record within its retention. */
#ifndef COOP_KEEPER_EVICTION_H
#define COOP_KEEPER_EVICTION_H

#include <stdbool.h>
#include <stdint.h>

struct coop_conn;
struct coop_conn_watch;
struct coop_keeper;
struct coop_process;

/* NULL without memory. */
struct coop_eviction *coop_eviction_new(struct coop_keeper *keeper);

/* Its record is final: it may go when there are too many. */
void coop_eviction_add(struct coop_process *process);
/* It is a receipt now, or is being removed. */
void coop_eviction_remove(struct coop_process *process);
void coop_eviction_receipt(struct coop_process *process);

/* What a connection starts is kept for it until it has been told of the end, or goes; however, no
 * longer than `hold_idle_ms` after the end. Without that whoever clears up beside it could take the
 * record between the answer to a spawn and the question for the output. gc leaves all of these
 * alone; the caps and retention only what each connection has started last, as they must hold
 * whatever a client forgets to ask for. */
void coop_eviction_claim(struct coop_process *process, struct coop_conn *conn);
/* Nobody waits for it any more. */
void coop_eviction_unclaim(struct coop_process *process);

/* Whether a finished record must stay when `conn` asks for all to go: another connection claims it,
 * or somebody reads it. */
bool coop_eviction_awaited(const struct coop_process *process, const struct coop_conn *conn);
/* Until when its retention must wait for that, by the monotonic clock; 0: it need not. */
uint64_t coop_eviction_kept_until(const struct coop_process *process);

/* Whether it is finished, and nothing keeps it from becoming a receipt. */
bool coop_eviction_may_go(struct coop_process *process);

/* Applies the caps. Whoever shows counts or lists calls it first, so that the caps are never seen
 * exceeded. */
void coop_eviction_trim(struct coop_keeper *keeper);
/* Something happened that may let a record go: the caps are applied when the loop's turn is over,
 * or a little later. */
void coop_eviction_look(struct coop_keeper *keeper);

/* Limits have changed. */
void coop_eviction_recount(struct coop_keeper *keeper);

/* The frame that is being written tells of the end of a process, if that has one. Once the socket
 * has taken the whole frame the process counts as told: to its owner, if that is who the connection
 * acts as, and, `heard`, to its starter, if that is this connection. A frame that is dropped, or a
 * connection that goes before, has told nobody. */
void coop_eviction_tells(struct coop_conn *conn, const struct coop_process *process, bool heard);
/* The frame that is being written gives the end of a process away, out of its session's queue
 * (completions.h). Should the connection go before the socket has taken the frame, the queue has it
 * again. */
void coop_eviction_gives(struct coop_conn *conn, const struct coop_process *process);

/* Ends are told when the socket has taken their frame; a frame that is dropped, or a connection
 * that goes before, has told nobody, and what it was given away to is given back. */
extern const struct coop_conn_watch coop_eviction_watch;

#endif
