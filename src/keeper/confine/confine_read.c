/* What a command may be shown by naming it: to be read, to stand in. What is hidden from everybody
 * is hidden by its name, too. */
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/io/paths.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/homes.h"
#include "keeper/confine/ceiling.h"
#include "keeper/confine/confine_private.h"
#include "keeper/core/keeper.h"
#include "keeper/host/views.h"
#include "keeper/link/listener.h"
#include "keeper/output/spool.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_folder.h"
#include "keeper/process/process.h"
#include "policy/paths.h"
#include "sandbox/layout/layout.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/policy/pathlist.h"

/* Where the kernel speaks of itself, under whatever name. Devices, which have no number of their
 * own, cannot be opened in what is shown. */
static bool speaks_of_the_kernel(int fd)
{
	static const long kinds[] = {PROC_SUPER_MAGIC,    SYSFS_MAGIC,    CGROUP_SUPER_MAGIC,
				     CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,  TRACEFS_MAGIC,
				     SECURITYFS_MAGIC,    BPF_FS_MAGIC,   PSTOREFS_MAGIC,
				     DEVPTS_SUPER_MAGIC,  EFIVARFS_MAGIC, SELINUX_MAGIC,
				     NSFS_MAGIC,          BINFMTFS_MAGIC};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true; /* what cannot be looked at is not shown */
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if ((long)fs.f_type == kinds[i])
			return true;
	}
	return false;
}

bool coop_grants_kernels(const char *path, int fd, bool writes)
{
	static const char *const places[] = {"/proc", "/sys", "/dev", "/run"};

	/* Memory that is shared can be worked on; what services keep is for the user to say. */
	if (writes && (coop_path_within(path, "/dev/shm") || coop_path_within(path, "/run")))
		return false;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		if (coop_path_within(path, places[i]) ||
		    (!writes && coop_path_within(places[i], path)))
			return true;
	}
	return speaks_of_the_kernel(fd);
}

static bool in_roots(const struct coop_agent *agent, const char *path)
{
	return coop_agent_workspace(agent) && coop_grants_in_roots(agent, path);
}

static bool reads(const struct coop_agent *agent, const char *path);

/* Of a list the nearest counts, and gives no more than whoever is above it has: it may have been
 * given by that one. */
static bool listed(const struct coop_agent *agent, const char *path)
{
	for (; agent && !coop_agent_is_main(agent); agent = agent->parent) {
		char *const *list = agent->settings.sandbox.allow_read;
		if (list)
			return coop_pathlist_holds(list, path) &&
			       (!agent->parent || reads(agent->parent, path));
	}
	return false;
}

static bool reads(const struct coop_agent *agent, const char *path)
{
	return coop_agent_is_main(agent) || coop_layout_is_system(path) || in_roots(agent, path) ||
	       listed(agent, path);
}

bool coop_grants_may_read(const struct coop_agent *agent, const char *path)
{
	return reads(agent, path);
}

/* Whether the agent was given something in there by the user himself, who means what he names. */
static bool meant(const struct coop_agent *agent, const char *path,
		  bool (*hides)(const void *context, const char *path), const void *context)
{
	const struct coop_agent *top = agent, *main = coop_agents_main(agent->keeper);

	while (top->parent && top->parent != main)
		top = top->parent;
	for (char *const *root = top->settings.workspace; root && *root; root++) {
		if (coop_path_within(path, *root) && hides(context, *root))
			return true;
	}
	for (char *const *item = top->settings.sandbox.allow_read; item && *item; item++) {
		if (coop_path_within(path, *item) && hides(context, *item))
			return true;
	}
	return false;
}

static bool is_agents_folder(const void *context, const char *path)
{
	return coop_path_within(path, context);
}

static bool is_credential(const void *context, const char *path)
{
	const struct coop_homes *homes = context;

	for (size_t i = 0; i < homes->count; i++) {
		if (coop_layout_is_credential(homes->list[i], i ? NULL : homes->memory, path))
			return true;
	}
	return false;
}

bool coop_grants_own_folder(const struct coop_agent *agent, const char *path)
{
	for (; agent; agent = agent->parent) {
		const char *folder = coop_agent_folder(agent);
		if (folder)
			return coop_path_within(path, folder);
	}
	return false;
}

/* Whether the user called the place by its own name. A link inside of what commands write to may
 * have been left by one. */
static bool called_so(const struct coop_homes *homes, const char *data, const char *path,
		      const char *name)
{
	char place[COOP_PATH_SIZE];
	const char *rest;

	if (!strcmp(path, name))
		return true;
	if (*data && (rest = coop_paths_behind(data, name)))
		return !strcmp(path + strlen(data), rest);
	for (size_t i = 0; i < homes->count; i++) {
		const char *home = homes->list[i];
		if ((rest = coop_paths_behind(home, name)) && *rest &&
		    coop_path_join(home, rest + 1, place) == 0 &&
		    coop_layout_is_credential(home, i ? NULL : homes->memory, place))
			return true;
	}
	return false;
}

const char *coop_grants_private_place(const struct coop_draft *draft,
				      const struct coop_homes *homes, const char *path,
				      const char *name)
{
	const struct coop_agent *agent = draft->agent;
	const char *data = coop_place_of(agent->keeper)->data_dir;
	bool agents = *data && coop_path_within(path, data);

	if (coop_ceiling_user_names(draft, path)) {
		if ((!agents && !is_credential(homes, path)) ||
		    (coop_grants_names(draft) != COOP_NAMES_RESOLVED &&
		     called_so(homes, data, path, name)))
			return NULL;
		return agents ? "belongs to an agent, and is not called by its own name"
			      : "is for credentials, and is not called by its own name";
	}
	if (agents && !coop_grants_own_folder(agent, path) &&
	    !meant(agent, path, is_agents_folder, data))
		return "belongs to another agent";
	if (is_credential(homes, path) && !meant(agent, path, is_credential, homes))
		return "is for credentials";
	return NULL;
}

