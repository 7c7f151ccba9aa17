/* MCP without its transports: one server for one agent, its open requests, and what methods use.
 * stdio and HTTP bring messages in and take messages out; everything between is here and in the
 * methods' files. */
#ifndef COOP_MCP_MCP_H
#define COOP_MCP_MCP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json/jsonw.h"
#include "base/list.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/host.h"

/* Revisions by age: the last is the one of the modern era (no opening, every request carries its
 * metadata). */
enum coop_mcp_version {
	COOP_MCP_2024_11_05,
	COOP_MCP_2025_03_26,
	COOP_MCP_2025_06_18,
	COOP_MCP_2025_11_25,
	COOP_MCP_2026_07_28,
};
#define COOP_MCP_NONE (-1)
#define COOP_MCP_LEGACY_LATEST COOP_MCP_2025_11_25
#define COOP_MCP_MODERN COOP_MCP_2026_07_28

/* Requests that one server carries out at a time; more are refused (-32000). */
#define COOP_MCP_OPEN_MAX 256u
/* Nesting of a message; more is refused as malformed. */
#define COOP_MCP_DEPTH_MAX 64u

enum coop_mcp_code {
	COOP_MCP_PARSE = -32700,
	COOP_MCP_INVALID_REQUEST = -32600,
	COOP_MCP_NO_METHOD = -32601,
	COOP_MCP_INVALID_PARAMS = -32602,
	COOP_MCP_INTERNAL = -32603,
	COOP_MCP_BUSY = -32000,
	COOP_MCP_NO_RESOURCE = -32002, /* legacy */
	COOP_MCP_HEADER_MISMATCH = -32020,
	COOP_MCP_NO_CAPABILITY = -32021,
	COOP_MCP_NO_VERSION = -32022,
};

struct coop_mcp_request;
struct coop_mcp_session;
struct coop_mcp_watch;
struct coop_mcp_tasks;

/* Where messages go: the pipe of stdio, the answer to one POST, the stream of a GET. Embedded in
 * what the transport keeps. */
struct coop_mcp_channel {
	/* One message, whole JSON text without a newline. `last`: it is the answer to the request,
	 * nothing follows for it. The text is copied. */
	void (*send)(struct coop_mcp_channel *channel, const char *json, size_t size, bool last);
	/* The HTTP status of an error that comes next, before anything was sent; NULL: no such
	 * thing (stdio). */
	void (*status)(struct coop_mcp_channel *channel, unsigned status);
	/* A request of it was ended without an answer (cancelled): none comes. NULL: nobody needs
	 * to know. */
	void (*cancelled)(struct coop_mcp_channel *channel);
	/* Whether it takes more now. Notifications that can be joined (updates, progress) wait or
	 * are left out while it does not. NULL: always. */
	bool (*has_room)(const struct coop_mcp_channel *channel);
};

/* What one agent's client sees: made once for stdio, once for each user of the gateway. */
struct coop_mcp {
	const struct coop_tool_host *host;
	const struct coop_tool_setup *setup;
	unsigned sets; /* of tools that are listed (COOP_TOOLS_…) */
	bool fixtures; /* the conformance suite's tools and resources too (builds for tests only) */
	unsigned open; /* requests */
	unsigned quick; /* of them calls of tools that only look */
	/* more of those, which wait for others to end, oldest first */
	struct coop_link queued;
	struct coop_mcp_request *requests; /* all that are open, newest first */
	struct coop_mcp_watch *watch; /* of processes, for subscribers; made when first needed */
	struct coop_mcp_tasks *tasks; /* made when first needed */
	bool stopping;                /* takes no more requests */
	bool clearing;                /* begins nothing any more */
};

/* Zeroes and fills it. Ended with coop_mcp_clear(), which drops all that is open without a word. */
void coop_mcp_init(struct coop_mcp *mcp, const struct coop_tool_host *host,
		   const struct coop_tool_setup *setup, unsigned sets);
void coop_mcp_clear(struct coop_mcp *mcp);
/* The server leaves: subscriptions are told, as far as the protocol has words for it. */
void coop_mcp_stop(struct coop_mcp *mcp);

/* A client of the legacy era: stdio has one, HTTP one for each session id. */
struct coop_mcp_session {
	int version; /* negotiated; COOP_MCP_NONE: not yet */
	bool initialized;
	/* for notifications that belong to no request; NULL: nowhere now */
	struct coop_mcp_channel *channel;
	struct coop_mcp_subscription *subscriptions;
};
void coop_mcp_session_clear(struct coop_mcp *mcp, struct coop_mcp_session *session);

