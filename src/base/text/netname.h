/* Names and addresses of hosts as text: what may stand in a Host, in a URL, in a list of
 * proxies. No name is looked up. */
#ifndef COOP_BASE_NETNAME_H
#define COOP_BASE_NETNAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A name of 253 bytes, a colon, a port of five digits, and a NUL. */
#define COOP_AUTHORITY_SIZE 260u
/* The same behind "https://". */
#define COOP_ORIGIN_SIZE (COOP_AUTHORITY_SIZE + 8u)

/* Of version 6; those of version 4 as ::ffff:a.b.c.d, so that one client has one address. */
struct coop_address {
	uint8_t bytes[16];
};

/* All addresses that begin with the same bits. */
struct coop_address_range {
	struct coop_address first;
	unsigned bits; /* 0 to 128 */
};

/* Whether a text is a host's name, or its address (of version 6 in brackets), with a port or
 * without. */
bool coop_authority_valid(const char *text, size_t size);

/* Reads a URL that is nothing but an origin ("https://example.org:8443", a slash may follow)
 * into *ret, without the slash and with the scheme in lower case. 0 or -EINVAL. */
int coop_origin_parse(const char *url, char ret[COOP_ORIGIN_SIZE]);

/* An address alone, without brackets or port. 0 or -EINVAL. */
int coop_address_parse(const char *text, size_t size, struct coop_address *ret);

/* "192.0.2.7", "10.0.0.0/8", "2001:db8::/32". 0, or -EINVAL, also for bits behind the network's
 * own. */
int coop_network_parse(const char *text, struct coop_address_range *ret);

bool coop_network_has(const struct coop_address_range *network, const struct coop_address *address);

#endif
