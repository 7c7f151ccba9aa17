/* Where this gateway is for its clients: the names and ports that they may call it by (Host), the
 * origins whose pages may use it, and what proxies say of that. Pages of other sites, and names
 * that only point here, get nothing. */
#ifndef COOP_HTTP_PLACE_H
#define COOP_HTTP_PLACE_H

#include <stdbool.h>

#include "doors/http/net/forwarded.h"

#define COOP_PLACE_PORTS_MAX 16
#define COOP_PLACE_NAMES_MAX 34

struct coop_http_exchange;

struct coop_http_place {
	const char *url; /* what clients are told to use if nothing better is known; no slash */
	char public_url[COOP_ORIGIN_SIZE]; /* what they are told in any case; "": not said */
	struct coop_proxies proxies;       /* whose word on the client's side of a request counts */
	const char *names[COOP_PLACE_NAMES_MAX];   /* further names in Host, NULL-ended */
	const char *origins[COOP_PLACE_NAMES_MAX]; /* further origins, NULL-ended */
	int ports[COOP_PLACE_PORTS_MAX];           /* of the listeners that have one */
	unsigned port_count;
};

/* Whether a Host or the authority of an origin ("127.0.0.1:7717", "[::1]") means this gateway; with
 * any port, or with one that it listens on. */
bool coop_place_here(const struct coop_http_place *place, const char *authority, bool any_port);

/* Checks Host and Origin, and notes in the connection where the client is. False: it has been
 * refused (403, or 400 for a proxy's header that is none). */
bool coop_place_check(struct coop_http_exchange *exchange);

#define COOP_PLACE_URL_MAX 600

/* Writes where clients reach this gateway: by the name that the operator has told, that a trusted
 * proxy was called by, or else by our own. */
void coop_place_url(const struct coop_http_exchange *exchange, char ret[COOP_PLACE_URL_MAX]);

#endif
