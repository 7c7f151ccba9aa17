/* What the operator says about environments: names that doors may pass on, names that they may not,
 * values of the base.
 *
 * A pattern is a name in which `*` stands for any run of characters. */
#ifndef COOP_KEEPER_ENV_RULES_H
#define COOP_KEEPER_ENV_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json/jsonw.h"
#include "interface/err.h"

#define COOP_ENV_RULES_MAX 256u         /* entries of a list */
#define COOP_ENV_RULES_PATTERN_MAX 256u /* bytes of a pattern */

struct coop_env_list {
	char **items; /* owned */
	size_t count;
};

/* Zero-initialised it says nothing. */
struct coop_env_rules {
	struct coop_env_list inherit; /* patterns, `*` at the end only */
	struct coop_env_list deny;    /* patterns */
	struct coop_env_list set;     /* NAME=VALUE, no name twice */
};

/* One rule as coop.conf says it: the key is inherit, deny or set. 0, or the error filled (it never
 * holds a value) and nothing changed. */
int coop_env_rules_set(struct coop_env_rules *rules, const char *key, const char *value,
		       struct coop_err *err);
void coop_env_rules_clear(struct coop_env_rules *rules);

/* Whether a door may offer this one besides the names that it always may. */
bool coop_env_rules_inherits(const struct coop_env_rules *rules, const char *name);
/* Whether the operator denies it. */
bool coop_env_rules_denies(const struct coop_env_rules *rules, const char *name);

/* Names that widening does not reach, whatever the operator lets doors pass on: LD_*, and those
 * that end as names of secrets do. */
bool coop_env_never_inherited(const char *name);

/* Names by which a program can be made to run other code than its own; restricted agents may not
 * set them. */
bool coop_env_injects(const char *name);

/* [A-Za-z_][A-Za-z0-9_]* */
bool coop_env_valid_name(const char *name);

/* The inherit list as an array, for the hello. */
void coop_env_rules_write(const struct coop_env_rules *rules, struct coop_jsonw *w,
			  const char *name);

#endif
