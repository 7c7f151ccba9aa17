#include "launcher/probe.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/kernel.h"
#include "sandbox/child/identity.h"
#include "sandbox/child/landlock.h"
#include "sandbox/child/namespaces.h"
#include "sandbox/child/view.h"
#include "sandbox/filter/filter.h"
#include "sandbox/layout/host.h"

static const struct coop_filters *known_filters;

static int enter(int namespaces)
{
	uint32_t uid = geteuid(), gid = getegid();
	int r = unshare(CLONE_NEWUSER | namespaces) < 0 ? -errno : 0;

	return r < 0 ? r : coop_identity_map(uid, uid, gid, gid);
}

static int try_userns(void)
{
	return enter(0);
}

static int try_nested(void)
{
	int r = enter(0);

	return r < 0 ? r : enter(CLONE_NEWNS);
}

static int wait_for(pid_t child)
{
	int status;

	if (child < 0)
		return -errno;
	if (waitpid(child, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EFAULT;
}

/* Runs one in a child. 0 or -errno. */
static int attempt(int (*try)(void))
{
	pid_t child = fork();

	if (child == 0)
		_exit(-try());
	return wait_for(child);
}

static int build(const struct coop_plan_op *ops, uint32_t count, const char *text)
{
	struct coop_view view;
	uint32_t failed;

	coop_view_init(&view);
	view.text = text;
	return coop_view_build(&view, ops, count, &failed);
}

static int mount_proc(void)
{
	static const struct coop_plan_op ops[] = {{.kind = COOP_OP_PROC, .fd = -1}};

	return build(ops, 1, "/proc");
}

static int try_pidns(void)
{
	int r = enter(CLONE_NEWPID | CLONE_NEWNS);

	return r < 0 ? r : attempt(mount_proc);
}

static int try_netns(void)
{
	int r = enter(CLONE_NEWNET);

	return r < 0 ? r : coop_namespaces_loopback();
}

static int try_ipcns(void)
{
	return enter(CLONE_NEWIPC | CLONE_NEWUTS);
}

static int try_mount(void)
{
	static const struct coop_plan_op ops[] = {
		{.kind = COOP_OP_ROOT_READONLY, .fd = -1},
		{.kind = COOP_OP_TMPFS, .fd = -1, .size = 65536, .inodes = 16, .mode = 01777},
	};
	int r = enter(CLONE_NEWNS);

	return r < 0 ? r : build(ops, 2, "/tmp");
}

static int try_overlay(void)
{
	static const char text[] = "/tmp\0/tmp/under\0.hidden";
	static const struct coop_plan_op ops[] = {
		{.kind = COOP_OP_TMPFS, .fd = -1, .size = 65536, .inodes = 64, .mode = 0700},
		{.kind = COOP_OP_FOLDER, .fd = -1, .path = 5, .mode = 0700},
	};
	static const struct coop_plan_op layer[] = {{.kind = COOP_OP_LAYER,
						     .fd = -1,
						     .path = 5,
						     .size = 65536,
						     .inodes = 64,
						     .data = 16,
						     .count = 1}};
	int r = enter(CLONE_NEWNS);

	r = r < 0 ? r : build(ops, 2, text);
	/* A view of its own: what the first made is a source now. */
	return r < 0 ? r : build(layer, 1, text);
}

static int try_landlock(void)
{
	return coop_landlock_abi() ? 0 : -ENOSYS;
}

static int try_no_new_privs(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int try_seccomp(void)
{
	int r = try_no_new_privs();

	if (r == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0,
			      &known_filters->program[COOP_FILTER_STANDARD]) < 0)
		r = -errno;
	return r;
}

_Noreturn void coop_probe(const struct coop_filters *filters)
{
	static int (*const tries[COOP_FACILITY_COUNT])(void) = {
		[COOP_CAN_USERNS] = try_userns,   [COOP_CAN_NESTED] = try_nested,
		[COOP_CAN_PIDNS] = try_pidns,     [COOP_CAN_NETNS] = try_netns,
		[COOP_CAN_IPCNS] = try_ipcns,     [COOP_CAN_MOUNT] = try_mount,
		[COOP_CAN_OVERLAY] = try_overlay, [COOP_CAN_LANDLOCK] = try_landlock,
		[COOP_CAN_SECCOMP] = try_seccomp, [COOP_CAN_NO_NEW_PRIVS] = try_no_new_privs,
	};
	struct coop_host host = {
		.uid = geteuid(), .gid = getegid(), .landlock_abi = coop_landlock_abi()};

	known_filters = filters;
	for (int i = 0; i < COOP_FACILITY_COUNT; i++)
		host.error[i] = tries[i] ? -attempt(tries[i]) : 0;
	(void)send(COOP_LAUNCHER_FD_SOCKET, &host, sizeof host, MSG_NOSIGNAL);
	_exit(0);
}
