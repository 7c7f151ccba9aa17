/* Whose a request is: the bearer token in it. Guessing tokens is made slow. */
#ifndef COOP_HTTP_ACCESS_H
#define COOP_HTTP_ACCESS_H

#include "doors/http/users/users.h"

/* The token in an Authorization header's value; NULL if it is none that could be one. The scheme's
 * name is written in any case. */
const char *coop_access_token(const char *authorization);

/* Looks up the exchange's token, asking the keeper if it is new, and calls `done` now or later,
 * with 0, or -EACCES (wrong, or none), -EBUSY (too many wrong ones from there), -ENOMEM, -EPIPE (no
 * keeper). */
void coop_access_check(struct coop_http_exchange *exchange, coop_user_done *done);
/* The answer to such a status; what was wrong is counted. */
void coop_access_refuse(struct coop_http_exchange *exchange, int status);

#endif
