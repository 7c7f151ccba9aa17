/* An HTTP request, mostly on a process, that needs answers of the keeper before its own: one after
 * the other, and none after the client has gone. */
#ifndef COOP_HTTP_ASK_H
#define COOP_HTTP_ASK_H

#include <jansson.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "coop.h"
#include "doors/http/net/exchange.h"
#include "doors/http/users/user.h"

/* To be embedded at the front of what a route keeps. */
struct coop_ask {
	struct coop_http_exchange *exchange;
	struct coop_call *call; /* on its way */
	char *id;               /* of the process, as the keeper knows it */
	/* The answer has come. It may answer the exchange, or ask again. */
	void (*next)(struct coop_ask *ask, const json_t *result);
	/* The keeper has refused. To be set before the first is asked. */
	void (*failed)(struct coop_ask *ask, const struct coop_error *error);
	void (*data)(struct coop_ask *ask, const struct coop_chunk *chunk); /* may be NULL */
	void (*clear)(struct coop_ask *ask); /* frees what is beyond this struct; may be NULL */
};

/* A new one of `size` bytes for the exchange, zeroed; it goes with the exchange. NULL: the exchange
 * has been refused. */
void *coop_ask_new(struct coop_http_exchange *exchange, size_t size);

/* Asks. `args` is taken over; where it is NULL there was no memory, and the exchange is refused. */
void coop_ask(struct coop_ask *ask, const char *op, json_t *args,
	      void (*next)(struct coop_ask *ask, const json_t *result));

/* Ends the exchange with the text, or with a refusal if it could not be written. */
void coop_ask_answer(struct coop_ask *ask, struct coop_buf *text, const struct coop_jsonw *w);
void coop_ask_no_memory(struct coop_ask *ask);

#endif
