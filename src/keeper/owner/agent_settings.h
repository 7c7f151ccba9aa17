/* What one agent has been given: quotas, grants, workspace roots, policy. A member that is not set
 * says nothing; what is above the agent holds anyway. */
#ifndef COOP_KEEPER_AGENT_SETTINGS_H
#define COOP_KEEPER_AGENT_SETTINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json/jsonw.h"
#include "interface/err.h"
#include "keeper/owner/agent_extras.h"
#include "sandbox/policy/policy.h"

struct coop_agent;
struct coop_lookable;
struct coop_policy;

struct coop_agent_settings {
	int64_t max_running;        /* -1: not set */
	int64_t max_buffer_bytes;   /* -1 */
	int64_t max_finished;       /* -1 */
	bool persistent;            /* may start what outlives its session */
	bool restricted;            /* may not set variables that change what programs load */
	char **workspace;           /* absolute, NULL-terminated; NULL: not set */
	struct coop_policy *policy; /* NULL: none */
	/* ceilings; its limits are totals of the agent and all below it */
	struct coop_sandbox_policy sandbox;
	struct coop_agent_extras extras;
};

void coop_agent_settings_init(struct coop_agent_settings *settings);
void coop_agent_settings_clear(struct coop_agent_settings *settings);

/* Lays the members of `args` that are settings over `base` (NULL: nothing): absent ones stay as
 * they are, null ones are taken away. `path` is whose they are, for explanations; `profiles` are
 * the operator's; folders are looked for where `seen` lets, NULL: anywhere. 0 with *ret filled,
 * or the error filled. */
int coop_agent_settings_read(const json_t *args, const struct coop_agent_settings *base,
			     const char *path, const struct coop_profiles *profiles,
			     const struct coop_lookable *seen, struct coop_agent_settings *ret,
			     struct coop_err *err);

/* As the database has them: roots are taken as they stand. */
int coop_agent_settings_restore(const json_t *json, const char *path,
				struct coop_agent_settings *ret, struct coop_err *err);

/* Nothing that `args` give may be wider than what the parent has: 0, or the error filled. What was
 * given before and is wider than the parent has now does no harm: all that is above holds
 * anyway. */
int coop_agent_settings_narrow(const struct coop_agent_settings *settings, const json_t *args,
			       const struct coop_agent *parent, struct coop_err *err);

/* What the database keeps, for coop_agent_settings_restore: also what is never shown. The workspace
 * of an agent with a folder of its own follows from that. */
void coop_agent_settings_store(const struct coop_agent_settings *settings, struct coop_jsonw *w);

/* The same shape as the arguments, without the extras. */
void coop_agent_settings_write(const struct coop_agent_settings *settings, struct coop_jsonw *w,
			       const char *name);

/* The roots as a list; null where there are none. */
void coop_workspace_write(char *const *roots, struct coop_jsonw *w, const char *name);

/* Whether an absolute, normalised path lies in one of the roots or is one. */
bool coop_workspace_holds(char *const *roots, const char *path);

#endif
