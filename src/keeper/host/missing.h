/* What a start misses: names that the loop may not look at itself, until a thread has been there
 * (scouts.h). */
#ifndef COOP_KEEPER_MISSING_H
#define COOP_KEEPER_MISSING_H

#include <stdbool.h>

struct coop_request;

/* Whether a start must wait for sockets of the host that only a thread can look up. */
bool coop_missing_sockets(const struct coop_request *request);

/* Whether a path may be looked at that a policy asks about. What may not is remembered, and missed
 * until a thread has looked it up. */
bool coop_missing_program(struct coop_request *request, const char *path);
bool coop_missing_programs(const struct coop_request *request);

#endif
