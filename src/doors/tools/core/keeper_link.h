/* The way of a program of this user to the keeper: connections of libcoop on a loop, as many as the
 * open calls need. What coop-mcp and coop-tool give to the tools. */
#ifndef COOP_TOOLS_KEEPER_LINK_H
#define COOP_TOOLS_KEEPER_LINK_H

#include <stdbool.h>

#include "doors/tools/core/ceiling.h"
#include "doors/tools/core/host.h"

struct coop_keeper_link_options {
	bool private_keeper; /* one of its own, which ends with it */
	const char *agent; /* act as this agent below; NULL: as whoever the token or socket says */
	struct coop_door_ceiling ceiling; /* of every connection; its texts outlive the link */
};

struct coop_keeper_link;

/* Opens the first connection and starts a keeper if need be; blocks meanwhile. 0 with *ret the
 * caller's. */
int coop_keeper_link_new(uv_loop_t *loop, const struct coop_keeper_link_options *options,
			 struct coop_keeper_link **ret, struct coop_error *error);
/* Ends all connections; freed in a later turn of the loop. Open calls are not told. */
void coop_keeper_link_close(struct coop_keeper_link *link);

/* A connection is being opened, which may take as long as the keeper likes. */
bool coop_keeper_link_is_opening(const struct coop_keeper_link *link);

const struct coop_tool_host *coop_keeper_link_host(const struct coop_keeper_link *link);
/* For questions before the loop runs. NULL: none is open. */
struct coop *coop_keeper_link_first(const struct coop_keeper_link *link);

#endif
