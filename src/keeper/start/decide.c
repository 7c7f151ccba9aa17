#include "keeper/start/decide.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/config.h"
#include "keeper/conf/homes.h"
#include "keeper/conf/users.h"
#include "keeper/confine/ceiling.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/confine_private.h"
#include "keeper/confine/cwd.h"
#include "keeper/confine/draft.h"
#include "keeper/confine/folders.h"
#include "keeper/confine/groups.h"
#include "keeper/confine/injections.h"
#include "keeper/confine/net.h"
#include "keeper/confine/private_files.h"
#include "keeper/confine/reach.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/host/missing.h"
#include "keeper/host/scouts.h"
#include "keeper/host/views.h"
#include "keeper/launch/launcher.h"
#include "keeper/link/listener.h"
#include "keeper/link/request.h"
#include "keeper/output/spool.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_folder.h"
#include "keeper/owner/agent_sandbox.h"
#include "keeper/owner/session.h"
#include "keeper/process/process.h"
#include "sandbox/filter/filter.h"
#include "sandbox/layout/ghosts.h"
#include "sandbox/layout/host_sockets.h"
#include "sandbox/layout/idmap.h"
#include "sandbox/layout/layout.h"
#include "sandbox/layout/silence.h"
#include "sandbox/policy/policy.h"
#include "sandbox/policy/protection.h"

#define HIDDEN_MAX 6u

/* Whether somebody whose word counts has said how many processes the agent may have: the operator,
 * or main to the agents right below it. What an agent says to those below it can only be less. */
static bool pids_settled(const struct coop_agent *agent, const struct coop_profiles *profiles)
{
	while (agent->parent && agent->parent->parent)
		agent = agent->parent;
	return profiles->any_pids || profiles->defaults.limits.max_pids ||
	       profiles->ceiling.limits.max_pids || agent->settings.sandbox.limits.max_pids;
}

/* Where nobody has, coop's own number is the most that others than the user's own main may ask
 * for. */
static int check_pids(const struct coop_draft *draft, const struct coop_sandbox_policy *policy)
{
	const struct coop_agent *agent = draft->agent;

	if (!(policy->limits_asked & COOP_PROTECT_BIT(COOP_PROTECT_PIDS)) ||
	    policy->limits.max_pids <= COOP_SANDBOX_PIDS || coop_agent_is_main(agent) ||
	    pids_settled(agent, &coop_conf_of(agent->keeper)->profiles))
		return 0;
	int r = coop_err_field(draft->err, COOP_PERMISSION_DENIED, "limits.max_pids",
			       "limits.max_pids is more than is allowed here: %d",
			       COOP_SANDBOX_PIDS);
	coop_err_detail_int(draft->err, "maximum", COOP_SANDBOX_PIDS);
	return r;
}

/* The strictest of operator, agents, door and request. What was asked is kept as text, for the
 * record. */
static int read_policy(struct coop_draft *draft, struct coop_confine *confine)
{
	const struct coop_profiles *profiles = &coop_conf_of(draft->agent->keeper)->profiles;
	struct coop_ceilings ceilings;
	struct coop_sandbox_policy asked;
	const json_t *given = coop_arg(draft->args, "sandbox");

	coop_ceilings_find(draft, &ceilings);
	coop_sandbox_policy_init(&asked);
	int r = coop_sandbox_policy_read(draft->args, profiles, &asked, draft->err);
	if (r == 0)
		r = coop_sandbox_policy_merge(profiles, ceilings.list, ceilings.count, &asked,
					      &confine->policy, draft->err);
	coop_sandbox_policy_clear(&asked);
	if (r == 0)
		r = check_pids(draft, &confine->policy);
	/* The operator's profile may protect less; that is not for everybody to choose. */
	if (r == 0 && !coop_agent_is_main(draft->agent))
		confine->policy.protect_replaces &= coop_agent_protects_less(draft->agent);
	if (r == 0)
		coop_ceiling_apply(draft->request->conn, &confine->policy);
	if (r == 0 && given && !(confine->asked = json_dumps(given, JSON_COMPACT)))
		r = coop_err_no_memory(draft->err);
	return r;
}

/* A tree serves one sandbox: whoever must begin anew needs the folder, too. Its number. */
static int add_tree(struct coop_confine *confine, int tree, int folder)
{
	uint32_t at = confine->start->tree_count++;

	confine->start->trees[at] = tree;
	confine->start->folders[at] = fcntl(folder, F_DUPFD_CLOEXEC, 3);
	return (int)at;
}

/* A root keeper's commands are somebody else: the folders are shown to them as theirs. Where a file
 * system does not take part, they run as the folder's owner instead. */
