/* Which mechanisms hold a policy on this host, and what may be said of it. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "interface/err.h"
#include "keeper/confine/confine_private.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/owner/agent.h"
#include "keeper/process/process.h"
#include "sandbox/filter/filter.h"
#include "sandbox/layout/host.h"
#include "sandbox/policy/pathlist.h"
#include "sandbox/policy/protection.h"

#define ERRNO(host, what) coop_err_errno_name((host)->error[what])
/* How reasons begin that are not the host's. */
#define BY_PROFILE "profile full"
#define BIT COOP_PROTECT_BIT

static void hold(struct coop_confine *confine, enum coop_protection what,
		 enum coop_strength strength, const char *mechanism, const char *reason)
{
	confine->achieved->asked |= BIT(what);
	coop_held_set(confine->achieved, what, strength, mechanism, reason ? "%s" : NULL, reason);
}

/* As it was found when the keeper started, by doing it. */
static bool can(const struct coop_host *host, enum coop_facility what)
{
	return host->error[what] == 0;
}

/* Namespaces come with one of users. That of the files needs mounts, too; the others do without. */
static bool boxed(const struct coop_confine *confine)
{
	return confine->namespaces & CLONE_NEWUSER;
}

/* It is tried with a /proc of its own. ENOSYS is what the call says that mounts one, where there is
 * none: the namespace is there. */
static bool pid_namespaces_work(const struct coop_host *host)
{
	return can(host, COOP_CAN_PIDNS) ||
	       (host->error[COOP_CAN_PIDNS] == ENOSYS && !can(host, COOP_CAN_MOUNT));
}

/* The first of the three that is missing: the others need it. */
static const char *why_no_view(const struct coop_host *host, char ret[64])
{
	enum coop_facility missing = !can(host, COOP_CAN_USERNS)   ? COOP_CAN_USERNS
				     : !can(host, COOP_CAN_NESTED) ? COOP_CAN_NESTED
								   : COOP_CAN_MOUNT;

	(void)snprintf(ret, 64, "%s: %s", coop_facility_name(missing), ERRNO(host, missing));
	return ret;
}

/* With Landlock alone files are partly held: it can take nothing back that lies in what may be
 * written. */
static void choose_files(struct coop_confine *confine, const struct coop_host *host)
{
	bool mounts = confine->kind == COOP_CONFINE_NAMESPACES, landlock = confine->landlock != 0;
	char why[64];

	if (mounts)
		hold(confine, COOP_PROTECT_FILES, COOP_ENFORCED,
		     landlock ? "mounts, landlock" : "mounts", NULL);
	else
		hold(confine, COOP_PROTECT_FILES, landlock ? COOP_PARTIAL : COOP_NONE,
		     landlock ? "landlock" : NULL, why_no_view(host, why));
}

static void choose_network(struct coop_confine *confine, const struct coop_host *host)
{
	bool own_net = boxed(confine) && can(host, COOP_CAN_NETNS);
	int network = confine->policy.network;
	const char *denied = "seccomp";

	if (network == COOP_NET_HOST) {
		coop_held_set(confine->achieved, COOP_PROTECT_NETWORK, COOP_NONE, NULL,
			      "the host's network was asked for");
		/* Who asks for it goes without; where it is required from above that is nobody's to
		 * choose. */
		confine->achieved->asked |= confine->policy.insisted & BIT(COOP_PROTECT_NETWORK);
		return;
	}
	if (own_net) {
		hold(confine, COOP_PROTECT_NETWORK, COOP_ENFORCED, "net namespace", NULL);
		if (network == COOP_NET_NONE)
			confine->namespaces |= CLONE_NEWNET;
		return;
	}
	if (can(host, COOP_CAN_SECCOMP))
		confine->filter = COOP_FILTER_NO_NETWORK;
	else
		denied = NULL;
	if (boxed(confine) && denied && network == COOP_NET_NONE)
		hold(confine, COOP_PROTECT_NETWORK, COOP_ENFORCED, denied, NULL);
	else
		hold(confine, COOP_PROTECT_NETWORK, denied ? COOP_PARTIAL : COOP_NONE, denied,
		     network == COOP_NET_LOOPBACK
			     ? "no net namespace: no sockets of the network at all, not even "
			       "loopback"
			     : "no net namespace: only sockets of the network are refused");
}

