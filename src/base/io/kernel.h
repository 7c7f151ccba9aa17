/* System calls that the C library of Debian 12 does not wrap, with their constants. For the child's
 * half: each returns as the kernel does, -1 with errno. */
#ifndef COOP_BASE_KERNEL_H
#define COOP_BASE_KERNEL_H

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ull
#endif

/* <linux/mount.h> and <sys/mount.h> cannot be included together; these are of the latter. */
#define COOP_MS_PRIVATE (1u << 18)
#define COOP_MNT_DETACH 2

static inline int coop_open_tree(int folder, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, folder, path, flags);
}

/* Puts the mount that `tree` holds on what `target` names; both are fds. */
static inline int coop_move_mount(int tree, int target)
{
	return (int)syscall(SYS_move_mount, tree, "", target, "",
			    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

static inline int coop_mount_setattr(int fd, unsigned flags, uint64_t set, uint64_t clear,
				     uint64_t propagation)
{
	struct mount_attr attributes = {
		.attr_set = set, .attr_clr = clear, .propagation = propagation};

	return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | flags, &attributes,
			    sizeof attributes);
}

/* Opens a path that lies below `root`, following no link of any kind, as a mere name. */
static inline int coop_look(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH,
	};

	while (*path == '/')
		path++;
	return (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof how);
}

#endif