/* One request from its message to its answer. */
struct coop_mcp_request {
	struct coop_mcp *mcp;
	struct coop_mcp_channel *channel;
	struct coop_mcp_session *session; /* NULL in the modern era */
	int version;
	json_t *id;     /* string or integer */
	json_t *params; /* an object; empty if there were none */
	/* modern: of the client, as this request says; borrowed from params */
	json_t *capabilities;
	json_t *progress_token; /* NULL: none; borrowed */
	uint64_t progress_at;   /* when it was told last, ms */
	uint64_t progress;      /* what it was told */
	/* Set by a method that answers later: frees its context; nothing may be sent afterwards.
	 * Called once, when the request is cancelled or the server goes; not after the answer. */
	void (*cancel)(struct coop_mcp_request *request);
	void *context;
	struct coop_mcp_request *next, **link;
	struct coop_link in_queue;
};

static inline bool coop_mcp_is_modern(const struct coop_mcp_request *request)
{
	return request->version == COOP_MCP_MODERN;
}

#define COOP_MCP_TASKS_EXTENSION "io.modelcontextprotocol/tasks"
/* Whether this request says that its client knows the extension. */
bool coop_mcp_declares_tasks(const struct coop_mcp_request *request);

/* A method. Answers now, or sets `cancel` and answers later. */
struct coop_mcp_method {
	const char *name;
	bool legacy, modern; /* the eras that have it */
	void (*handle)(struct coop_mcp_request *request);
};

/* Ends the request with its result, which is taken over (NULL: no memory). In the modern era
 * resultType and serverInfo are added where they are missing. */
void coop_mcp_answer(struct coop_mcp_request *request, json_t *result);
/* The same for large ones: the members of the result are written between the two, into `w`, whose
 * buffer is empty before and after. */
void coop_mcp_result_begin(const struct coop_mcp_request *request, struct coop_jsonw *w);
void coop_mcp_result_end(struct coop_mcp_request *request, struct coop_jsonw *w);
/* Ends it with an error. `data` (may be NULL) is taken over. */
void coop_mcp_error(struct coop_mcp_request *request, enum coop_mcp_code code, json_t *data,
		    const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A notification on the request's channel; `params` is taken over. */
void coop_mcp_notify(struct coop_mcp_channel *channel, const char *method, json_t *params);
/* ttlMs and cacheScope of the modern era; nothing in the other. */
void coop_mcp_cacheable(const struct coop_mcp_request *request, json_t *result, int64_t ttl_ms,
			const char *scope);

/* The open request of that id on that channel, or of that session (may be NULL); NULL: none. Then
 * coop_mcp_cancel() ends it silently. */
struct coop_mcp_request *coop_mcp_find(const struct coop_mcp *mcp,
				       const struct coop_mcp_channel *channel,
				       const struct coop_mcp_session *session, const json_t *id);
void coop_mcp_cancel(struct coop_mcp_request *request);

/* The value of one message's text; NULL: it is no JSON, not UTF-8, has a member twice, or is nested
 * too deep. */
json_t *coop_mcp_parse(const char *text, size_t size);
/* Takes one message: an object, or where the revision has batches an array. Borrowed. `session` is
 * the legacy client's (NULL: HTTP without one). Malformed ones are answered on the channel. Returns
 * how many requests were begun whose answers come (or have come) on the channel; 0: there is none
 * to wait for. */
unsigned coop_mcp_take(struct coop_mcp *mcp, struct coop_mcp_session *session,
		       struct coop_mcp_channel *channel, json_t *message);
/* Answers with an error that belongs to no request (id null). */
void coop_mcp_refuse(struct coop_mcp_channel *channel, enum coop_mcp_code code,
		     const char *message);

/* The channel of some requests has room again: goes on with calls that waited for that. */
void coop_mcp_resume(struct coop_mcp *mcp);

/* A progress notification if the request wants them, at most two a second. */
void coop_mcp_progress(struct coop_mcp_request *request, const char *message);

/* All of them, newest first. */
json_t *coop_mcp_versions(void);
/* Revision by name, or COOP_MCP_NONE. */
int coop_mcp_version_of(const char *name);

#endif