static void choose_identity(struct coop_confine *confine, const struct coop_keeper *keeper)
{
	char text[64];

	if (coop_host_of(keeper)->outer_root) {
		hold(confine, COOP_PROTECT_IDENTITY, COOP_NONE, NULL,
		     "root of a user namespace with no other user, made by root");
		return;
	}
	if (!coop_host_of(keeper)->root_keeper) {
		hold(confine, COOP_PROTECT_IDENTITY, COOP_ENFORCED,
		     boxed(confine) ? "user namespace" : "unprivileged user", NULL);
		return;
	}
	(void)snprintf(text, sizeof text, "uid %u", confine->launcher.uid);
	hold(confine, COOP_PROTECT_IDENTITY, COOP_ENFORCED, text, NULL);
}

static void choose_rest(struct coop_confine *confine, const struct coop_host *host)
{
	char why[64];

	if (boxed(confine) && can(host, COOP_CAN_IPCNS)) {
		confine->namespaces |= CLONE_NEWIPC | CLONE_NEWUTS;
		hold(confine, COOP_PROTECT_IPC, COOP_ENFORCED, "ipc namespace", NULL);
	} else {
		hold(confine, COOP_PROTECT_IPC, COOP_NONE, NULL, "no ipc namespace");
	}
	confine->flags |= COOP_PLAN_DROP_CAPS;
	if (can(host, COOP_CAN_NO_NEW_PRIVS)) {
		confine->flags |= COOP_PLAN_NO_NEW_PRIVS;
		hold(confine, COOP_PROTECT_PRIVILEGES, COOP_ENFORCED, "no_new_privs, capabilities",
		     NULL);
	} else {
		(void)snprintf(why, sizeof why, "no_new_privs: %s",
			       ERRNO(host, COOP_CAN_NO_NEW_PRIVS));
		hold(confine, COOP_PROTECT_PRIVILEGES, COOP_PARTIAL, "capabilities", why);
	}
	if (can(host, COOP_CAN_SECCOMP))
		hold(confine, COOP_PROTECT_SECCOMP, COOP_ENFORCED, "filter", NULL);
	else
		hold(confine, COOP_PROTECT_SECCOMP, COOP_NONE, NULL, ERRNO(host, COOP_CAN_SECCOMP));
	confine->init = boxed(confine) && pid_namespaces_work(host);
	if (confine->init)
		hold(confine, COOP_PROTECT_KILL, COOP_ENFORCED, "pid namespace", NULL);
	else
		hold(confine, COOP_PROTECT_KILL, COOP_PARTIAL, "walk", "no pid namespace");
	/* It sees all processes of its user, the keeper's as well. */
	if (!confine->init && confine->filter == COOP_FILTER_STANDARD)
		confine->filter = COOP_FILTER_AMONG_OTHERS;
	else if (!confine->init && confine->filter == COOP_FILTER_NO_NETWORK)
		confine->filter = COOP_FILTER_AMONG_OTHERS_NO_NETWORK;
}

/* Nothing holds, and each protection says so by name; what needs no confinement still does. */
static void choose_full(struct coop_confine *confine)
{
	struct coop_achieved *achieved = confine->achieved;
	bool privileges = confine->policy.new_privileges;

	confine->kind = COOP_CONFINE_NONE;
	confine->launcher = (struct coop_launcher_class){.kind = COOP_LAUNCHER_PLAIN};
	for (int i = COOP_PROTECT_FILES; i <= COOP_PROTECT_KILL; i++)
		coop_held_set(achieved, (enum coop_protection)i, COOP_NONE, NULL, BY_PROFILE);
	if (!privileges) {
		confine->flags |= COOP_PLAN_NO_NEW_PRIVS;
		coop_held_set(achieved, COOP_PROTECT_PRIVILEGES, COOP_PARTIAL, "no_new_privs",
			      BY_PROFILE ": capabilities stay");
	}
	coop_held_set(achieved, COOP_PROTECT_KILL, COOP_PARTIAL, "walk", BY_PROFILE);
	/* What is required of it must hold wholly, as it must elsewhere. */
	achieved->asked |= confine->policy.require & COOP_PROTECT_ALL;
}

/* One that can enter networks of sessions, one with the host's, or one without namespaces. */
static void choose_launcher(struct coop_confine *confine, const struct coop_keeper *keeper)
{
	const struct coop_host *host = &coop_host_of(keeper)->can;
	bool own_net = can(host, COOP_CAN_NETNS) && confine->policy.network != COOP_NET_HOST;

	confine->launcher.kind = !boxed(confine) ? COOP_LAUNCHER_PLAIN
				 : own_net       ? COOP_LAUNCHER_BOX
						 : COOP_LAUNCHER_HOST;
	confine->launcher.other_ids = coop_host_of(keeper)->root_keeper;
	confine->launcher.uid = host->uid;
	confine->launcher.gid = host->gid;
}

/* Where a namespace is missing Landlock holds some of what it would: nobody outside can be
 * signalled, no abstract socket be reached. */
