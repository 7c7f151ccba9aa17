/* Which folders a command may be given. */
#include <string.h>

#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/homes.h"
#include "keeper/confine/ceiling.h"
#include "keeper/confine/confine_private.h"
#include "keeper/core/keeper.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_folder.h"
#include "keeper/owner/agent_settings.h"
#include "keeper/process/process.h"
#include "policy/paths.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/layout/protected.h"
#include "sandbox/policy/policy.h"

bool coop_grants_may_write(const struct coop_agent *agent)
{
	return coop_agent_is_main(agent) || coop_agent_workspace(agent);
}

/* Nobody's workspace: what would put the keeper, or all of somebody's affairs, into a command's
 * hands. */
static int check_place(const struct coop_keeper *keeper, const struct coop_homes *homes,
		       const char *field, const char *path, struct coop_err *err)
{
	const char *why = NULL;

	if (!strcmp(path, "/"))
		why = "is the whole file system";
	else if (coop_homes_has(homes, path))
		why = "is the home folder itself";
	else if (coop_protected_repository(path))
		why = "lies in the .git of a repository (or .hg, .jj, .sl), which is the folder "
		      "above";
	if (!why && (coop_grants_keepers(keeper, path) || coop_grants_holds_keepers(keeper, path)))
		why = "holds what belongs to the keeper";
	if (!why)
		return 0;
	int r = coop_err_field(err, COOP_INVALID_INPUT, field,
			       "%s %.300s %s: name a folder for the work (--workspace DIR), or "
			       "--profile read-only",
			       field, path, why);
	coop_err_detail(err, "reason", why);
	coop_err_detail_raw(err, "advised", "true");
	return r;
}

/* Only the user himself may name any folder. Of others it is not even said whether the folder is
 * there. */
int coop_grants_check_asked(const struct coop_agent *agent, const char *field, const char *path,
			    struct coop_err *err)
{
	if (coop_grants_may_write(agent))
		return 0;
	int r = coop_err_field(err, COOP_BOUNDARY_ESCAPE, field,
			       "%s %.300s: this agent has no workspace (coop agent set %.300s "
			       "--workspace DIR gives it one)",
			       field, path, agent->path);
	coop_err_detail_raw(err, "advised", "true");
	return r;
}

/* An agent works in its own roots, and in those of all above it. */
bool coop_grants_in_roots(const struct coop_agent *agent, const char *path)
{
	for (; agent; agent = agent->parent) {
		if (agent->settings.workspace &&
		    !coop_workspace_holds(agent->settings.workspace, path))
			return false;
		if (coop_agent_folder(agent))
			break; /* its own, wherever those above it are bound to */
	}
	return true;
}

int coop_grants_outside(const struct coop_draft *draft, const char *field, const char *name)
{
	return coop_err_field(draft->err, COOP_BOUNDARY_ESCAPE, field,
			      "%s %.300s lies outside the workspace of this agent, or is hidden "
			      "from it",
			      field, name);
}

static int check_roots(const struct coop_draft *draft, const struct coop_homes *homes,
		       const char *field, const char *path, const char *name)
{
	bool user = coop_agent_is_main(draft->agent);

	if (!coop_grants_in_roots(draft->agent, path))
		return coop_err_field(draft->err, COOP_BOUNDARY_ESCAPE, field,
				      "%s %.300s lies outside the workspace of this agent", field,
				      path);
	const char *why = coop_grants_private_place(draft, homes, path, name);
	return why ? coop_err_field(draft->err, user ? COOP_INVALID_INPUT : COOP_BOUNDARY_ESCAPE,
				    field, "%s %.300s %s: name a folder for the work", field, path,
				    why)
		   : 0;
}

/* Whether path is, or lies in, what the list protects in the root. */
static bool protected_in(const char *root, const char *const *list, const char *path)
{
	char place[COOP_PATH_SIZE];

	for (; *list; list++) {
		if (**list != '/' && **list != '~' && coop_path_join(root, *list, place) == 0 &&
		    coop_path_within(path, place))
			return true;
	}
	return false;
}

/* The list counts from an agent's roots, too: what it protects there is not to be had by naming
 * it. */
static int check_protected(const struct coop_draft *draft, const char *field, const char *path)
{
	const char *const *own = (const char *const *)draft->process->confine->policy.protect;

	for (const struct coop_agent *agent = draft->agent; agent; agent = agent->parent) {
		for (char *const *root = agent->settings.workspace; root && *root; root++) {
			if (coop_protected_within(*root, path) ||
			    (own && protected_in(*root, own, path)))
				return coop_err_field(draft->err, COOP_BOUNDARY_ESCAPE, field,
						      "%s %.300s is protected in the workspace "
						      "%.300s of this agent",
						      field, path, *root);
		}
	}
	return 0;
}

bool coop_grants_let(const struct coop_draft *draft, const char *path, bool writes)
{
	struct coop_ceilings ceilings;

	coop_ceilings_find(draft, &ceilings);
	ceilings.list[ceilings.count++] = &coop_conf_of(draft->agent->keeper)->profiles.ceiling;
	for (size_t i = 0; i < ceilings.count; i++) {
		if (!(writes ? coop_policy_lets_write(ceilings.list[i], path)
			     : coop_policy_lets_read(ceilings.list[i], path)))
			return false;
	}
	return true;
}

/* What a path resolves to must lie in what the ceilings let, too: a link inside of one may lead
 * out. */
int coop_grants_check_ceilings(const struct coop_draft *draft, const char *field, const char *path,
			       bool writes)
{
	if (coop_grants_let(draft, path, writes))
		return 0;
	return coop_err_field(draft->err, COOP_PERMISSION_DENIED, field,
			      "%s leads to %.300s, outside of what is allowed here", field, path);
}

int coop_grants_check_writable(const struct coop_draft *draft, const struct coop_homes *homes,
			       const char *field, const char *path, const char *name)
{
	int r = check_protected(draft, field, path);

	if (r == 0)
		r = check_place(draft->agent->keeper, homes, field, path, draft->err);
	if (r == 0)
		r = check_roots(draft, homes, field, path, name);
	return r < 0 ? r : coop_grants_check_ceilings(draft, field, path, true);
}
