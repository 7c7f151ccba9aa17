#include "keeper/confine/ceiling.h"

#include <stdlib.h>

#include "base/mem.h"
#include "interface/schema.h"
#include "keeper/conf/conf.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/draft.h"
#include "keeper/confine/reach.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/link/watch.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_folder.h"
#include "keeper/process/process.h"
#include "sandbox/policy/limits.h"
#include "sandbox/policy/members.h"
#include "sandbox/policy/pathlist.h"

struct coop_ceiling {
	struct coop_sandbox_policy policy;
};

/* Takes over the choices of a plain request, and what it insists on: who only leaves something out
 * of the configuration does not leave it to the model. `full` has nothing to insist on. */
static void take_choices(struct coop_sandbox_policy *policy,
			 const struct coop_sandbox_policy *plain)
{
	policy->profile = plain->profile;
	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++)
		*coop_choice_at(policy, &coop_choice_rows[i]) =
			coop_choice_of(plain, &coop_choice_rows[i]);
	policy->protect_replaces = plain->protect_replaces;
	policy->new_privileges = plain->new_privileges;
	policy->require = plain->require;
	if (plain->profile == COOP_PROFILE_FULL)
		policy->require &= ~COOP_PROTECT_ALL;
	/* Where the host's network was configured nobody insists on being kept from it. */
	if (plain->network == COOP_NET_HOST)
		policy->require &= ~COOP_PROTECT_BIT(COOP_PROTECT_NETWORK);
	/* Limits of the operator's profiles are bounds, too; where this host cannot hold them that
	 * is tolerated as it is without a ceiling. */
	policy->tolerate = coop_limits_bits(&policy->limits) & ~plain->require;
}

/* Paths are compared as they were written, and again as they resolve: a ceiling has both. */
static int add_resolved(char ***list, char *const *paths, const char *field,
			const struct coop_lookable *seen, struct coop_err *err)
{
	struct coop_sandbox_policy copy;

	coop_sandbox_policy_init(&copy);
	int r = coop_pathlist_join(&copy.allow_write, paths, field, err);
	if (r == 0)
		r = coop_agent_sandbox_resolve(&copy, NULL, seen, err);
	if (r == 0)
		r = coop_pathlist_give(list, err);
	if (r == 0)
		r = coop_pathlist_join(list, paths, field, err);
	if (r == 0)
		r = coop_pathlist_join(list, copy.allow_write, field, err);
	coop_sandbox_policy_clear(&copy);
	return r;
}

/* Folders bound only where some were named, an empty list included. `full` is not bound to any:
 * its workspace is no more than where commands start. */
static int take_folders(struct coop_sandbox_policy *policy, const struct coop_sandbox_policy *plain,
			const struct coop_lookable *seen, struct coop_err *err)
{
	bool bound = policy->workspace || policy->allow_write;
	int r = 0;

	if (plain->profile == COOP_PROFILE_FULL) {
		free(policy->workspace);
		coop_pathlist_free(policy->allow_write);
		policy->workspace = NULL;
		policy->allow_write = NULL;
		return 0;
	}
	if (bound)
		r = add_resolved(&policy->allow_write, plain->allow_write, "sandbox.allow_write",
				 seen, err);
	if (r == 0 && plain->root == COOP_ROOT_MINIMAL)
		r = add_resolved(&policy->allow_read, plain->allow_read, "sandbox.allow_read", seen,
				 err);
	return r < 0 ? r
		     : coop_pathlist_join(&policy->protect, plain->protect, "sandbox.protect", err);
}

/* What a request that says nothing but the configuration would get is the most that any gets. */
static int read_ceiling(const json_t *args, const struct coop_profiles *profiles,
			const struct coop_lookable *seen, struct coop_sandbox_policy *ret,
			struct coop_err *err)
{
	struct coop_sandbox_policy policy, plain;
	int r = coop_sandbox_policy_read(args, profiles, &policy, err);

	if (r < 0)
		return r;
	coop_sandbox_policy_init(&plain);
	r = coop_sandbox_policy_merge(profiles, NULL, 0, &policy, &plain, err);
	if (r == 0)
		r = coop_agent_sandbox_resolve(&policy, NULL, seen, err);
	if (r == 0) {
		take_choices(&policy, &plain);
		r = take_folders(&policy, &plain, seen, err);
	}
	coop_sandbox_policy_clear(&plain);
	if (r < 0)
		coop_sandbox_policy_clear(&policy);
	else
		*ret = policy;
	return r;
}

