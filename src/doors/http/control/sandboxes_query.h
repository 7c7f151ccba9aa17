/* What the query of a list of the control plane asks for. Every parameter is honoured or
 * refused: whoever asks for some of his sandboxes, and gets all of them, ends the wrong ones. */
#ifndef COOP_HTTP_SANDBOXES_QUERY_H
#define COOP_HTTP_SANDBOXES_QUERY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "doors/http/net/exchange.h"

#define COOP_SANDBOX_PAGE 100
#define COOP_SANDBOX_PAGE_MAX 1000
#define COOP_SANDBOX_FILTERS_MAX 64 /* as many as a sandbox may have of metadata */

/* Which parameters a list has. */
enum {
	COOP_QUERY_PAGE = 1,    /* limit, next_token */
	COOP_QUERY_SELECT = 2,  /* query[metadata][NAME], query[state][] */
	COOP_QUERY_SANDBOX = 4, /* sandbox_id */
};

struct coop_sandbox_query {
	uint64_t limit, after;
	/* [[name, value]…], all of which must be there; NULL: none was asked for */
	json_t *metadata;
	bool by_state, live; /* states were named; sandboxes that can be used are in one of these */
};

/* Reads the exchange's query, of which `kinds` says what it may have. False: it has been
 * refused, and there is nothing to be cleared. */
bool coop_sandbox_query_read(struct coop_http_exchange *exchange, unsigned kinds,
			     struct coop_sandbox_query *ret);
void coop_sandbox_query_clear(struct coop_sandbox_query *query);

/* Whether a sandbox of that metadata is one of those. */
bool coop_sandbox_query_fits(const struct coop_sandbox_query *query, const json_t *metadata);

#endif
