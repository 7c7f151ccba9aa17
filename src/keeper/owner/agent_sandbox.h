/* The sandbox as a ceiling: what an agent's settings say of it, for the agent and all below it. */
#ifndef COOP_KEEPER_AGENT_SANDBOX_H
#define COOP_KEEPER_AGENT_SANDBOX_H

#include <jansson.h>
#include <stdbool.h>

#include "interface/err.h"
#include "keeper/owner/agent.h"
#include "sandbox/policy/policy.h"

struct coop_lookable;

/* One for each level, and those of all agents which nobody gave a profile, or said what they must
 * have. */
#define COOP_AGENT_CEILINGS_MAX (COOP_AGENT_DEPTH_MAX + 3)

/* Reads the settings `sandbox` and `limits` of `args` over `policy`: each is replaced as a whole
 * where it is given, taken away where it is null, left where it is absent. Own profiles are
 * resolved: what they mean later does not change the agent. `resolved`: paths are taken as they
 * stand; else they are looked for where `seen` lets. 0, or the error filled and the policy as it
 * was. */
int coop_agent_sandbox_read(const json_t *args, const struct coop_profiles *profiles, bool resolved,
			    const struct coop_lookable *seen, struct coop_sandbox_policy *policy,
			    struct coop_err *err);

/* Makes what a ceiling allows to be written or seen what it resolves to now, looking where
 * `seen` lets; NULL: anywhere. Of lists that `sandbox` does not name (NULL: it names all) the
 * words are the operator's. 0, or the error filled: the policy can still be cleared. */
int coop_agent_sandbox_resolve(struct coop_sandbox_policy *policy, const json_t *sandbox,
			       const struct coop_lookable *seen, struct coop_err *err);

/* Nothing of it that `args` give may be wider than what the parent and those above it have. */
int coop_agent_sandbox_narrow(const struct coop_sandbox_policy *policy, const json_t *args,
			      const struct coop_agent *parent, struct coop_err *err);

/* Whether somebody above gave the agent a profile that replaces the list of protected paths. */
bool coop_agent_protects_less(const struct coop_agent *agent);

/* The ceilings in force for an agent, from the tree's top to it; how many there are. They live as
 * long as nobody's settings change. */
size_t coop_agent_ceilings(const struct coop_agent *agent,
			   const struct coop_sandbox_policy *ret_list[COOP_AGENT_CEILINGS_MAX]);

#endif
