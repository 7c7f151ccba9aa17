/* What proxies that are trusted say of a request that they pass on: Forwarded (RFC 7239), or the
 * older X-Forwarded-For, -Proto and -Host. Of anybody else these headers are words of the
 * client's, and mean nothing. A parser without I/O. */
#ifndef COOP_HTTP_FORWARDED_H
#define COOP_HTTP_FORWARDED_H

#include <stdbool.h>

#include "base/text/netname.h"

#define COOP_PROXIES_MAX 32u

struct coop_head;

/* Whose word counts. */
struct coop_proxies {
	struct coop_address_range networks[COOP_PROXIES_MAX];
	unsigned count;
	bool local; /* whoever comes over a Unix socket */
};

enum coop_scheme {
	COOP_SCHEME_UNKNOWN,
	COOP_SCHEME_HTTP,
	COOP_SCHEME_HTTPS,
};

struct coop_forwarded {
	enum coop_scheme scheme;        /* by which the client came */
	char host[COOP_AUTHORITY_SIZE]; /* what it called us; "": not said */
	bool has_client;                /* whether its address is known */
	struct coop_address client;
};

bool coop_proxies_have(const struct coop_proxies *proxies, const struct coop_address *address);

/* Reads what the head of a request says that came from a trusted proxy. A chain of them is
 * followed as far as each is trusted: the first address from its end that is not, is the
 * client's. 0, or -EINVAL with *ret_wrong naming the header that is none, *ret being empty then. */
int coop_forwarded_read(const struct coop_head *head, const struct coop_proxies *proxies,
			struct coop_forwarded *ret, const char **ret_wrong);

#endif
