/* Why the keeper has refused, where its error says it for programs. */
#ifndef COOP_HTTP_REASON_H
#define COOP_HTTP_REASON_H

#include <stdbool.h>

#include "coop.h"

/* Whether that is the `reason` among the error's details ("token_revoked"). */
bool coop_reason_is(const struct coop_error *error, const char *reason);

#endif
