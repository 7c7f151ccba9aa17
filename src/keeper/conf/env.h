/* The environment of a command: a base, removals, additions. The keeper's own environment never
 * reaches a command. */
#ifndef COOP_KEEPER_ENV_H
#define COOP_KEEPER_ENV_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interface/err.h"
#include "keeper/conf/env_rules.h"

#define COOP_ENV_VALUE_MAX 65536u /* bytes of a value */

struct coop_env {
	char **variables; /* NAME=VALUE, NULL-terminated; owned */
	size_t count, capacity;
};

struct coop_env_how {
	const struct coop_env_rules *rules; /* the operator's */
	/* names in env by which code could be slipped into a program are refused
	 * (capability_denied), and left out of what base_env offers */
	bool restricted;
	uint64_t n;         /* for COOP_PROCESS; 0: without it */
	bool terminal;      /* TERM is added where it is missing */
	bool no_tmpdir;     /* TMPDIR is left out of what base_env offers */
	const char *tmpdir; /* TMPDIR of a base that has none; NULL: none */
	/* of the agent: over the base, under all that the arguments say; NULL: none */
	const json_t *defaults;
};

/* Makes the environment that the spawn arguments base_env, env_mode, env_remove and env ask for. 0,
 * or the error filled (it never holds a value); then ret is untouched. */
int coop_env_build(const json_t *args, const struct coop_env_how *how, struct coop_env *ret,
		   struct coop_err *err);

/* Whether a variable may be one (value NULL: as far as its name says). 0, or the error filled for
 * `argument`.NAME. */
int coop_env_check(const char *argument, const char *name, const char *value, struct coop_err *err);

/* Sets one more; one of the same name goes. 0 or -ENOMEM. */
int coop_env_set(struct coop_env *env, const char *name, const char *value);

/* The value of a variable; NULL if there is none. */
const char *coop_env_get(const struct coop_env *env, const char *name);

void coop_env_clear(struct coop_env *env);

/* The user's home folder, as the password database has it; "/" if unknown. Lives for ever. */
const char *coop_env_home(void);
/* The user's name, likewise; "" if unknown. */
const char *coop_env_user(void);

#endif
