/* Sandboxes as clients see them, from what the keeper says of an agent. */
#ifndef COOP_HTTP_SANDBOXES_VIEW_H
#define COOP_HTTP_SANDBOXES_VIEW_H

#include <jansson.h>

#include "doors/http/net/exchange.h"

/* S of the control plane; a new reference, NULL without memory. */
json_t *coop_sandbox_view(const json_t *agent);

/* {"sandbox": S}, with a token also its session, and with warnings these. Ends the exchange. */
void coop_sandbox_answer(struct coop_http_exchange *exchange, unsigned status, const json_t *agent,
			 const char *token, json_t *warnings);

/* A JSON value, taken over; NULL: there is no memory left. Ends the exchange. */
void coop_sandbox_answer_value(struct coop_http_exchange *exchange, unsigned status, json_t *value);

#endif
