/* The environment of a command: a base, removals, additions. The keeper's own environment never reaches a command. */
#ifndef COOP_KEEPER_ENV_H
#define COOP_KEEPER_ENV_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "keeper/env_rules.h"

#define COOP_ENV_MAX 256u         /* variables in a request */
#define COOP_ENV_VALUE_MAX 65536u /* bytes of a value */

struct coop_env {
	char **variables; /* NAME=VALUE, NULL-terminated; owned */
	size_t count, capacity;
};

/* Makes the environment that the spawn arguments base_env, env_mode, env_remove and env ask for; adds COOP_PROCESS and, for a
 * terminal, TERM. `rules` are the operator's; `restricted` refuses names in env by which code could be slipped into a program
 * (capability_denied), and leaves them out of what base_env offers. 0, or the error filled (it never holds a value); then ret is
 * untouched. */
int coop_env_build(const json_t *args, const struct coop_env_rules *rules, bool restricted,
		   uint64_t n, bool terminal, struct coop_env *ret, struct coop_err *err);

/* The value of a variable; NULL if there is none. */
const char *coop_env_get(const struct coop_env *env, const char *name);

void coop_env_clear(struct coop_env *env);

/* The user's home folder, as the password database has it; "/" if unknown. Lives for ever. */
const char *coop_env_home(void);

#endif
