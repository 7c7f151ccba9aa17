/* What the tokens of one agent, and of all below it, have of the gateway together: an agent
 * makes as many tokens as it likes. Agents directly below `main` are told apart, and those of
 * each principal. */
#ifndef COOP_HTTP_SHARE_H
#define COOP_HTTP_SHARE_H

#include <stdbool.h>
#include <stddef.h>

/* Unfinished bodies and messages, over all connections. */
#define COOP_SHARE_HELD_MAX (128u << 20)
/* The same with the input that waits for processes: each connection may add one message to it
 * before it has to wait. */
#define COOP_SHARE_TAKEN_MAX (512u << 20)
/* Answers that wait for their clients to take them, over all connections. */
#define COOP_SHARE_UNREAD_MAX (128u << 20)

struct coop_gateway_options;

struct coop_agent_share {
	struct coop_agent_share *next, **link;
	unsigned refs; /* users */
	unsigned connections;
	size_t held;   /* bytes of unfinished bodies and messages */
	size_t input;  /* bytes for processes that wait */
	size_t unread; /* bytes of answers that wait for their clients */
	bool own;      /* of main of the keeper's own user */
	char name[];
};

struct coop_agent_shares {
	struct coop_agent_share *first;
	unsigned others; /* connections of all but the keeper's own user's main */
};

/* The share that an agent has a part in; what is returned is given back. NULL without memory. */
struct coop_agent_share *coop_share_of(struct coop_agent_shares *shares, const char *principal,
				       const char *agent);
void coop_share_unref(struct coop_agent_share *share); /* NULL is fine */

/* One connection more. False: there are as many as may be. */
bool coop_share_enter(struct coop_agent_shares *shares, struct coop_agent_share *share,
		      const struct coop_gateway_options *options);
void coop_share_leave(struct coop_agent_shares *shares, struct coop_agent_share *share);

#endif