static int map_owners(struct coop_draft *draft, struct coop_confine *confine,
		      const struct coop_grants *grants, int *ret_fds)
{
	struct coop_keeper *keeper = draft->agent->keeper;
	struct coop_launcher_class *launcher = &confine->launcher;

	for (size_t i = 0; i < grants->writable_count; i++) {
		const struct coop_grant *grant = &grants->writable[i];
		ret_fds[i] = -1;
		if (grant->uid == launcher->uid && grant->gid == launcher->gid)
			continue;
		/* It writes as the folder's owner: only the filter keeps it from making files that
		 * anybody runs as him. */
		int fd = confine->filter == COOP_FILTER_NONE
				 ? -EPERM
				 : coop_idmap_tree(&coop_views_of(keeper)->idmaps, grant->fd,
						   coop_host_of(keeper)->can.uid,
						   coop_host_of(keeper)->can.gid);
		if (fd >= 0) {
			ret_fds[i] = add_tree(confine, fd, grant->fd);
			continue;
		}
		if (grant->uid == 0 || grant->gid == 0 || i > 0) {
			int r = coop_err_set(
				draft->err, COOP_SANDBOX_UNAVAILABLE,
				"sandbox: identity: %.200s cannot be shown with another owner "
				"(%s); give it to a user other than root, or use --profile "
				"read-only",
				grant->path, coop_err_errno_name(-fd));
			coop_err_detail(draft->err, "protection", "identity");
			coop_err_detail(draft->err, "reason", coop_err_errno_name(-fd));
			return r;
		}
		launcher->uid = grant->uid;
		launcher->gid = grant->gid;
	}
	return 0;
}

/* Which of the trees it is; -1: it is found by its path, with the rights of whoever the command
 * runs as. */
static int show(struct coop_keeper *keeper, struct coop_confine *confine,
		const struct coop_grant *grant)
{
	if (!grant->shown || !coop_host_of(keeper)->root_keeper ||
	    confine->kind != COOP_CONFINE_NAMESPACES)
		return -1;
	int fd = coop_idmap_tree(&coop_views_of(keeper)->idmaps, grant->fd,
				 coop_host_of(keeper)->can.uid, coop_host_of(keeper)->can.gid);
	return fd < 0 ? -1 : add_tree(confine, fd, grant->fd);
}

/* With device and inode: the layout knows a folder that was opened from one that has its name
 * now. */
static void fill_root(const struct coop_grant *grant, int tree, struct coop_layout_root *ret)
{
	*ret = (struct coop_layout_root){
		.path = grant->path, .fd = tree, .dev = grant->dev, .ino = grant->ino};
}

/* Where it is not to be seen as /tmp, programs are told of it. */
static int tell_tmp(struct coop_draft *draft, struct coop_confine *confine, const char *path)
{
	confine->tmpdir = coop_mem_strdup(path);
	return confine->tmpdir ? 0 : coop_err_no_memory(draft->err);
}

/* What it has as /tmp, if that is not its own alone. Where it cannot be shown with other owners to
 * a command of root's keeper, it is its own. */
static int share_tmp(struct coop_draft *draft, struct coop_confine *confine,
		     const struct coop_grant *tmp, struct coop_layout_root *root,
		     struct coop_layout_input *input)
{
	struct coop_keeper *keeper = draft->agent->keeper;
	bool view = confine->kind == COOP_CONFINE_NAMESPACES;
	int tree = -1;

	if (!tmp->path)
		return 0;
	if (coop_host_of(keeper)->root_keeper) {
		/* As of the workspace: only the filter keeps it from making files that anybody runs
		 * as their owner. */
		tree = view && confine->filter != COOP_FILTER_NONE ? show(keeper, confine, tmp)
								   : -1;
		if (tree < 0)
			return 0;
	}
	fill_root(tmp, tree, root);
	input->tmp = root;
	return view ? 0 : tell_tmp(draft, confine, tmp->path);
}

/* The process's user has a name in its view, whoever he is. */
static size_t name_user(struct coop_keeper *keeper, const struct coop_confine *confine,
			struct coop_injection ret[COOP_USERS_FILES])
{
	const struct coop_launcher_class *launcher = &confine->launcher;
	uint32_t uid = launcher->other_ids ? launcher->uid : geteuid();
	uint32_t gid = launcher->other_ids ? launcher->gid : getegid();

	return confine->kind == COOP_CONFINE_NAMESPACES
		       ? coop_users_files(&coop_views_of(keeper)->users, uid, gid, ret)
		       : 0;
}

/* For the record: as `id` will print it inside. */
static void name_process(struct coop_keeper *keeper, struct coop_confine *confine)
{
	const struct coop_launcher_class *launcher = &confine->launcher;

	confine->user = coop_users_name(&coop_views_of(keeper)->users,
					launcher->other_ids ? launcher->uid : geteuid(),
					launcher->other_ids ? launcher->gid : getegid(),
					confine->kind == COOP_CONFINE_NAMESPACES);
}

