/* One request and its answer: the seam between the connection layer and the routes. A route sees a
 * whole head, takes the body as it comes or collected, and answers at once, later, or piece by
 * piece. It never sees a socket.
 *
 * An exchange lives from its head until the answer has been handed over in full or the client is
 * gone; `over` of its behaviour tells the route, exactly once and always, and nothing of it may be
 * touched afterwards. */
#ifndef COOP_HTTP_EXCHANGE_H
#define COOP_HTTP_EXCHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COOP_HTTP_PARAMS_MAX 2

struct coop_http_conn;
struct coop_http_exchange;
struct coop_http_net;
struct coop_user;
struct coop_user_waiter;
struct coop_ws;
struct coop_ws_behaviour;

/* What a route does when things happen. Any of them may be NULL; `context` is the exchange's. */
struct coop_http_behaviour {
	/* Bytes of the body, in order (routes with COOP_BODY_STREAM). coop_http_pause() stops
	 * them. */
	void (*body)(struct coop_http_exchange *exchange, const void *data, size_t size);
	void (*body_end)(struct coop_http_exchange *exchange);
	/* Less than COOP_HTTP_LOW bytes of a streamed answer wait to be sent. */
	void (*writable)(struct coop_http_exchange *exchange);
	/* The end, whatever the reason: free the context, drop what is still asked of the
	 * keeper. */
	void (*over)(struct coop_http_exchange *exchange);
};

#define COOP_HTTP_LOW (64u << 10)
/* Streams that wait until their client has room write no more than this at once. */
#define COOP_HTTP_PIECE (256u << 10)

struct coop_http_exchange {
	struct coop_http_net *net;
	struct coop_http_conn *conn;
	struct coop_user *user;          /* whose token it came with; NULL on open routes */
	struct coop_user_waiter *waiter; /* while the keeper is asked whether the token is good */
	const char *method;
	/* Raw, as sent: nothing is decoded. The query has no question mark, "" if there is none. */
	char *path, *query;
	char *params[COOP_HTTP_PARAMS_MAX]; /* decoded {…} parts of the route's pattern */
	bool upgrade;                       /* a proper WebSocket upgrade */
	int64_t body_length;                /* Content-Length; -1: chunked or none */
	json_t *json; /* routes with COOP_BODY_JSON: the body; an empty object if it was empty */

	const struct coop_http_behaviour *behaviour;
	void *context;

	/* The layer's own. */
	char extra[512]; /* header lines of the answer, with their line ends */
	bool begun, chunked;
	int64_t remaining; /* of an answer whose length was told */
};

/* The value of a header (name in lower case), or NULL. Of one that came twice, the first. */
const char *coop_http_header(const struct coop_http_exchange *exchange, const char *name);

/* Sets what happens next. Before returning from the route's function, if it does not answer
 * there. */
void coop_http_expect(struct coop_http_exchange *exchange,
		      const struct coop_http_behaviour *behaviour, void *context);

/* "Not Found", …; never NULL. */
const char *coop_http_reason(unsigned status);

/* Whole answers. Each ends the exchange (`over` runs before they return). Text is copied. */
void coop_http_answer(struct coop_http_exchange *exchange, unsigned status, const char *type,
		      const void *body, size_t size);
void coop_http_answer_json(struct coop_http_exchange *exchange, unsigned status, const char *json,
			   size_t size);
/* {"error": code, "message": …} */
void coop_http_refuse(struct coop_http_exchange *exchange, unsigned status, const char *code,
		      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* One more header line of the answer to come ("Allow: GET"), without line end. */
void coop_http_add_header(struct coop_http_exchange *exchange, const char *line);

/* Answers piece by piece. `length` -1: not known (chunked; to an HTTP/1.0 client until the
 * connection ends). What is written is copied. coop_http_end() ends the exchange. If the promised
 * length was not written, coop_http_abort() cuts the connection so that the client notices. */
void coop_http_begin(struct coop_http_exchange *exchange, unsigned status, const char *type,
		     int64_t length);
void coop_http_write(struct coop_http_exchange *exchange, const void *data, size_t size);
/* Bytes that wait to be sent to this client. */
size_t coop_http_pending(const struct coop_http_exchange *exchange);
void coop_http_end(struct coop_http_exchange *exchange);
void coop_http_abort(struct coop_http_exchange *exchange);

/* Counts the bytes of the body that its route keeps until it is whole. False: with those of all
 * connections of the user's agent that is too much. */
bool coop_http_hold(struct coop_http_exchange *exchange, size_t bytes);

/* Stops and goes on with the body (the client is slowed down by its window). */
void coop_http_pause(struct coop_http_exchange *exchange);
void coop_http_resume(struct coop_http_exchange *exchange);

/* Turns the connection into a WebSocket (exchange->upgrade must be set); ends the exchange. NULL
 * without memory: it has been refused then. */
struct coop_ws *coop_http_upgrade(struct coop_http_exchange *exchange,
				  const struct coop_ws_behaviour *behaviour, void *context);

#endif
