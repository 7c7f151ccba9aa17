/* GET /v1/sandboxes. */
#ifndef COOP_HTTP_SANDBOXES_LIST_H
#define COOP_HTTP_SANDBOXES_LIST_H

#include "doors/http/exchange.h"

/* The caller's own sandboxes in the order in which they were made: `limit` 1 to 1000 (100), `next_token` where the last answer ended. */
void coop_sandboxes_list(struct coop_http_exchange *exchange);

#endif
