/* Whether a request may go on: where it thinks it is (Host, Origin), and whose it is (the bearer
 * token). */
#ifndef COOP_HTTP_ACCESS_H
#define COOP_HTTP_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coop.h"
#include "doors/http/net/exchange.h"

struct coop_http_conn;
struct coop_forwarded;
struct coop_gateway;
struct coop_user;
struct coop_user_waiter;

/* Checks Host and Origin. False: it has been refused (403). Pages of other sites, and names that
 * only point here, get nothing. */
bool coop_access_place(struct coop_http_exchange *exchange);

/* Whether a Host or the authority of an origin ("127.0.0.1:7717", "[::1]") means this gateway; with
 * any port, or with one that it listens on. */
bool coop_access_here(const struct coop_gateway *gateway, const char *authority, bool any_port);

/* The token in an Authorization header's value; NULL if it is none that could be one. The scheme's
 * name is written in any case. */
const char *coop_access_token(const char *authorization);

/* Reads what a trusted proxy says of a request: 1, 0 if it does not come from one (*ret being
 * empty), or -EINVAL with *ret_wrong naming the header. */
int coop_access_forwarded(const struct coop_http_exchange *exchange, struct coop_forwarded *ret,
			  const char **ret_wrong);

/* Under what its failures are counted. */
uint64_t coop_access_place_of(const struct coop_http_conn *conn, const char *token);

/* Looks up the token, asking the keeper if it is new, and calls `done` now or later, with 0, or
 * -EACCES (wrong, or none), -EBUSY (too many wrong ones from there), -ENOMEM, -EPIPE (no keeper).
 * While it waits *ret_waiter is set, for coop_user_wait_stop(). */
void coop_access_check(struct coop_http_exchange *exchange,
		       void (*done)(struct coop_http_conn *conn, struct coop_user *user,
				    int status),
		       struct coop_user_waiter **ret_waiter);
/* The answer to such a status. */
void coop_access_refuse(struct coop_http_exchange *exchange, int status);

#endif