static void choose_scopes(struct coop_confine *confine, const struct coop_host *host)
{
	enum { ABSTRACT_SOCKETS = 1, SIGNALS = 2, SINCE_ABI = 6 };
	bool own_net = boxed(confine) && can(host, COOP_CAN_NETNS) &&
		       confine->policy.network != COOP_NET_HOST;

	if (confine->landlock < SINCE_ABI) {
		if (!own_net && confine->achieved->held[COOP_PROTECT_IPC].strength == COOP_ENFORCED)
			hold(confine, COOP_PROTECT_IPC, COOP_PARTIAL, "ipc namespace",
			     "abstract sockets of the host can be reached");
		return;
	}
	confine->scopes |= confine->init ? 0u : SIGNALS;
	confine->scopes |= own_net ? 0u : ABSTRACT_SOCKETS;
}

static void add_limit(struct coop_confine *confine, int resource, uint64_t soft, uint64_t hard)
{
	confine->start->limits[confine->start->limit_count++] = (struct coop_plan_limit){
		.resource = (uint32_t)resource, .soft = soft, .hard = hard};
}

/* What the kernel counts for a user, with all its namespaces, one sandbox must not use up: signals
 * that wait, which timers need, and message queues. In a user namespace of its own the limit is of
 * that alone. */
static void limit_shared(struct coop_confine *confine)
{
	static const struct {
		int resource;
		uint64_t part;
	} rows[] = {{RLIMIT_SIGPENDING, 4}, {RLIMIT_MSGQUEUE, 2}};
	struct rlimit now;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (getrlimit((__rlimit_resource_t)rows[i].resource, &now) == 0 &&
		    now.rlim_cur != RLIM_INFINITY)
			add_limit(confine, rows[i].resource, now.rlim_cur / rows[i].part,
				  now.rlim_cur / rows[i].part);
	}
}

/* Commands get the limit that the user had, not the one that the keeper raised for itself. The
 * kernel counts descriptors that are sent and not received per user, against the limit of who
 * sends: one who may have fewer cannot keep keeper and launchers from sending. */
static void limit_files(const struct coop_keeper *keeper, struct coop_confine *confine)
{
	uint64_t asked = (uint64_t)confine->policy.limits.max_open_files;
	uint64_t most = coop_place_of(keeper)->original_nofile.rlim_max,
		 soft = coop_place_of(keeper)->original_nofile.rlim_cur;
	uint64_t spared = (uint64_t)coop_place_of(keeper)->fd_limit -
			  (uint64_t)coop_place_of(keeper)->fd_limit / 4;

	if (confine->kind != COOP_CONFINE_NONE && most > spared)
		most = spared;
	if (asked)
		soft = most = asked < most ? asked : most;
	add_limit(confine, RLIMIT_NOFILE, soft < most ? soft : most, most);
}

/* Limits that the kernel holds for each process by itself. */
static void choose_limits(const struct coop_keeper *keeper, struct coop_confine *confine)
{
	const struct coop_sandbox_limits *limits = &confine->policy.limits;
	bool counted = boxed(confine), view = confine->kind == COOP_CONFINE_NAMESPACES;

	if (confine->kind != COOP_CONFINE_NONE) {
		add_limit(confine, RLIMIT_CORE, 0, 0);
		add_limit(confine, RLIMIT_MEMLOCK, 0, 0);
	}
	if (counted)
		limit_shared(confine);
	if (limits->max_cpu_secs) {
		add_limit(confine, RLIMIT_CPU, (uint64_t)limits->max_cpu_secs,
			  (uint64_t)limits->max_cpu_secs + 1);
		hold(confine, COOP_PROTECT_CPU_TIME, COOP_ENFORCED, "rlimit, each process", NULL);
	}
	limit_files(keeper, confine);
	if (limits->max_open_files) {
		hold(confine, COOP_PROTECT_OPEN_FILES, COOP_ENFORCED, "rlimit, each process", NULL);
	}
	if (limits->max_file_bytes) {
		add_limit(confine, RLIMIT_FSIZE, (uint64_t)limits->max_file_bytes,
			  (uint64_t)limits->max_file_bytes);
		hold(confine, COOP_PROTECT_FILE_SIZE, COOP_ENFORCED, "rlimit", NULL);
	}
	if (limits->max_pids) {
		/* In a user namespace of its own the kernel counts for it alone. */
		if (counted)
			add_limit(confine, RLIMIT_NPROC, (uint64_t)limits->max_pids,
				  (uint64_t)limits->max_pids);
		hold(confine, COOP_PROTECT_PIDS, counted ? COOP_ENFORCED : COOP_NONE,
		     counted ? "rlimit, user namespace" : NULL,
		     counted ? NULL : "no user namespace, no control group");
	}
	if (limits->tmp_bytes)
		hold(confine, COOP_PROTECT_TMP, view ? COOP_ENFORCED : COOP_NONE,
		     view ? "tmpfs" : NULL,
		     view                                           ? NULL
		     : confine->policy.profile == COOP_PROFILE_FULL ? BY_PROFILE ": no private /tmp"
								    : "no private /tmp");
}

