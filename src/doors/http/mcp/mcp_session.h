/* Clients of the legacy era: what a session's id stands for. An id is good for the token it was
 * given to, and for no other. */
#ifndef COOP_HTTP_MCP_SESSION_H
#define COOP_HTTP_MCP_SESSION_H

#include <stdint.h>

#include "doors/http/mcp/mcp_user.h"

/* Of one user; one more ends the one that was silent for longest. */
#define COOP_MCP_CLIENTS_MAX 256u
/* 128 random bits as hexadecimal digits. */
#define COOP_MCP_CLIENT_ID 33

struct coop_mcp_exchange;

struct coop_mcp_client {
	struct coop_mcp_session session;
	struct coop_mcp_user *owner;
	struct coop_link link; /* among all of the owner */
	char id[COOP_MCP_CLIENT_ID];
	unsigned busy;                    /* exchanges that belong to it */
	struct coop_mcp_exchange *stream; /* of its GET; NULL: none */
	uint64_t used_at;                 /* by the loop's clock */
};

/* A new one, which holds its user. NULL: no memory, no chance, or all that there may be are
 * busy. */
struct coop_mcp_client *coop_mcp_client_new(struct coop_mcp_user *owner);
/* NULL: there is none of that id. */
struct coop_mcp_client *coop_mcp_client_find(const struct coop_mcp_user *owner, const char *id);
/* An exchange of it begins, or is over; one that never was opened ends with the latter. */
void coop_mcp_client_enter(struct coop_mcp_client *client);
void coop_mcp_client_leave(struct coop_mcp_client *client);
/* Ends it, its requests and its stream. */
void coop_mcp_client_end(struct coop_mcp_client *client);
/* Ends those that were silent for too long. */
void coop_mcp_clients_expire(struct coop_mcp_user *owner, uint64_t now);
/* The user goes, and all of them. */
void coop_mcp_clients_clear(struct coop_mcp_user *owner);

#endif
