#include "doors/http/users/access.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coop.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/failures.h"
#include "doors/http/net/net.h"
#include "doors/http/users/user_state.h"

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

static const char *token_of(const struct coop_http_exchange *exchange)
{
	return coop_access_token(coop_http_header(exchange, "authorization"));
}

/* Under what the failures of a token are counted that comes from there. */
static uint64_t place_of(const struct coop_http_exchange *exchange, const char *token)
{
	uint64_t number = 0;

	/* coop_7_… */
	if (strncmp(token, "coop_", 5) == 0)
		number = strtoull(token + 5, NULL, 10);
	return exchange->conn->source ^ (number * UINT64_C(0xbf58476d1ce4e5b9));
}

void coop_access_check(struct coop_http_exchange *exchange, coop_user_done *done)
{
	struct coop_callers *users = exchange->net->users;
	const char *token = token_of(exchange);

	if (!token)
		done(exchange, NULL, -EACCES);
	/* Tokens that are known go on: whoever guesses beside them must not lock them out. */
	else if (!coop_users_knows(users, token) &&
		 coop_failures_too_many(&users->failures, place_of(exchange, token),
					uv_now(exchange->net->loop)))
		done(exchange, NULL, -EBUSY);
	else
		coop_users_find(users, token, exchange, done);
}

/* One that the keeper has not taken. */
static void count_failure(const struct coop_http_exchange *exchange)
{
	const char *token = token_of(exchange);

	if (!token)
		return;
	exchange->net->counts.auth_failures++;
	coop_failures_add(&exchange->net->users->failures, place_of(exchange, token),
			  uv_now(exchange->net->loop));
}

void coop_access_refuse(struct coop_http_exchange *exchange, int status)
{
	switch (status) {
	case -EACCES:
		count_failure(exchange);
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
