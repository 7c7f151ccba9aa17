#include "keeper/conf/remedies.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interface/err.h"

/* What container engines take away, and how each gives it back. */
#define DOCKER "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
#define UNMASK                                                                            \
	"docker run --security-opt systempaths=unconfined, or podman run --security-opt " \
	"unmask=ALL"

/* What each protection is made of; the first that is missing is the one to mend. Landlock and
 * overlays only make it better. */
#define NOTHING COOP_FACILITY_COUNT
#define NAMESPACES COOP_CAN_USERNS, COOP_CAN_NESTED

static const enum coop_facility parts[COOP_PROTECT_COUNT][6] = {
	[COOP_PROTECT_FILES] = {NAMESPACES, COOP_CAN_MOUNT, COOP_CAN_LANDLOCK, COOP_CAN_OVERLAY,
				NOTHING},
	[COOP_PROTECT_NETWORK] = {NAMESPACES, COOP_CAN_NETNS, NOTHING},
	[COOP_PROTECT_IDENTITY] = {COOP_CAN_IDMAP, NOTHING},
	[COOP_PROTECT_IPC] = {NAMESPACES, COOP_CAN_IPCNS, NOTHING},
	[COOP_PROTECT_PRIVILEGES] = {COOP_CAN_NO_NEW_PRIVS, NOTHING},
	[COOP_PROTECT_SECCOMP] = {COOP_CAN_NO_NEW_PRIVS, COOP_CAN_SECCOMP, NOTHING},
	[COOP_PROTECT_KILL] = {NAMESPACES, COOP_CAN_PIDNS, NOTHING},
	[COOP_PROTECT_MEMORY] = {NOTHING},
	[COOP_PROTECT_CPU] = {NOTHING},
	[COOP_PROTECT_PIDS] = {NOTHING},
	[COOP_PROTECT_CPU_TIME] = {NOTHING},
	[COOP_PROTECT_OPEN_FILES] = {NOTHING},
	[COOP_PROTECT_FILE_SIZE] = {NOTHING},
	[COOP_PROTECT_TMP] = {NAMESPACES, COOP_CAN_MOUNT, NOTHING},
};

static void say(char ret[COOP_REMEDY_MAX], const char *text)
{
	(void)snprintf(ret, COOP_REMEDY_MAX, "%s", text);
}

static bool in_container(void)
{
	return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
}

/* -1: there is no such setting. */
static long long setting(const char *path)
{
	FILE *file = fopen(path, "re");
	long long value = -1;

	if (file && fscanf(file, "%lld", &value) != 1)
		value = -1;
	if (file)
		(void)fclose(file);
	return value;
}

/* Too many of them, or none allowed. */
static void say_too_many(char ret[COOP_REMEDY_MAX], const char *kind)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kind);
	(void)snprintf(ret, COOP_REMEDY_MAX,
		       "sysctl -w user.max_%s_namespaces=15000 (it is %lld here; one of a "
		       "container around this counts too), or end what holds the others",
		       kind, setting(path));
}

