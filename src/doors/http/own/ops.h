/* POST /v1/ops/NAME: the keeper's operations as they are. The body is the operation's arguments,
 * the answer its result.
 *
 * Bytes travel as base64. Those of the request are a member `data_base64` beside the arguments.
 * Those of the answer are added to the result: `data`, {stream: all its bytes}, and where they were
 * read by event also `chunks`, [{"stream", "offset", "cursor", "data"}…] in order.
 *
 * Refusals are {"error", "message", "details"} with the keeper's own codes. A client that goes
 * drops what it asked. */
#ifndef COOP_HTTP_OPS_H
#define COOP_HTTP_OPS_H

#include "coop.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/route.h"

/* The bytes of a spawn as base64, and a frame of arguments. */
#define COOP_OPS_BODY_MAX ((size_t)COOP_SPAWN_DATA_MAX / 3 * 4 + (9u << 20))
/* Bytes that one answer may bring; more is too_large. No operation gives as many. */
#define COOP_OPS_DATA_MAX (8u << 20)

extern const struct coop_http_route coop_routes_ops[];

/* Answers with an error of the keeper: its code, message and details. */
void coop_ops_refuse(struct coop_http_exchange *exchange, const struct coop_error *error);

#endif
