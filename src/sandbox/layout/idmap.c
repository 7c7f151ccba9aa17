#include "sandbox/layout/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/kernel.h"

#define LAST_ID UINT32_C(0xfffffffe)
#define STACK_SIZE 16384

/* Lives only for its namespace; shares our memory and touches none of it. */
_Noreturn static int sleep_on(void *user)
{
	(void)user;
	for (;;)
		(void)syscall(SYS_pause);
}

static int write_file(pid_t pid, const char *name, const char *text)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	COOP_AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

/* `from` on disk is `to` here, and all others but 0 are themselves. */
static void wide_map(uint32_t from, uint32_t to, char *ret, size_t size)
{
	uint32_t low = from < to ? from : to, high = from < to ? to : from;
	const uint32_t gaps[][2] = {{1, low}, {low + 1, high}, {high + 1, LAST_ID + 1}};
	int n = snprintf(ret, size, "%u %u 1\n", from, to);

	for (size_t i = 0; i < 3 && n > 0 && (size_t)n < size; i++) {
		uint32_t first = gaps[i][0], end = gaps[i][1];
		if (first && first < end)
			n += snprintf(ret + n, size - (size_t)n, "%u %u %u\n", first, first,
				      end - first);
	}
}

static int write_map(pid_t pid, const char *name, uint32_t from, uint32_t to)
{
	char text[256];

	wide_map(from, to, text, sizeof text);
	int r = write_file(pid, name, text);
	if (r == 0)
		return 0;
	/* In a container not all ids are ours to give. */
	(void)snprintf(text, sizeof text, "%u %u 1\n", from, to);
	return write_file(pid, name, text);
}

static int make_map(const struct stat *owner, uint32_t uid, uint32_t gid)
{
	static _Alignas(16) char stack[STACK_SIZE];
	char path[64];
	/* Our memory, whatever its size, is not copied for it. */
	pid_t pid = clone(sleep_on, stack + sizeof stack, CLONE_VM | CLONE_NEWUSER | SIGCHLD, NULL);

	if (pid < 0)
		return -errno;
	int r = write_map(pid, "uid_map", owner->st_uid, uid);
	if (r == 0)
		r = write_map(pid, "gid_map", owner->st_gid, gid);
	(void)snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
	if (r == 0)
		r = open(path, O_RDONLY | O_CLOEXEC);
	if (r == -1)
		r = -errno;
	(void)kill(pid, SIGKILL); /* our unreaped child */
	(void)waitpid(pid, NULL, 0);
	return r;
}

static int find_map(struct coop_idmaps *maps, const struct stat *owner, uint32_t uid, uint32_t gid)
{
	for (unsigned i = 0; i < maps->count; i++) {
		if (maps->entries[i].uid == owner->st_uid && maps->entries[i].gid == owner->st_gid)
			return maps->entries[i].fd;
	}
	int fd = make_map(owner, uid, gid);
	if (fd < 0)
		return fd;
	unsigned at =
		maps->count < COOP_IDMAPS_MAX ? maps->count++ : maps->next++ % COOP_IDMAPS_MAX;
	if (maps->entries[at].fd > 0)
		(void)close(maps->entries[at].fd);
	maps->entries[at].uid = owner->st_uid;
	maps->entries[at].gid = owner->st_gid;
	return maps->entries[at].fd = fd;
}

int coop_idmap_tree(struct coop_idmaps *maps, int folder, uint32_t uid, uint32_t gid)
{
	struct stat owner;

	if (fstat(folder, &owner) < 0)
		return -errno;
	int map = find_map(maps, &owner, uid, gid);
	if (map < 0)
		return map;
	COOP_AUTO_FD int tree = coop_open_tree(
		folder, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		.propagation = COOP_MS_PRIVATE,
		.userns_fd = (unsigned)map,
	};
	if (tree < 0 || syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE,
				&attributes, sizeof attributes) < 0)
		return -errno;
	return COOP_TAKE_FD(tree);
}

int coop_idmap_probe(struct coop_idmaps *maps, uint32_t uid, uint32_t gid)
{
	COOP_AUTO_FD int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	COOP_AUTO_FD int tree = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	struct stat owner = {0};
	int map = tree < 0 ? -errno : find_map(maps, &owner, uid, gid);
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP,
					.userns_fd = (unsigned)(map < 0 ? 0 : map)};

	if (map < 0)
		return map;
	return syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) <
			       0
		       ? -errno
		       : 0;
}

void coop_idmaps_clear(struct coop_idmaps *maps)
{
	for (unsigned i = 0; i < maps->count; i++)
		(void)close(maps->entries[i].fd);
	*maps = (struct coop_idmaps){0};
}
