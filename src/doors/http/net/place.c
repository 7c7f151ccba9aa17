#include "doors/http/net/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "doors/http/net/conn.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/net.h"

/* The port at the end of an authority, and where its host ends. -1: broken. 0: none. */
static int split_port(const char *authority, size_t *ret_host)
{
	const char *end = authority[0] == '[' ? strchr(authority, ']') : authority - 1;
	const char *colon = end ? strchr(end + 1, ':') : NULL;

	if (!end)
		return -1;
	*ret_host = colon ? (size_t)(colon - authority) : strlen(authority);
	if (!colon)
		return 0;
	char *rest;
	long port = strtol(colon + 1, &rest, 10);
	if (colon[1] < '0' || colon[1] > '9' || *rest || port < 1 || port > 65535)
		return -1;
	return (int)port;
}

static bool same_host(const char *host, size_t size, const char *name)
{
	return strlen(name) == size && strncasecmp(host, name, size) == 0;
}

bool coop_place_here(const struct coop_http_place *place, const char *authority, bool any_port)
{
	static const char *const loopback[] = {"127.0.0.1", "localhost", "[::1]"};
	size_t host;
	int port = split_port(authority, &host);
	bool own_port = any_port;

	if (port < 0)
		return false;
	for (unsigned i = 0; i < place->port_count; i++)
		own_port |= port == place->ports[i] ||
			    (port == 0 && (place->ports[i] == 80 || place->ports[i] == 443));
	for (size_t i = 0; own_port && i < sizeof loopback / sizeof loopback[0]; i++) {
		if (same_host(authority, host, loopback[i]))
			return true;
	}
	/* Names that were configured are taken with every port: a proxy may stand before us. */
	for (size_t i = 0; place->names[i]; i++) {
		if (same_host(authority, host, place->names[i]) ||
		    strcasecmp(authority, place->names[i]) == 0)
			return true;
	}
	return false;
}

static bool origin_welcome(const struct coop_http_place *place, const char *origin, bool any_port)
{
	for (size_t i = 0; place->origins[i]; i++) {
		if (strcasecmp(origin, place->origins[i]) == 0)
			return true;
	}
	if (strncasecmp(origin, "http://", 7) == 0)
		return coop_place_here(place, origin + 7, any_port);
	return strncasecmp(origin, "https://", 8) == 0 &&
	       coop_place_here(place, origin + 8, any_port);
}

/* Reads what a trusted proxy says of a request: 1, 0 if it does not come from one (*ret being
 * empty), or -EINVAL with *ret_wrong naming the header. */
static int read_forwarded(const struct coop_http_exchange *exchange, struct coop_forwarded *ret,
			  const char **ret_wrong)
{
	const struct coop_proxies *proxies = &exchange->net->place->proxies;
	const struct coop_http_conn *conn = exchange->conn;
	bool trusted = conn->has_peer ? coop_proxies_have(proxies, &conn->peer) : proxies->local;

	*ret = (struct coop_forwarded){0};
	if (!trusted)
		return 0;
	int r = coop_forwarded_read(conn->head, proxies, ret, ret_wrong);
	return r < 0 ? r : 1;
}

/* Guessing tokens is counted by address; of version 6 by the network, as one host has many. */
static uint64_t source_of(const struct coop_address *address)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	uint64_t source = 0;

	if (memcmp(address->bytes, v4, sizeof v4) == 0) {
		uint32_t ip;
		memcpy(&ip, address->bytes + sizeof v4, sizeof ip);
		return (UINT64_C(4) << 32) | ip;
	}
	memcpy(&source, address->bytes, sizeof source);
	return source ^ (UINT64_C(6) << 56);
}

static void note_source(struct coop_http_conn *conn, const struct coop_forwarded *forwarded)
{
	conn->source = forwarded->has_client ? source_of(&forwarded->client)
		       : conn->has_peer      ? source_of(&conn->peer)
					     : 0;
}

/* Whether an origin is the one that a client of a proxy came to. */
static bool origin_forwarded(const char *origin, const struct coop_forwarded *forwarded)
{
	bool tls = strncasecmp(origin, "https://", 8) == 0;

	if (!*forwarded->host || (!tls && strncasecmp(origin, "http://", 7) != 0))
		return false;
	return strcasecmp(origin + (tls ? 8 : 7), forwarded->host) == 0 &&
	       forwarded->scheme != (tls ? COOP_SCHEME_HTTP : COOP_SCHEME_HTTPS);
}

bool coop_place_check(struct coop_http_exchange *exchange)
{
	const struct coop_http_place *place = exchange->net->place;
	struct coop_forwarded forwarded;
	const char *wrong = NULL;
	const char *host = coop_http_header(exchange, "host");
	const char *origin = coop_http_header(exchange, "origin");

	/* A Unix socket has no port to be right about, and no browser comes that way. */
	bool any_port = exchange->conn->local;

	if (read_forwarded(exchange, &forwarded, &wrong) < 0) {
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "the proxy's header %s cannot be understood", wrong);
		return false;
	}
	note_source(exchange->conn, &forwarded);
	if (host && !coop_place_here(place, host, any_port)) {
		coop_http_refuse(exchange, 403, "forbidden", "the Host is none of this gateway's");
		return false;
	}
	if (origin && !origin_welcome(place, origin, any_port) &&
	    !origin_forwarded(origin, &forwarded)) {
		coop_http_refuse(exchange, 403, "forbidden", "the Origin may not use this gateway");
		return false;
	}
	return true;
}

void coop_place_url(const struct coop_http_exchange *exchange, char ret[COOP_PLACE_URL_MAX])
{
	const struct coop_http_place *place = exchange->net->place;
	const char *host = coop_http_header(exchange, "host"), *wrong;
	struct coop_forwarded forwarded;

	if (*place->public_url) {
		(void)snprintf(ret, COOP_PLACE_URL_MAX, "%s", place->public_url);
		return;
	}
	(void)read_forwarded(exchange, &forwarded, &wrong);
	if (*forwarded.host)
		host = forwarded.host;
	bool tls = forwarded.scheme ? forwarded.scheme == COOP_SCHEME_HTTPS
				    : exchange->conn->tls != NULL;
	if ((forwarded.scheme || *forwarded.host) && host)
		(void)snprintf(ret, COOP_PLACE_URL_MAX, "%s://%s", tls ? "https" : "http", host);
	else
		(void)snprintf(ret, COOP_PLACE_URL_MAX, "%s", place->url);
}
