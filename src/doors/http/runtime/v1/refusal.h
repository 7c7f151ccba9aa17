/* The keeper's errors as HTTP ones, in one place. */
#ifndef COOP_HTTP_V1_REFUSAL_H
#define COOP_HTTP_V1_REFUSAL_H

#include "coop.h"
#include "doors/http/net/exchange.h"

struct coop_http_refusal {
	unsigned status;
	const char *code;
};

/* What an error of the keeper (or of libcoop) is on /runtime/v1: no_such_process -> 404
 * process_not_found. */
struct coop_http_refusal coop_refusal_of(const struct coop_error *error);

/* Takes the words out of a message that clients take for a lost connection ("closed",
 * "websocket"). */
void coop_refusal_text(char *message);

/* Answers with a message made free of words that clients take for a lost connection; "": without
 * a reason. */
void coop_refuse_as(struct coop_http_exchange *exchange, struct coop_http_refusal refusal,
		    const char *message);
/* Answers with it; the message is the keeper's, made free of words that clients take for a lost
 * connection. */
void coop_refuse_with(struct coop_http_exchange *exchange, const struct coop_error *error);

/* What SDKs know and coop has not: 501 `not_implemented`, "<what> is not provided by coop". The one
 * place for these words; a 404 would be a fact ("it does not exist") to SDKs. `what` may hold text
 * of the client's, of which as much is shown as fits. */
void coop_refuse_unprovided(struct coop_http_exchange *exchange, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same for a whole route: its method and path. */
void coop_refuse_route(struct coop_http_exchange *exchange);

#endif
