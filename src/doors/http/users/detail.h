/* What an error of the keeper says for programs. */
#ifndef COOP_HTTP_DETAIL_H
#define COOP_HTTP_DETAIL_H

#include <stdbool.h>

#include "coop.h"

/* Whether a member of its details is that text: "reason" of a connection that was ended
 * ("token_revoked"), "field" of a wrong argument. */
bool coop_detail_is(const struct coop_error *error, const char *member, const char *text);

#endif
