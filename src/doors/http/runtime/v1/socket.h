/* The two WebSockets of processes: GET /runtime/v1/process starts one, GET …/{pid}/connect attaches
 * to one. */
#ifndef COOP_HTTP_V1_SOCKET_H
#define COOP_HTTP_V1_SOCKET_H

#include "doors/http/net/exchange.h"

/* The start message must come within that. */
#define COOP_START_MS 30000u

void coop_runtime_start(struct coop_http_exchange *exchange);
void coop_runtime_connect(struct coop_http_exchange *exchange);

#endif
