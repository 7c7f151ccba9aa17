#include "doors/http/users/access.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "doors/http/main/gateway.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/failures.h"
#include "doors/http/net/forwarded.h"
#include "doors/http/users/user_private.h"

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

bool coop_access_here(const struct coop_gateway *gateway, const char *authority, bool any_port)
{
	static const char *const loopback[] = {"127.0.0.1", "localhost", "[::1]"};
	size_t host;
	int port = split_port(authority, &host);
	bool own_port = any_port;

	if (port < 0)
		return false;
	for (unsigned i = 0; i < gateway->options.port_count; i++)
		own_port |= port == gateway->options.ports[i] ||
			    (port == 0 &&
			     (gateway->options.ports[i] == 80 || gateway->options.ports[i] == 443));
	for (size_t i = 0; own_port && i < sizeof loopback / sizeof loopback[0]; i++) {
		if (same_host(authority, host, loopback[i]))
			return true;
	}
	/* Names that were configured are taken with every port: a proxy may stand before us. */
	for (size_t i = 0; gateway->options.names[i]; i++) {
		if (same_host(authority, host, gateway->options.names[i]) ||
		    strcasecmp(authority, gateway->options.names[i]) == 0)
			return true;
	}
	return false;
}

static bool origin_welcome(const struct coop_gateway *gateway, const char *origin, bool any_port)
{
	for (size_t i = 0; gateway->options.origins[i]; i++) {
		if (strcasecmp(origin, gateway->options.origins[i]) == 0)
			return true;
	}
	if (strncasecmp(origin, "http://", 7) == 0)
		return coop_access_here(gateway, origin + 7, any_port);
	return strncasecmp(origin, "https://", 8) == 0 &&
	       coop_access_here(gateway, origin + 8, any_port);
}

int coop_access_forwarded(const struct coop_http_exchange *exchange, struct coop_forwarded *ret,
			  const char **ret_wrong)
{
	const struct coop_proxies *proxies = &exchange->gateway->options.proxies;
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

bool coop_access_place(struct coop_http_exchange *exchange)
{
	struct coop_forwarded forwarded;
	const char *wrong = NULL;
	const char *host = coop_http_header(exchange, "host");
	const char *origin = coop_http_header(exchange, "origin");

	/* A Unix socket has no port to be right about, and no browser comes that way. */
	bool any_port = exchange->conn->local;

	if (coop_access_forwarded(exchange, &forwarded, &wrong) < 0) {
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "the proxy's header %s cannot be understood", wrong);
		return false;
	}
	note_source(exchange->conn, &forwarded);
	if (host && !coop_access_here(exchange->gateway, host, any_port)) {
		coop_http_refuse(exchange, 403, "forbidden", "the Host is none of this gateway's");
		return false;
	}
	if (origin && !origin_welcome(exchange->gateway, origin, any_port) &&
	    !origin_forwarded(origin, &forwarded)) {
		coop_http_refuse(exchange, 403, "forbidden", "the Origin may not use this gateway");
		return false;
	}
	return true;
}

const char *coop_access_token(const char *authorization)
{
	if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
		return NULL;
	authorization += 7;
	authorization += strspn(authorization, " ");
	size_t size = strlen(authorization);
	if (!size || size > COOP_TOKEN_MAX)
		return NULL;
	for (size_t i = 0; i < size; i++) {
		if (authorization[i] <= ' ' || authorization[i] > '~')
			return NULL;
	}
	return authorization;
}

uint64_t coop_access_place_of(const struct coop_http_conn *conn, const char *token)
{
	uint64_t number = 0;

	/* coop_7_… */
	if (strncmp(token, "coop_", 5) == 0)
		number = strtoull(token + 5, NULL, 10);
	return conn->source ^ (number * UINT64_C(0xbf58476d1ce4e5b9));
}

void coop_access_check(struct coop_http_exchange *exchange,
		       void (*done)(struct coop_http_conn *conn, struct coop_user *user,
				    int status),
		       struct coop_user_waiter **ret_waiter)
{
	struct coop_gateway *gateway = exchange->gateway;
	struct coop_http_conn *conn = exchange->conn;
	const char *token = coop_access_token(coop_http_header(exchange, "authorization"));

	if (!token)
		done(conn, NULL, -EACCES);
	/* Tokens that are known go on: whoever guesses beside them must not lock them out. */
	else if (!coop_users_knows(gateway->users, token) &&
		 coop_failures_too_many(gateway->failures, coop_access_place_of(conn, token),
					uv_now(gateway->loop)))
		done(conn, NULL, -EBUSY);
	else
		coop_users_find(gateway->users, token, conn, done, ret_waiter);
}

void coop_access_refuse(struct coop_http_exchange *exchange, int status)
{
	switch (status) {
	case -EACCES:
		coop_http_add_header(exchange, "WWW-Authenticate: Bearer realm=\"coop\"");
		coop_http_refuse(exchange, 401, "unauthorized", "a valid bearer token is needed");
		break;
	case -EBUSY:
		coop_http_add_header(exchange, "Retry-After: 1");
		coop_http_refuse(exchange, 429, "quota_exceeded",
				 "too many wrong tokens came from here; try again later");
		break;
	case -EDQUOT:
		coop_http_add_header(exchange, "Retry-After: 1");
		coop_http_refuse(exchange, 429, "quota_exceeded",
				 "the keeper takes no more connections of this token's agent");
		break;
	case -ENOMEM:
		coop_http_refuse(exchange, 503, "sandbox_overloaded", "out of memory");
		break;
	default:
		coop_http_refuse(exchange, 503, "sandbox_overloaded",
				 "the keeper cannot be reached");
		break;
	}
}
