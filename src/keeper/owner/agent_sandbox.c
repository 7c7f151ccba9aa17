#include "keeper/owner/agent_sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "interface/schema.h"
#include "keeper/conf/homes.h"
#include "sandbox/layout/path_walk.h"

/* Of an agent that nobody gave a profile; the user himself is not bound. */
static const struct coop_sandbox_policy insists = {
	.profile = -1,
	.network = -1,
	.home = -1,
	.root = -1,
	.require_set = true,
	.require = COOP_PROTECT_DEFAULT,
};

static const struct coop_sandbox_policy usual = {
	.profile = COOP_PROFILE_WORKSPACE_WRITE,
	.network = -1,
	.home = -1,
	.root = -1,
};

/* As it resolves now, like a workspace root: what requests name is compared with this when it is
 * canonical. One that is not there, or lies where must not be looked, stays as it is. */
static int resolve(char **path, const struct coop_lookable *seen, struct coop_err *err)
{
	bool home = !strncmp(*path, "~/", 2);
	char link[64], text[8192], place[COOP_PATH_SIZE];
	int n = snprintf(text, sizeof text, "%s%s", home ? coop_homes_own() : "", *path + home);

	if (n < 0 || (size_t)n >= sizeof text)
		return coop_err_field(err, COOP_TOO_LARGE, "sandbox",
				      "sandbox: a path is too long");
	COOP_AUTO_FD int fd = coop_path_open(seen, text, 0, place);
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t size = fd < 0 ? -1 : readlink(link, text, sizeof text - 1);
	if (size >= 0)
		text[size] = 0;
	char *copy = coop_mem_strdup(text);
	if (!copy)
		return coop_err_no_memory(err);
	free(*path);
	*path = copy;
	return 0;
}

/* One after the other, in place: where it fails half the list is resolved already, and the caller
 * throws all of it away. */
static int resolve_list(char **list, const struct coop_lookable *seen, struct coop_err *err)
{
	int r = 0;

	for (; r == 0 && list && *list; list++)
		r = resolve(list, seen, err);
	return r;
}

int coop_agent_sandbox_resolve(struct coop_sandbox_policy *policy, const json_t *sandbox,
			       const struct coop_lookable *seen, struct coop_err *err)
{
	int r = policy->workspace ? resolve(&policy->workspace, seen, err) : 0;

	if (r == 0)
		r = resolve_list(policy->allow_write,
				 !sandbox || coop_arg(sandbox, "allow_write") ? seen : NULL, err);
	if (r == 0)
		r = resolve_list(policy->allow_read,
				 !sandbox || coop_arg(sandbox, "allow_read") ? seen : NULL, err);
	return r;
}

int coop_agent_sandbox_read(const json_t *args, const struct coop_profiles *profiles, bool resolved,
			    const struct coop_lookable *seen, struct coop_sandbox_policy *policy,
			    struct coop_err *err)
{
	bool sandbox = json_object_get(args, "sandbox"), limits = json_object_get(args, "limits");
	struct coop_sandbox_policy fresh;

	if (!sandbox && !limits)
		return 0;
	if (coop_arg(coop_arg(args, "sandbox"), "tolerate"))
		return coop_err_field(err, COOP_INVALID_INPUT, "sandbox.tolerate",
				      "sandbox.tolerate is for requests: settings only narrow");
	if (coop_arg(coop_arg(args, "sandbox"), "names"))
		return coop_err_field(err, COOP_INVALID_INPUT, "sandbox.names",
				      "sandbox.names is for requests: settings are kept resolved");
	int r = coop_sandbox_policy_read(args, profiles, &fresh, err);
	if (r < 0)
		return r;
	/* A profile's limits are of each process; those of settings are of all together. */
	coop_sandbox_limits_keep(&fresh.limits, fresh.limits_asked);
	fresh.tolerate = 0;
	if (!resolved &&
	    (r = coop_agent_sandbox_resolve(&fresh, coop_arg(args, "sandbox"), seen, err)) < 0) {
		coop_sandbox_policy_clear(&fresh);
		return r;
	}
	if (!limits) {
		fresh.limits = policy->limits;
		fresh.limits_asked = policy->limits_asked;
	}
	if (sandbox) {
		coop_sandbox_policy_clear(policy);
		*policy = fresh;
		return 0;
	}
	policy->limits = fresh.limits;
	policy->limits_asked = fresh.limits_asked;
	coop_sandbox_policy_clear(&fresh);
	return 0;
}

/* Each level below `main` must have said so: a parent that adds nothing of its own still has the
 * usual protections. */
bool coop_agent_protects_less(const struct coop_agent *agent)
{
	for (; agent && !coop_agent_is_main(agent); agent = agent->parent) {
		if (!agent->settings.sandbox.protect_replaces)
			return false;
	}
	return true;
}

size_t coop_agent_ceilings(const struct coop_agent *agent,
			   const struct coop_sandbox_policy *ret_list[COOP_AGENT_CEILINGS_MAX])
{
	const struct coop_agent *levels[COOP_AGENT_DEPTH_MAX + 1];
	size_t depth = 0, count = 0;
	bool unusual = true, said = true, wide = true;
	bool bound = !coop_agent_is_main(agent);

	for (const struct coop_agent *at = agent; depth < sizeof levels / sizeof *levels;
	     at = at->parent) {
		const struct coop_sandbox_policy *own = &at->settings.sandbox;
		bool first = coop_agent_is_main(at);
		levels[depth++] = at;
		unusual = unusual && (first || own->profile >= 0);
		said = said && (first || own->require_set);
		wide = wide && (first || own->profile == COOP_PROFILE_FULL);
		if (!at->parent)
			break;
	}
	if (!unusual)
		ret_list[count++] = &usual;
	/* What is missing on this host is tolerated by whoever gave the agent its settings, never
	 * by itself; unless it need not be confined at all. */
	if (bound && !said && !wide)
		ret_list[count++] = &insists;
	while (depth)
		ret_list[count++] = &levels[--depth]->settings.sandbox;
	return count;
}

int coop_agent_sandbox_narrow(const struct coop_sandbox_policy *policy, const json_t *args,
			      const struct coop_agent *parent, struct coop_err *err)
{
	const struct coop_sandbox_policy *ceilings[COOP_AGENT_CEILINGS_MAX];
	/* What was given before is not asked about; it owns nothing. */
	struct coop_sandbox_policy given = *policy;
	int r = 0;

	if (!coop_arg(args, "sandbox")) {
		coop_sandbox_policy_init(&given);
		given.limits = policy->limits;
		given.limits_asked = policy->limits_asked;
	}
	if (!coop_arg(args, "limits"))
		given.limits_asked = 0;
	size_t count = coop_agent_ceilings(parent, ceilings);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = coop_sandbox_policy_narrow(&given, ceilings[i], COOP_INVALID_INPUT, err);
	return r;
}