/* Agents were given settings by somebody who said so: where those speak, they bound the agent, and
 * the ceiling only where they are silent. What must hold for them is theirs, too. */
static void yield(struct coop_sandbox_policy *ceiling, const struct coop_agent *agent)
{
	ceiling->require = 0;
	for (; agent && !coop_agent_is_main(agent); agent = agent->parent) {
		for (size_t i = 0; i < COOP_CHOICE_ROWS; i++) {
			if (coop_choice_of(&agent->settings.sandbox, &coop_choice_rows[i]) >= 0)
				*coop_choice_at(ceiling, &coop_choice_rows[i]) = -1;
		}
	}
}

/* The ceiling as it is for that agent: what it points to stays the connection's. */
static struct coop_sandbox_policy ceiling_for(const struct coop_conn *conn,
					      const struct coop_agent *agent)
{
	struct coop_sandbox_policy policy = conn->ceiling->policy;

	if (!coop_agent_is_main(agent))
		yield(&policy, agent);
	return policy;
}

const struct coop_sandbox_policy *coop_ceiling_policy(const struct coop_conn *conn)
{
	return conn->ceiling ? &conn->ceiling->policy : NULL;
}

/* One more in the list of those that are merged: no argument has to know of it. */
void coop_ceilings_find(const struct coop_draft *draft, struct coop_ceilings *ret)
{
	const struct coop_conn *conn = draft->request->conn;

	ret->count = coop_agent_ceilings(draft->agent, ret->list);
	if (!conn->ceiling)
		return;
	ret->own = ceiling_for(conn, draft->agent);
	ret->list[ret->count++] = &ret->own;
}

bool coop_ceiling_user_names(const struct coop_draft *draft, const char *path)
{
	const struct coop_ceiling *ceiling = draft->request->conn->ceiling;

	if (!coop_agent_is_main(draft->agent))
		return false;
	return !ceiling || ((ceiling->policy.workspace || ceiling->policy.allow_write) &&
			    coop_policy_lets_write(&ceiling->policy, path));
}

void coop_ceiling_apply(const struct coop_conn *conn, struct coop_sandbox_policy *policy)
{
	if (!conn->ceiling)
		return;
	policy->protect_replaces &= conn->ceiling->policy.protect_replaces;
	policy->new_privileges &= conn->ceiling->policy.new_privileges;
}

static int outside(const char *field, const char *path, enum coop_code code, struct coop_err *err)
{
	return coop_err_field(err, code, field,
			      "%s %.300s is outside of what is allowed through this door", field,
			      path);
}

/* An agent that is given more than the door lets would be a way around it. */
int coop_ceiling_check_gift(const struct coop_conn *conn,
			    const struct coop_agent_settings *settings, const json_t *args,
			    struct coop_err *err)
{
	const struct coop_sandbox_policy *given = &settings->sandbox;
	int r = 0;

	if (!conn->ceiling)
		return 0;
	const struct coop_sandbox_policy *most = &conn->ceiling->policy;
	if (coop_arg(args, "sandbox") || coop_arg(args, "limits"))
		r = coop_sandbox_policy_narrow(given, most, COOP_INVALID_INPUT, err);
	/* Who says what an agent must have tolerates that the rest is missing. */
	if (r == 0 && coop_arg(args, "sandbox") && given->require_set &&
	    most->require & ~given->require)
		r = coop_err_field(err, COOP_INVALID_INPUT, "sandbox.require",
				   "sandbox.require is less than is required through this door: "
				   "leave it out");
	for (char *const *root = coop_arg(args, "workspace") ? settings->workspace : NULL;
	     r == 0 && root && *root; root++) {
		if (!coop_policy_lets_write(most, *root))
			r = outside("workspace", *root, COOP_INVALID_INPUT, err);
	}
	return r;
}

/* An agent's own settings, and those above it, say no more than the ceiling. */
static int check_settings(const struct coop_conn *conn, const struct coop_agent *agent,
			  struct coop_err *err)
{
	struct coop_err why;

