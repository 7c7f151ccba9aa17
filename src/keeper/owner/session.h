/* A group of processes by lifetime: when it ends, what is not persistent in it ends too. */
#ifndef COOP_KEEPER_SESSION_H
#define COOP_KEEPER_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "interface/err.h"
#include "keeper/owner/queue.h"

#define COOP_SESSION_TEXT 32u

struct coop_agent;
struct coop_net;

struct coop_session {
	struct coop_agent *agent; /* a reference */
	struct coop_link in_agent;
	uint64_t n;
	char *label;                    /* or NULL */
	int64_t created_at, expires_at; /* wall clock; 0: does not */
	int64_t max_lifetime_ms;
	bool ending;                /* takes nothing new */
	struct coop_link processes; /* that have not been told; in_session */
	struct coop_net *net;       /* that its confined processes share; NULL: none */
	struct coop_completions completions;
	uv_timer_t timer;
};

/* "ses-3", or "" for 0. */
void coop_session_format(uint64_t n, char ret[COOP_SESSION_TEXT]);

/* A session of that agent, by its id: one that may take a new process. NULL with the error filled,
 * naming `field`. */
struct coop_session *coop_session_find(const struct coop_agent *agent, const char *id,
				       const char *field, struct coop_err *err);

/* The queue of that agent's session, 0 being its default one; NULL where it has ended. */
struct coop_completions *coop_session_completions(struct coop_agent *agent, uint64_t n);

#endif
