/* Output by polling: GET /runtime/v1/process/{pid}/output. Never waits. */
#ifndef COOP_HTTP_V1_OUTPUT_H
#define COOP_HTTP_V1_OUTPUT_H

#include "doors/http/net/exchange.h"

#define COOP_OUTPUT_LIMIT (1u << 20) /* decoded bytes of one answer: default and most */

void coop_runtime_output(struct coop_http_exchange *exchange);

#endif