	for (; agent && agent != conn->agent && !coop_agent_is_main(agent); agent = agent->parent) {
		if (coop_sandbox_policy_narrow(&agent->settings.sandbox, &conn->ceiling->policy,
					       COOP_PERMISSION_DENIED, &why) < 0)
			return coop_err_field(err, COOP_PERMISSION_DENIED, "agent",
					      "agent: %.300s was given more than is allowed "
					      "through this door: %.300s",
					      agent->path, why.message);
	}
	return 0;
}

/* Only these members change what commands of the agent may do; others can be set through any
 * door. */
int coop_ceiling_check_change(const struct coop_conn *conn, const struct coop_agent *agent,
			      const json_t *args, struct coop_err *err)
{
	static const char *const matters[] = {"env", "policy", "restricted", "sandbox",
					      "workspace"};

	for (size_t i = 0; conn->ceiling && i < sizeof matters / sizeof matters[0]; i++) {
		if (json_object_get(args, matters[i]))
			return check_settings(conn, agent, err);
	}
	return 0;
}

int coop_ceiling_check_token(const struct coop_conn *conn, const struct coop_agent *agent,
			     struct coop_err *err)
{
	if (!conn->ceiling || agent == conn->agent)
		return 0;
	int r = check_settings(conn, agent, err);
	if (r < 0 || coop_agent_folder(agent))
		return r;
	for (char *const *root = coop_agent_workspace(agent); root && *root; root++) {
		if (!coop_policy_lets_write(&conn->ceiling->policy, *root))
			return coop_err_field(err, COOP_PERMISSION_DENIED, "agent",
					      "agent: its workspace %.300s is outside of what is "
					      "allowed through this door",
					      *root);
	}
	return 0;
}

int coop_ceiling_check_input(const struct coop_conn *conn, const struct coop_process *process,
			     struct coop_err *err)
{
	const struct coop_sandbox_policy *has = process->confine ? &process->confine->policy : NULL;
	struct coop_err why;

	if (!conn->ceiling || !has)
		return 0;
	const struct coop_sandbox_policy most = ceiling_for(conn, process->agent);
	if (coop_sandbox_policy_narrow(has, &most, COOP_PERMISSION_DENIED, &why) == 0 &&
	    (most.new_privileges || !has->new_privileges))
		return 0;
	return coop_err_field(err, COOP_PERMISSION_DENIED, "id",
			      "the process was started elsewhere, with more than is allowed "
			      "through this door: it takes no input from here");
}

static void free_ceiling(struct coop_ceiling *ceiling)
{
	if (!ceiling)
		return;
	coop_sandbox_policy_clear(&ceiling->policy);
	free(ceiling);
}

/* A connection that has a ceiling keeps it. That it acts as somebody by then, and that nothing else
 * is open, makes sure that all it ever asks for is bounded. */
static int may_take(const struct coop_conn *conn, struct coop_err *err)
{
	if (conn->ceiling || conn->used || conn->request_count > 1)
		return coop_err_field(err, COOP_INVALID_INPUT, "op",
				      "a connection gets its ceiling once, before it does "
				      "anything but look");
	return 0;
}

void coop_op_ceiling(struct coop_request *request)
{
	struct coop_conn *conn = request->conn;
	struct coop_ceiling *ceiling = coop_mem_zalloc(sizeof *ceiling);
	struct coop_reach reach;
	struct coop_err err;
	struct coop_jsonw w;
	int r = ceiling ? may_take(conn, &err) : coop_err_no_memory(&err);

	if (r == 0)
		r = read_ceiling(request->args, &coop_conf_of(request->keeper)->profiles,
				 coop_reach_of(conn->agent, &reach), &ceiling->policy, &err);
	if (r < 0) {
		free(ceiling);
		coop_request_fail(request, &err);
		return;
	}
	conn->ceiling = ceiling;
	/* A door is not the person who configured it. */
	conn->is_operator = false;
	coop_request_result(request, &w);
	coop_sandbox_policy_write(&ceiling->policy, &w, "sandbox");
	coop_sandbox_limits_write(&ceiling->policy.limits, &w, "limits");
	coop_request_end(request, &w);
}

static void on_free(struct coop_conn *conn)
{
	free_ceiling(conn->ceiling);
}

const struct coop_conn_watch coop_ceiling_watch = {.on_free = on_free};
