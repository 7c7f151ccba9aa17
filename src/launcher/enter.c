#include "launcher/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/child/identity.h"
#include "sandbox/child/namespaces.h"

int coop_enter_parse(char *const *argv, struct coop_enter *ret)
{
	for (int i = 1; i <= 5; i++) {
		if (!argv[i])
			return -EINVAL;
	}
	*ret = (struct coop_enter){
		.kind = (enum coop_launcher_kind)atoi(argv[1]),
		.change_ids = strcmp(argv[2], "-") != 0,
		.uid = (uint32_t)strtoul(argv[2], NULL, 10),
		.gid = (uint32_t)strtoul(argv[3], NULL, 10),
		.doors = atoi(argv[4]),
		.join = !strcmp(argv[5], "join"),
	};
	return 0;
}

/* Writing takes the kernel milliseconds; here nobody waits for it. */
static int enter_groups(int count)
{
	for (int i = 0; i < count; i++) {
		if (write(COOP_LAUNCHER_FD_DOORS + i, "0", 1) < 0)
			return -errno;
		(void)close(COOP_LAUNCHER_FD_DOORS + i);
	}
	return 0;
}

int coop_enter_identity(const struct coop_enter *enter, char **argv)
{
	char unchanged[] = "-", none[] = "0", *envp[] = {NULL};
	int r = enter_groups(enter->doors);

	if (r < 0 || !enter->change_ids)
		return r;
	/* The kernel's own calls: the C library's would concern threads that there are none of. */
	if (syscall(SYS_setgroups, 0, NULL) < 0 ||
	    syscall(SYS_setresgid, enter->gid, enter->gid, enter->gid) < 0 ||
	    syscall(SYS_setresuid, enter->uid, enter->uid, enter->uid) < 0)
		return -errno;
	/* A change of ids makes a process one that nobody may look into, not even itself: its
	 * children could not write their own maps of ids. To be executed anew takes that away. */
	argv[2] = argv[3] = unchanged;
	argv[4] = none;
	(void)syscall(SYS_execveat, COOP_LAUNCHER_FD_IMAGE, "", argv, envp, AT_EMPTY_PATH);
	return -errno;
}

int coop_enter_namespaces(const struct coop_enter *enter)
{
	uint32_t uid = geteuid(), gid = getegid();
	int r = 0;

	if (enter->join)
		return setns(COOP_LAUNCHER_FD_USERNS, CLONE_NEWUSER) < 0 ? -errno : 0;
	if (unshare(CLONE_NEWUSER) < 0)
		r = -errno;
	if (r == 0)
		r = coop_identity_map(uid, uid, gid, gid);
	/* All sandboxes together leave a quarter to what else the user runs. */
	struct coop_user_counts counts;
	coop_namespaces_counts(&counts);
	counts.instances -= counts.instances / 4;
	counts.watches -= counts.watches / 4;
	if (r == 0)
		coop_namespaces_bound_here(&counts, false);
	return r;
}
