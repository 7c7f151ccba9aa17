/* What changes: tells those who are interested that a process, its output or the list of processes
 * is not what it was. It says nothing of how: who wants to know reads the resource.
 *
 * One follow_events serves all; a process that somebody watches has one follow, which notes that
 * something came and rests for a while, so that a busy process costs a few frames a second. A
 * record is told of when its process starts, writes for the first time, is stopped, goes on, waits
 * for input or ends; not with every byte. That it waits for input can only be seen by looking,
 * which is done a few times in every pause of its output if its stdin is open. With nobody
 * interested nothing is asked. A keeper that cannot be reached is tried again, less and less
 * often. */
#ifndef COOP_MCP_WATCH_H
#define COOP_MCP_WATCH_H

#include "doors/mcp/mcp.h"

/* Processes that one server watches at a time: each takes up to two of the 256 requests that a
 * connection to the keeper has. */
#define COOP_MCP_WATCHED_MAX 64u
/* Output that has not come for so long has paused. */
#define COOP_MCP_PAUSE_MS 300u

/* One thing that somebody wants to be told of; embedded in what the one who is told keeps. */
struct coop_mcp_interest {
	/* It has changed. Must neither send anything nor end an interest: it takes it down for
	 * later. */
	void (*changed)(struct coop_mcp_interest *interest);
	bool output; /* of a process: its output too, not only its record */
	/* Those of the same thing. */
	struct coop_mcp_interest *next, **link;
};

/* Begins to tell of the process's changes; -ENOSPC: too many are watched already; -ENOMEM.
 * `interest` must stay until it is ended. A process that has ended is told of once more, and
 * watched no longer. */
int coop_mcp_watch_process(struct coop_mcp *mcp, const char *id,
			   struct coop_mcp_interest *interest);
/* Begins to tell that processes start and end. */
int coop_mcp_watch_list(struct coop_mcp *mcp, struct coop_mcp_interest *interest);
/* Ends either; also one that was never begun (zeroed) or whose thing has gone. */
void coop_mcp_watch_end(struct coop_mcp *mcp, struct coop_mcp_interest *interest);

/* For those who keep lists of interests of their own (tasks). */
void coop_mcp_interest_add(struct coop_mcp_interest **list, struct coop_mcp_interest *interest);
void coop_mcp_interest_tell(struct coop_mcp_interest *list);
/* The thing goes: its interests are told once more and belong to nothing then. */
void coop_mcp_interest_release(struct coop_mcp_interest **list);

#endif
