/* Admission: how many connections each may have, so that nobody uses up what the others need.
 *
 * Of all that may be open an eighth is kept for the owner's socket; connections that have not
 * logged in have a share, and those of agents the rest, of which one agent, with all below it, has
 * a share. A connection belongs to the owner, to nobody (the oldest of these gives way to a
 * newcomer, and each has a deadline), or to the agent of its token: narrowing it by a name changes
 * nothing of that. */
#ifndef COOP_KEEPER_ADMISSION_H
#define COOP_KEEPER_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "interface/err.h"

#define COOP_ADMISSION_FRAME_MAX (64u << 10) /* payload of a frame before the login */
#define COOP_ADMISSION_UNREAD_MAX \
	(256u << 10) /* answers that a connection of nobody's leaves unread */

struct coop_agent;
struct coop_conn;
struct coop_keeper;

struct coop_admission {
	struct coop_link nobody; /* connections that have not logged in, oldest first */
	unsigned nobody_count;
	unsigned agent_count; /* connections of agents' tokens, all together */
	uint64_t refused;     /* turned away: there was no room, or a share was used up */
	uint64_t cut;         /* ended because they had not logged in */
	uint64_t warned_at;   /* when the log told of either, 0: never; by the loop's clock */
	uv_timer_t deadline;  /* of the first in `nobody` */
};

void coop_admission_init(struct coop_admission *admission, struct coop_keeper *keeper);

/* Whether a connection that was accepted as that descriptor may be taken. Where not, the client has
 * been told why, in the place of a hello; the descriptor stays the caller's. */
bool coop_admission_allows(struct coop_keeper *keeper, int fd, bool owner);

/* From now on it counts as nobody's, until coop_admission_login or coop_admission_leave. Another
 * one, that had been waiting for longest, may be closed. */
void coop_admission_nobody(struct coop_conn *conn);

/* From now on it counts for the agent. 0; or the error filled, and nothing has changed. */
int coop_admission_login(struct coop_conn *conn, struct coop_agent *agent, struct coop_err *err);

/* It is closed. */
void coop_admission_leave(struct coop_conn *conn);

#endif
