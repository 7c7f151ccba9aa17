/* What the tokens of one agent, and of all below it, have of the gateway together: an agent
 * makes as many tokens as it likes. Agents directly below `main` are told apart, and those of
 * each principal. */
#ifndef COOP_HTTP_SHARE_H
#define COOP_HTTP_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"

/* Unfinished bodies and messages, over all connections. */
#define COOP_SHARE_HELD_MAX (128u << 20)
/* The same with the input that waits for processes: each connection may add one message to it
 * before it has to wait. */
#define COOP_SHARE_TAKEN_MAX (512u << 20)
/* Answers that wait for their clients to take them, over all connections. */
#define COOP_SHARE_UNREAD_MAX (128u << 20)

struct coop_agent_shares {
	struct coop_link all;
	unsigned others;        /* connections of all but the keeper's own user's main */
	unsigned max_per_agent; /* connections of one share */
	unsigned max_of_agents; /* of all agents but main of the keeper's own user */
};

struct coop_agent_share {
	struct coop_agent_shares *shares;
	struct coop_link link;
	unsigned refs; /* users */
	unsigned connections;
	size_t held;   /* bytes of unfinished bodies and messages */
	size_t input;  /* bytes for processes that wait */
	size_t unread; /* bytes of answers that wait for their clients */
	bool own;      /* of main of the keeper's own user */
	char name[];
};

/* The part that one connection has of a share. Zero-initialised it has none, and may do all. */
struct coop_share_part {
	struct coop_agent_share *share;
	size_t held, unread;
};

/* The share that an agent has a part in; what is returned is given back. NULL without memory. */
struct coop_agent_share *coop_share_of(struct coop_agent_shares *shares, const char *principal,
				       const char *agent);
void coop_share_unref(struct coop_agent_share *share); /* NULL is fine */

/* Counts the connection in the share, instead of the one it was in before; the share must not go
 * before it leaves. False: there are as many as may be, and nothing has changed. */
bool coop_share_enter(struct coop_share_part *part, struct coop_agent_share *share);
void coop_share_leave(struct coop_share_part *part);

/* The connection holds so many bytes of an unfinished body or message now. False: with those of
 * all connections of its share that is too much. */
bool coop_share_hold(struct coop_share_part *part, size_t bytes);

/* So many bytes wait for the connection's client now. */
void coop_share_count_unread(struct coop_share_part *part, size_t bytes);
/* Whether so much more may wait beside what all connections of its share have not taken. */
bool coop_share_may_wait(const struct coop_share_part *part, size_t more);

#endif
