/* GET /v1/sandboxes. */
#ifndef COOP_HTTP_SANDBOXES_LIST_H
#define COOP_HTTP_SANDBOXES_LIST_H

#include "doors/http/net/exchange.h"

/* The caller's own sandboxes in the order in which they were made: those that the query asks for
 * (sandboxes_query.h), page by page. */
void coop_sandboxes_list(struct coop_http_exchange *exchange);

#endif