/* Where files are held at all, the layout knows what of them is not. */
static void note_files(struct coop_confine *confine)
{
	const struct coop_held held = confine->achieved->held[COOP_PROTECT_FILES];

	if (*confine->start->layout.note && held.strength != COOP_NONE)
		coop_held_set(confine->achieved, COOP_PROTECT_FILES, COOP_PARTIAL, held.mechanism,
			      "%s", confine->start->layout.note);
}

/* What is the keeper's own. NULL-terminated. */
static void list_hidden(const struct coop_keeper *keeper, const struct coop_confine *confine,
			const char *ret[HIDDEN_MAX + 1])
{
	/* Without a view of its own the process's own files are in the folder of files. */
	bool files = confine->kind == COOP_CONFINE_NAMESPACES;
	/* That of a keeper with a state folder lies in it. */
	bool spool = !*coop_place_of(keeper)->state_dir;
	const char *const own[HIDDEN_MAX] = {
		coop_place_of(keeper)->state_dir,    coop_place_of(keeper)->socket,
		coop_listener_gate(keeper),          files ? coop_views_of(keeper)->files_dir : "",
		spool ? coop_spool_dir(keeper) : "", coop_place_of(keeper)->backlog};
	size_t count = 0;

	for (size_t i = 0; i < HIDDEN_MAX; i++) {
		if (*own[i])
			ret[count++] = own[i];
	}
	ret[count] = NULL;
}

static int lay_out(struct coop_draft *draft, struct coop_confine *confine,
		   const struct coop_grants *grants)
{
	struct coop_keeper *keeper = draft->agent->keeper;
	const char *hidden[HIDDEN_MAX + 1];
	/* What commands may do is not for them to say. */
	const char *const sealed[] = {*coop_config_path(coop_config_of(keeper)) == '/'
					      ? coop_config_path(coop_config_of(keeper))
					      : NULL,
				      NULL};
	struct coop_layout_root writable[COOP_GRANTS_MAX], readable[COOP_GRANTS_MAX], tmp;
	const char *others[COOP_HOMES_MAX] = {NULL};
	int trees[COOP_GRANTS_MAX] = {0};
	int r = coop_homes_spread(&grants->homes, &confine->policy, draft->err);
	struct coop_injection users[COOP_USERS_FILES];
	struct coop_layout_input input = {
		.policy = &confine->policy,
		.host = &coop_host_of(keeper)->can,
		.root_keeper = coop_host_of(keeper)->root_keeper,
		.home = coop_homes_first(&grants->homes),
		.credentials = &coop_host_of(keeper)->credentials,
		.other_homes = others,
		.cwd = draft->process->labels.cwd,
		.hidden = hidden,
		.sealed = sealed,
		/* Agents' folders are not each other's business. */
		.emptied =
			*coop_place_of(keeper)->data_dir ? coop_place_of(keeper)->data_dir : NULL,
		.writable = writable,
		.writable_count = grants->writable_count,
		.readable = readable,
		.readable_count = grants->readable_count,
		.injections = draft->injections ? draft->injections->files : NULL,
		.injection_count = draft->injections && confine->kind == COOP_CONFINE_NAMESPACES
					   ? draft->injections->count
					   : 0,
		.replaced = users,
		.terminal = draft->process->terms.pty,
		.sockets = coop_host_sockets_list(&coop_views_of(keeper)->sockets,
						  coop_silence_of(keeper)),
		.ghosts = coop_views_of(keeper)->ghosts,
		.mounts = coop_silence_of(keeper)->known ? &coop_silence_of(keeper)->table : NULL,
		.masks = coop_private_files_masks(keeper),
		.seen = grants->seen,
	};

	if (r == 0 && coop_missing_sockets(draft->request)) {
		draft->again = true;
		return -EAGAIN;
	}
	list_hidden(keeper, confine, hidden);
	for (size_t i = 0; i < grants->writable_count; i++)
		trees[i] = -1;
	for (size_t i = 1; i < grants->homes.count; i++)
		others[i - 1] = grants->homes.list[i];
	if (r == 0 && coop_host_of(keeper)->root_keeper && confine->kind == COOP_CONFINE_NAMESPACES)
		r = map_owners(draft, confine, grants, trees);
	for (size_t i = 0; i < grants->writable_count; i++)
		fill_root(&grants->writable[i], trees[i], &writable[i]);
	for (size_t i = 0; i < grants->readable_count; i++)
		fill_root(&grants->readable[i], show(keeper, confine, &grants->readable[i]),
			  &readable[i]);
	if (r == 0)
		r = share_tmp(draft, confine, &grants->tmp, &tmp, &input);
	input.replaced_count = name_user(keeper, confine, users);
	if (r == 0)
		r = coop_layout_build(&input, &confine->start->layout, draft->err);
	if (r == 0 && confine->start->layout.cwd_hidden)
		r = coop_cwd_closed(draft->agent, draft->cwd_name, draft->err);
	if (r < 0)
		return r;
	confine->home = confine->start->layout.home;
	(void)snprintf(confine->globs, sizeof confine->globs, "%s", confine->start->layout.globs);
	(void)snprintf(confine->links, sizeof confine->links, "%s", confine->start->layout.links);
	note_files(confine);
	return 0;
}

