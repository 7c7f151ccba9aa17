#include "keeper/confine/reach.h"

#include <stddef.h>
#include <string.h>

#include "keeper/conf/conf.h"
#include "keeper/confine/confine_private.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/owner/agent.h"
#include "policy/paths.h"
#include "sandbox/layout/layout.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/policy/members.h"

static const struct coop_reach *reach_of(const struct coop_lookable *seen)
{
	return (const struct coop_reach *)(const void *)((const char *)seen -
							 offsetof(struct coop_reach, seen));
}

static bool may_look(const struct coop_lookable *seen, const char *path)
{
	const struct coop_reach *reach = reach_of(seen);

	return coop_grants_may_read(reach->agent, path) &&
	       !coop_grants_hidden(reach->agent, &reach->homes, path);
}

/* Upwards: whether the path leads to one of them. */
static bool any_within(char *const *list, const char *path)
{
	for (; list && *list; list++) {
		if (coop_path_within(*list, path))
			return true;
	}
	return false;
}

static bool leads(const struct coop_lookable *seen, const char *path)
{
	const struct coop_agent *agent = reach_of(seen)->agent;

	if (!path[1] || any_within(coop_agent_workspace(agent), path))
		return true;
	for (; agent; agent = agent->parent) {
		if (agent->settings.sandbox.allow_read)
			return any_within(agent->settings.sandbox.allow_read, path);
	}
	return false;
}

/* Whether the list has the word, with any of the homes for `~`. */
static bool says(const struct coop_homes *homes, char *const *list, const char *word)
{
	char path[COOP_PATH_SIZE];

	for (; list && *list; list++) {
		if (!strcmp(*list, word))
			return true;
		for (size_t i = 0; i < homes->count; i++) {
			if (coop_path_expand(*list, homes->list[i], path) == 0 &&
			    !strcmp(path, word))
				return true;
		}
	}
	return false;
}

/* The operator's, and those of settings that nobody but the user could give. */
static bool owners_word(const struct coop_lookable *seen, const char *word)
{
	const struct coop_reach *reach = reach_of(seen);
	const struct coop_agent *agent = reach->agent, *main = coop_agents_main(agent->keeper);
	const struct coop_profiles *profiles = &coop_conf_of(agent->keeper)->profiles;

	if (says(&reach->homes, profiles->defaults.deny_read, word))
		return true;
	for (size_t i = 0; i < profiles->own_count; i++) {
		if (says(&reach->homes, profiles->own[i].deny_read, word))
			return true;
	}
	while (agent->parent && agent->parent != main)
		agent = agent->parent;
	return says(&reach->homes, profiles->ceiling.deny_read, word) ||
	       says(&reach->homes, main->settings.sandbox.deny_read, word) ||
	       says(&reach->homes, agent->settings.sandbox.deny_read, word);
}

/* It could start something that looks for itself. */
static bool unconfined(const struct coop_agent *agent)
{
	const struct coop_agent *main = coop_agents_main(agent->keeper);

	if (coop_policy_widest(&coop_conf_of(agent->keeper)->profiles.ceiling) != COOP_PROFILE_FULL)
		return false;
	for (; agent && agent != main; agent = agent->parent) {
		const struct coop_sandbox_policy *own = &agent->settings.sandbox;
		if (own->profile != COOP_PROFILE_FULL ||
		    coop_policy_widest(own) != COOP_PROFILE_FULL)
			return false;
	}
	return true;
}

const struct coop_lookable *coop_reach_of(const struct coop_agent *agent, struct coop_reach *ret)
{
	if (!agent || coop_agent_is_main(agent) || unconfined(agent))
		return NULL;
	ret->seen = (struct coop_lookable){may_look, leads, owners_word};
	ret->agent = agent;
	coop_homes_find(NULL, &coop_conf_of(agent->keeper)->env, true, NULL, &ret->homes);
	ret->homes.memory = &coop_host_of(agent->keeper)->credentials;
	return &ret->seen;
}
