/* What an `id` argument means: an id, an alias behind "alias:", a process number behind "pid:", a
 * tag, or a beginning of an id, among what the caller may see. */
#ifndef COOP_KEEPER_LOOKUP_H
#define COOP_KEEPER_LOOKUP_H

#include <stdint.h>

#include "interface/err.h"

#define COOP_LOOKUP_ALIAS "alias:"
#define COOP_LOOKUP_PID "pid:"

struct coop_agent;
struct coop_process;

/* NULL with the error filled. What the viewer may not see is as what is not there: the same checks,
 * the same words. */
struct coop_process *coop_lookup(const struct coop_agent *viewer, const char *text,
				 struct coop_err *err);

/* The number in an id, psh-<pid hex>-<n>; 0 if it does not look like one. */
uint64_t coop_lookup_number(const char *text);

#endif