/* Without mounts the namespaces of users, processes, networks and so on are as good as with them;
 * files are Landlock's then. */
static void choose_namespaces(struct coop_confine *confine, const struct coop_host *host)
{
	bool spaces = can(host, COOP_CAN_USERNS) && can(host, COOP_CAN_NESTED);

	confine->kind = spaces && can(host, COOP_CAN_MOUNT) ? COOP_CONFINE_NAMESPACES
			: confine->landlock                 ? COOP_CONFINE_LANDLOCK
							    : COOP_CONFINE_NONE;
	if (!spaces || confine->kind == COOP_CONFINE_NONE)
		return;
	confine->flags |= COOP_PLAN_MAP_SELF;
	confine->namespaces = CLONE_NEWUSER | CLONE_NEWCGROUP;
	if (confine->kind == COOP_CONFINE_NAMESPACES) {
		confine->flags |= COOP_PLAN_CWD_PATH;
		confine->namespaces |= CLONE_NEWNS;
	}
}

void coop_means_choose(const struct coop_keeper *keeper, struct coop_confine *confine)
{
	const struct coop_host *host = &coop_host_of(keeper)->can;

	if (confine->policy.profile == COOP_PROFILE_FULL) {
		choose_full(confine);
		choose_limits(keeper, confine);
		return;
	}
	/* The kernel takes neither Landlock nor a filter from somebody who could still gain
	 * privileges. */
	if (can(host, COOP_CAN_LANDLOCK) && can(host, COOP_CAN_NO_NEW_PRIVS))
		confine->landlock = host->landlock_abi;
	choose_namespaces(confine, host);
	confine->filter = can(host, COOP_CAN_SECCOMP) ? COOP_FILTER_STANDARD : COOP_FILTER_NONE;
	choose_launcher(confine, keeper);
	choose_files(confine, host);
	choose_network(confine, host);
	choose_identity(confine, keeper);
	choose_rest(confine, host);
	choose_scopes(confine, host);
	if (confine->init) {
		confine->flags |= COOP_PLAN_INIT;
		confine->namespaces |= CLONE_NEWPID;
	}
	choose_limits(keeper, confine);
}

/* Landlock can take nothing back that lies in what may be written. Who denied something there is
 * told that by its name. */
static void tell_denied(struct coop_confine *confine)
{
	const struct coop_held held = confine->achieved->held[COOP_PROTECT_FILES];

	if (confine->kind == COOP_CONFINE_LANDLOCK &&
	    coop_pathlist_count(confine->policy.deny_write))
		coop_held_set(confine->achieved, COOP_PROTECT_FILES, held.strength, held.mechanism,
			      "deny_write does not hold; %s", held.reason);
}

int coop_means_check(struct coop_confine *confine, struct coop_err *err)
{
	uint32_t required = confine->policy.require & confine->achieved->asked;

	tell_denied(confine);
	required |= confine->policy.limits_asked & ~confine->policy.tolerate;
	for (int i = 0; i < COOP_PROTECT_COUNT; i++) {
		const struct coop_held *held = &confine->achieved->held[i];
		const char *name = coop_protection_name((enum coop_protection)i);
		if (!(required & BIT(i)) || held->strength == COOP_ENFORCED)
			continue;
		char way_out[96];
		if (confine->policy.insisted & BIT(i))
			(void)snprintf(way_out, sizeof way_out,
				       "it is required from above and cannot be tolerated");
		else
			(void)snprintf(way_out, sizeof way_out, "--tolerate %s runs without", name);
		int r = coop_err_set(err, COOP_SANDBOX_UNAVAILABLE,
				     "sandbox: %s cannot be enforced on this host: %s (coop doctor "
				     "says more; %s)",
				     name, *held->reason ? held->reason : "no mechanism for it",
				     way_out);
		coop_err_detail(err, "protection", name);
		coop_err_detail(err, "reason", held->reason);
		coop_err_detail(err, "cause",
				strncmp(held->reason, BY_PROFILE, strlen(BY_PROFILE)) ? "host"
										      : "profile");
		coop_err_detail_raw(err, "tolerable",
				    confine->policy.insisted & BIT(i) ? "false" : "true");
		return r;
	}
	return 0;
}
