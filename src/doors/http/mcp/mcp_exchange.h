/* The answer to one POST of MCP, or the stream of one GET: the channel that the server speaks to.
 *
 * An answer is one JSON text, or a stream of events if there is more to say before it: who wants
 * progress or a subscription gets a stream from the beginning. In the modern era a client that goes
 * has cancelled what it asked for; in the legacy era its requests go on, and what they say goes
 * nowhere. */
#ifndef COOP_HTTP_MCP_EXCHANGE_H
#define COOP_HTTP_MCP_EXCHANGE_H

#include <uv.h>

#include "base/buf.h"
#include "base/later.h"
#include "doors/http/mcp/mcp_session.h"
#include "doors/http/mcp/mcp_user.h"

/* Of a message. */
#define COOP_MCP_BODY_MAX (16u << 20)
/* Bytes that may wait for one client before what can be joined is. */
#define COOP_MCP_PENDING_MAX (256u << 10)
/* A silent stream says so that often, as connections that are silent for long are cut on the
 * way. */
#define COOP_MCP_ALIVE_MS 15000u

struct coop_mcp_exchange {
	struct coop_mcp_channel channel;     /* first: the server knows only this */
	struct coop_mcp_user *owner;         /* held, by its user */
	struct coop_http_exchange *exchange; /* NULL: the client has gone */
	struct coop_mcp_client *client;      /* legacy: whose session it is */
	struct coop_link link;               /* among all of the owner */
	/* The body is whole: what to do with it. */
	void (*whole)(struct coop_mcp_exchange *work);
	struct coop_buf body;
	struct coop_buf said; /* messages before it is known how to answer, a line each */
	unsigned status;      /* of an error that comes next; 0: the usual */
	unsigned busy;        /* it is at work here: freed after the last */
	bool modern;
	bool begun, done; /* an answer is to come; it has come, or will not */
	bool taking;      /* the server looks at the message */
	bool streaming;   /* the answer has begun, as events */
	bool opens;       /* the answer brings the client its session's id */
	bool wants_stream;
	bool loose;             /* there was more than the answer */
	bool starved;           /* something was said for which there was no memory */
	uv_timer_t timer;       /* says that it lives */
	struct coop_later gone; /* nobody wants to hear more */
};

/* One for a request, whose body is collected if `whole` is given. NULL: the exchange has been
 * refused. */
struct coop_mcp_exchange *coop_mcp_exchange_new(struct coop_http_exchange *exchange,
						void (*whole)(struct coop_mcp_exchange *work));

/* Gives the message to the server, for the client (NULL: modern), and answers now or later. */
void coop_mcp_exchange_take(struct coop_mcp_exchange *work, struct coop_mcp_client *client,
			    json_t *message);
/* Answers with an error. `id` (may be NULL) is the request's. */
void coop_mcp_exchange_refuse(struct coop_mcp_exchange *work, unsigned status,
			      enum coop_mcp_code code, const json_t *id, const char *message);
/* Begins the stream of a session. */
void coop_mcp_exchange_follow(struct coop_mcp_exchange *work, struct coop_mcp_client *client);

/* Ends such a stream. */
void coop_mcp_exchange_end(struct coop_mcp_exchange *work);

/* The client goes: nothing is counted as its own any more. */
void coop_mcp_exchanges_disown(struct coop_mcp_user *owner, const struct coop_mcp_client *client);
/* The user goes, and all of them. */
void coop_mcp_exchanges_clear(struct coop_mcp_user *owner);

#endif