/* Somebody forbids namespaces to users: who, where that can be known. */
static void say_forbidden(char ret[COOP_REMEDY_MAX])
{
	if (setting("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		say(ret, "sysctl -w kernel.unprivileged_userns_clone=1");
	else if (setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
		say(ret, "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor "
			 "profile with the rule userns for coop-keeper");
	else if (in_container())
		say(ret, "the container does not allow it: " DOCKER
			 " does, or a seccomp profile that lets unshare, clone and the calls that "
			 "mount through");
	else
		say(ret,
		    "a filter, a security module or a chroot around the keeper forbids it: start "
		    "the keeper outside of that, or let unshare, clone and the calls that mount "
		    "through");
}

static void mend_users(int error, char ret[COOP_REMEDY_MAX])
{
	if (error == ENOSPC)
		say_too_many(ret, "user");
	else if (error == EUSERS)
		say(ret, "start the keeper in fewer user namespaces: they are nested too deeply");
	else if (error == ENOSYS || error == EINVAL)
		say(ret, "a kernel with user namespaces (CONFIG_USER_NS)");
	else
		say_forbidden(ret);
}

static void mend_mounts(int error, char ret[COOP_REMEDY_MAX])
{
	if (error == ENOSPC)
		say_too_many(ret, "mnt");
	else if (error == ENOSYS)
		say(ret,
		    "Linux 5.12 or newer (mount_setattr), and no filter around the keeper that "
		    "keeps the calls that mount from it");
	else
		say_forbidden(ret);
}

static void mend_pids(int error, char ret[COOP_REMEDY_MAX])
{
	if (error == ENOSPC)
		say_too_many(ret, "pid");
	else if (error == EPERM)
		say(ret, "parts of /proc are covered here, as container engines do, and the kernel "
			 "lets nobody make a whole one then: " UNMASK " leaves it whole");
	else if (error == EINVAL || error == ENOSYS)
		say(ret, "a kernel with PID namespaces (CONFIG_PID_NS)");
	else
		say_forbidden(ret);
}

static void mend_other_namespaces(enum coop_facility facility, int error, char ret[COOP_REMEDY_MAX])
{
	bool net = facility == COOP_CAN_NETNS;

	if (error == ENOSPC && net)
		say_too_many(ret, "net");
	else if (error == ENOSPC)
		say_too_many(ret,
			     setting("/proc/sys/user/max_ipc_namespaces") == 0 ? "ipc" : "uts");
	else if (error == EINVAL || error == ENOSYS)
		say(ret,
		    net ? "a kernel with net namespaces (CONFIG_NET_NS)"
			: "a kernel with IPC and UTS namespaces (CONFIG_IPC_NS, CONFIG_UTS_NS)");
	else
		say_forbidden(ret);
}

static void mend(enum coop_facility facility, int error, char ret[COOP_REMEDY_MAX])
{
	if (error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN) {
		(void)snprintf(
			ret, COOP_REMEDY_MAX,
			"%s ran out when it was tried: raise that limit (ulimit) for whoever "
			"starts the keeper, and start it again",
			error == ENOMEM   ? "memory"
			: error == EAGAIN ? "processes"
					  : "open files");
		return;
	}
	switch (facility) {
	case COOP_CAN_USERNS:
	case COOP_CAN_NESTED:
		mend_users(error, ret);
		break;
	case COOP_CAN_MOUNT:
		mend_mounts(error, ret);
		break;
	case COOP_CAN_PIDNS:
		mend_pids(error, ret);
		break;
	case COOP_CAN_NETNS:
	case COOP_CAN_IPCNS:
		mend_other_namespaces(facility, error, ret);
		break;
	case COOP_CAN_OVERLAY:
		say(ret, "for homes that can be written to: Linux 5.11 or newer with overlays "
			 "(CONFIG_OVERLAY_FS, modprobe overlay)");
		break;
	case COOP_CAN_IDMAP:
		say(ret,
		    "for workspaces that belong to root: Linux 5.12 or newer (6.3 for those on a "
		    "tmpfs), and CAP_SYS_ADMIN outside of any container; or give them to "
		    "another user");
		break;
	case COOP_CAN_LANDLOCK:
		say(ret, "for a second wall behind the mounts: Linux 5.19 or newer with Landlock "
			 "(CONFIG_SECURITY_LANDLOCK, and landlock in lsm= of the kernel's command "
			 "line)");
		break;
	case COOP_CAN_SECCOMP:
		say(ret,
		    "a kernel with CONFIG_SECCOMP_FILTER, and no filter around the keeper that "
		    "keeps seccomp from it");
		break;
	case COOP_CAN_NO_NEW_PRIVS:
		say(ret, "no filter around the keeper may keep prctl(PR_SET_NO_NEW_PRIVS) from it");
		break;
	case COOP_FACILITY_COUNT:
		break;
	}
}

/* What is in a user's way is that he is one, in a container too: there it may be open to its
 * root. */
void coop_remedy_groups(const struct coop_remedy_host *host, char ret[COOP_REMEDY_MAX])
{
	if (!host->root_keeper && in_container())
		say(ret, "start the keeper as root of the container, or as one whom a control "
			 "group was given to (chown)");
	else if (in_container())
		say(ret, "let the container write to its control groups: docker run --privileged "
			 "--cgroupns=private, or podman run --security-opt unmask=/sys/fs/cgroup");
	else if (host->root_keeper)
		say(ret,
		    "mount control groups where the keeper may write to them: mount -t cgroup2 "
		    "none /sys/fs/cgroup");
	else
		say(ret, "start the keeper where control groups are delegated to it (systemd-run "
			 "--user --scope -p Delegate=yes coop keeper, or a service with "
			 "Delegate=yes), or as root");
}

void coop_remedy(const struct coop_remedy_host *host, enum coop_protection protection,
		 enum coop_strength strength, char ret[COOP_REMEDY_MAX])
{
	bool grouped = protection == COOP_PROTECT_MEMORY || protection == COOP_PROTECT_CPU ||
		       protection == COOP_PROTECT_PIDS;
	/* These two may hold and still be better. */
	bool wanting = strength != COOP_ENFORCED || protection == COOP_PROTECT_FILES ||
		       protection == COOP_PROTECT_IDENTITY;

	*ret = 0;
	if (host->probe_error) {
		(void)snprintf(ret, COOP_REMEDY_MAX,
			       "nothing could be tried (%s): start the keeper again where it may "
			       "start programs",
			       coop_err_errno_name(host->probe_error));
		return;
	}
	for (const enum coop_facility *part = parts[protection];
	     wanting && *part != NOTHING && !*ret; part++)
		if (host->can->error[*part])
			mend(*part, host->can->error[*part], ret);
	if (grouped && strength != COOP_ENFORCED)
		coop_remedy_groups(host, ret);
}
