/* What of the credentials is in the user's homes, and whether a command that says nothing sees
 * it. */
#ifndef COOP_KEEPER_CREDENTIALS_H
#define COOP_KEEPER_CREDENTIALS_H

#include "base/json/jsonw.h"

struct coop_confine;
struct coop_keeper;

/* For `doctor`: the member `credentials`. The confine says how a confined command would be. */
void coop_credentials_write(struct coop_keeper *keeper, const struct coop_confine *confine,
			    struct coop_jsonw *w);

#endif