bool coop_grants_meant(const struct coop_keeper *keeper, const char *path, const char *name)
{
	struct coop_homes homes;

	coop_homes_find(NULL, &coop_conf_of(keeper)->env, true, NULL, &homes);
	return !is_credential(&homes, path) ||
	       called_so(&homes, coop_place_of(keeper)->data_dir, path, name);
}

enum coop_names coop_grants_names(const struct coop_draft *draft)
{
	const char *names = coop_arg_string(coop_arg(draft->args, "sandbox"), "names", NULL);

	return !names                       ? COOP_NAMES_ANY
	       : !strcmp(names, "resolved") ? COOP_NAMES_RESOLVED
					    : COOP_NAMES_AS_TYPED;
}

#define OWN_COUNT 6u

/* What is the keeper's own; "" for what it has not. */
static void list_own(const struct coop_keeper *keeper, const char *ret[OWN_COUNT])
{
	const char *const own[OWN_COUNT] = {
		coop_place_of(keeper)->state_dir, coop_place_of(keeper)->socket,
		coop_listener_gate(keeper),       coop_spool_dir(keeper),
		coop_views_of(keeper)->files_dir, coop_place_of(keeper)->backlog};

	memcpy(ret, own, sizeof own);
}

bool coop_grants_keepers(const struct coop_keeper *keeper, const char *path)
{
	const char *own[OWN_COUNT];

	list_own(keeper, own);
	for (size_t i = 0; i < OWN_COUNT; i++) {
		if (*own[i] && coop_path_within(path, own[i]))
			return true;
	}
	return false;
}

bool coop_grants_holds_keepers(const struct coop_keeper *keeper, const char *path)
{
	const char *own[OWN_COUNT];

	list_own(keeper, own);
	for (size_t i = 0; i < OWN_COUNT; i++) {
		if (*own[i] && coop_path_within(own[i], path))
			return true;
	}
	return false;
}

bool coop_grants_hidden(const struct coop_agent *agent, const struct coop_homes *homes,
			const char *path)
{
	const char *data = coop_place_of(agent->keeper)->data_dir;

	if (coop_grants_keepers(agent->keeper, path))
		return true;
	if (*data && coop_path_within(path, data) && !coop_grants_own_folder(agent, path) &&
	    !meant(agent, path, is_agents_folder, data))
		return true;
	return is_credential(homes, path) && !meant(agent, path, is_credential, homes);
}

static bool denied(const struct coop_draft *draft, const struct coop_homes *homes, const char *path)
{
	char *const *list = draft->process->confine->policy.deny_read;
	char place[COOP_PATH_SIZE], real[COOP_PATH_SIZE];
	bool exists;

	for (; list && *list; list++) {
		for (size_t i = 0; i < homes->count; i++) {
			if (coop_path_expand(*list, homes->list[i], place) == 0 &&
			    coop_path_resolve(place, real, &exists) == 0 &&
			    coop_path_within(path, real))
				return true;
		}
	}
	return false;
}

/* Why the folder itself, or all that lies in it, is not for those who were not given it by name;
 * NULL: it is. */
static const char *why_hidden(const struct coop_draft *draft, const struct coop_homes *homes,
			      const char *path, bool given)
{
	const struct coop_keeper *keeper = draft->agent->keeper;

	if (coop_grants_keepers(keeper, path))
		return "belongs to the keeper";
	if (!given && coop_grants_holds_keepers(keeper, path))
		return "holds what belongs to the keeper";
	if (given)
		return NULL;
	if (*coop_place_of(keeper)->data_dir &&
	    coop_path_within(coop_place_of(keeper)->data_dir, path))
		return "holds the folders of agents";
	for (size_t i = 0; i < homes->known; i++) {
		if (coop_path_within(homes->list[i], path))
			return "holds the home folder";
	}
	return denied(draft, homes, path) ? "is denied" : NULL;
}

int coop_grants_check_readable(const struct coop_draft *draft, const struct coop_homes *homes,
			       const char *field, const struct coop_grant *grant, const char *name,
			       bool given)
{
	const char *path = grant->path;
	bool user = coop_ceiling_user_names(draft, path);

	if (coop_grants_kernels(path, grant->fd, false))
		return coop_err_field(draft->err, COOP_INVALID_INPUT, field,
				      "%s %.300s is the kernel's own, or holds it, and cannot be "
				      "given: name what is to be read",
				      field, path);
	given = given || user;
	int r = coop_grants_check_ceilings(draft, field, path, false);
	if (r < 0)
		return r;
	if (!given && !reads(draft->agent, path))
		return coop_grants_unreadable(draft, field, path);
	const char *why = why_hidden(draft, homes, path, given);
	if (!why && (user || !given))
		why = coop_grants_private_place(draft, homes, path, name);
	if (!why)
		return 0;
	bool own = coop_agent_is_main(draft->agent);
	r = coop_err_field(draft->err, own ? COOP_INVALID_INPUT : COOP_BOUNDARY_ESCAPE, field,
			   "%s %.300s %s, and is not shown: name what is to be read", field, path,
			   why);
	coop_err_detail(draft->err, "reason", why);
	return r;
}

int coop_grants_unreadable(const struct coop_draft *draft, const char *field, const char *path)
{
	return coop_err_field(draft->err, COOP_BOUNDARY_ESCAPE, field,
			      "%s %.300s lies outside of what this agent may name to be read: its "
			      "workspace, what its settings allow, and the folders of the system",
			      field, path);
}