/* The session's, or the agent's where it names none: commands of one session reach each other by
 * loopback. */
static int join_network(struct coop_draft *draft, struct coop_confine *confine)
{
	struct coop_net **home = draft->session ? &draft->session->net : &draft->agent->net;

	if (confine->launcher.kind != COOP_LAUNCHER_BOX ||
	    confine->policy.network != COOP_NET_LOOPBACK)
		return 0;
	confine->net = coop_net_take(draft->agent->keeper, home, confine->launcher.uid);
	return confine->net ? 0 : coop_err_no_memory(draft->err);
}

/* Where the files are that the request brings along. */
static int place_files(struct coop_draft *draft, const struct coop_confine *confine)
{
	struct stat status;

	if (!draft->injections)
		return 0;
	if (confine->kind != COOP_CONFINE_NAMESPACES)
		return coop_private_files_name(draft->process, draft->injections, draft->err);
	bool run = confine->policy.root == COOP_ROOT_MINIMAL ||
		   (lstat("/run", &status) == 0 && S_ISDIR(status.st_mode));
	return coop_injections_place(draft->injections, run ? COOP_INJECTIONS_FOLDER
							    : COOP_INJECTIONS_OTHER_FOLDER) < 0
		       ? coop_err_no_memory(draft->err)
		       : 0;
}

static int decide(struct coop_draft *draft, struct coop_confine *confine)
{
	struct coop_grants grants = {0};
	struct coop_reach reach;
	int r = read_policy(draft, confine);

	if (r == 0)
		coop_means_choose(draft->agent->keeper, confine);
	confine->home = confine->policy.home;
	confine->start->cwd_name = coop_mem_strdup(draft->cwd_name);
	if (r == 0 && !confine->start->cwd_name)
		r = coop_err_no_memory(draft->err);
	if (r == 0)
		r = place_files(draft, confine);
	if (r == 0 && confine->policy.profile != COOP_PROFILE_FULL) {
		const struct coop_lookable *seen = coop_reach_of(draft->agent, &reach);
		r = coop_grants_open(draft, confine, seen, &grants);
		if (r == 0)
			r = coop_grants_tmp(draft, confine, &grants);
		if (r == 0)
			r = coop_grants_cwd(draft, confine, &grants);
		if (r == 0)
			r = lay_out(draft, confine, &grants);
		confine->no_tmpdir = r == 0 && !coop_grants_show_tmpdir(draft, confine, &grants);
	} else if (r == 0 && !confine->policy.limits.tmp_bytes) {
		COOP_AUTO_FREE char *tmp = coop_agent_folder_tmp(draft->agent);
		r = tmp               ? tell_tmp(draft, confine, tmp)
		    : errno == ENOMEM ? coop_err_no_memory(draft->err)
				      : 0;
	}
	coop_grants_close(&grants);
	if (r == 0)
		name_process(draft->agent->keeper, confine);
	if (r == 0)
		coop_groups_hold(draft->agent->keeper, draft->agent, confine);
	if (r == 0)
		r = coop_means_check(confine, draft->err);
	if (r == 0)
		r = join_network(draft, confine);
	return r < 0 ? r : coop_groups_place(draft, confine);
}

int coop_confine_make(struct coop_draft *draft)
{
	struct coop_confine *confine = coop_confine_new();

	draft->process->confine = confine;
	if (!confine)
		return coop_err_no_memory(draft->err);
	int r = decide(draft, confine);
	draft->process->child.boxed = confine->init;
	return r;
}

int coop_confine_hold(struct coop_process *process, struct coop_err *err)
{
	struct coop_layout *layout = &process->confine->start->layout;
	int r = coop_ghosts_take(coop_views_of(process->keeper)->ghosts, layout->ghosts,
				 layout->ghost_count);

	if (r == 0) {
		coop_layout_insist(layout);
		process->confine->ghosts = layout->ghosts;
		process->confine->ghost_count = layout->ghost_count;
		layout->ghosts = NULL;
		layout->ghost_count = 0;
		return 0;
	}
	/* Those that had been made by then are removed again. */
	coop_folders_free(process->keeper);
	if (r == -ENOMEM)
		return coop_err_no_memory(err);
	r = coop_err_set(
		err, COOP_SANDBOX_UNAVAILABLE,
		"sandbox: files: no placeholder can be put where a protected path is missing: %s",
		strerror(-r));
	coop_err_detail(err, "protection", "files");
	return r;
}
