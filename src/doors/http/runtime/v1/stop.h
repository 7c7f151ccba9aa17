/* Ending processes and sending them signals: DELETE /runtime/v1/process/{pid}, POST …/signal. */
#ifndef COOP_HTTP_V1_STOP_H
#define COOP_HTTP_V1_STOP_H

#include "doors/http/net/exchange.h"

void coop_runtime_delete(struct coop_http_exchange *exchange);
void coop_runtime_signal(struct coop_http_exchange *exchange);

#endif
