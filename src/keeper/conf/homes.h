/* The folders that a command's user calls home. There may be several: the password database's, the
 * one the keeper was started with, and the one that the command's HOME names. What is private in a
 * home is private in all of them. */
#ifndef COOP_KEEPER_HOMES_H
#define COOP_KEEPER_HOMES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "interface/err.h"
#include "keeper/conf/env_rules.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/policy/policy.h"

#define COOP_HOMES_MAX 3u

struct coop_found_memory;
struct coop_lookable;

struct coop_homes {
	/* resolved, each once; the first is what `~` means and gets the private layer */
	char list[COOP_HOMES_MAX][COOP_PATH_SIZE];
	size_t count; /* 0: there is none */
	/* Of the last look for credentials in the first (sandbox/policy/found.h); NULL: nothing is
	 * remembered. */
	struct coop_found_memory **memory;
	size_t known; /* of them: the rest is so called by words that are not the user's own */
};

/* For a spawn with these arguments. Where the words are not the user's own (`trusted`) HOME
 * moves neither `~` nor the layer, and is looked at only where `seen` lets; NULL: anywhere. */
void coop_homes_find(const json_t *args, const struct coop_env_rules *rules, bool trusted,
		     const struct coop_lookable *seen, struct coop_homes *ret);

/* A folder that is writable needs no layer: where the first lies in it, the user's own home is put
 * before it. */
void coop_homes_yield(struct coop_homes *homes, const char *folder);

/* The first of them; "/" if there is none. */
const char *coop_homes_first(const struct coop_homes *homes);
/* Whether path is one of them. */
bool coop_homes_has(const struct coop_homes *homes, const char *path);
/* Whether path lies in one of them, or is it. */
bool coop_homes_hold(const struct coop_homes *homes, const char *path);

/* Lets `~/` in what is denied and protected mean every home. 0, or the error filled. */
int coop_homes_spread(const struct coop_homes *homes, struct coop_sandbox_policy *policy,
		      struct coop_err *err);

/* The password database's, resolved; "/" if unknown. Good until the next call. */
const char *coop_homes_own(void);

#endif
