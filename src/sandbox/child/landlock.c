#include "sandbox/child/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The headers of Debian 12 stop at ABI 2. */
#define CREATE_RULESET 444
#define ADD_RULE 445
#define RESTRICT_SELF 446
#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1
#define ABI_MAX 7

#define FS_EXECUTE (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_MAKE_CHAR (1ull << 6)
#define FS_MAKE_BLOCK (1ull << 11)
#define FS_ABI_1 ((1ull << 13) - 1)
#define FS_REFER (1ull << 13)     /* ABI 2 */
#define FS_TRUNCATE (1ull << 14)  /* ABI 3 */
#define FS_IOCTL_DEV (1ull << 15) /* ABI 5 */
#define SCOPES_KNOWN 3u           /* ABI 6: abstract sockets, signals */

/* The kernel refuses other rights on what is no folder. */
#define FS_OF_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

struct ruleset_attributes {
	uint64_t fs;
	uint64_t net; /* ABI 4; ports are left to net namespaces */
	uint64_t scopes;
};

struct path_beneath {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

uint32_t coop_landlock_abi(void)
{
	long abi = syscall(CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);

	/* ABI 1 knows no right to rename between folders, and so refuses it always. */
	if (abi < 2)
		return 0;
	return abi < ABI_MAX ? (uint32_t)abi : ABI_MAX;
}

static uint64_t rights(uint32_t abi)
{
	uint64_t all = FS_ABI_1;

	if (abi >= 2)
		all |= FS_REFER;
	if (abi >= 3)
		all |= FS_TRUNCATE;
	if (abi >= 5)
		all |= FS_IOCTL_DEV;
	return all;
}

int coop_landlock_open(uint32_t abi, uint32_t scopes)
{
	struct ruleset_attributes attributes = {.fs = rights(abi)};
	size_t size = offsetof(struct ruleset_attributes, net);

	if (abi >= 4)
		size = offsetof(struct ruleset_attributes, scopes);
	if (abi >= 6) {
		size = sizeof attributes;
		attributes.scopes = scopes & SCOPES_KNOWN;
	}
	int fd = (int)syscall(CREATE_RULESET, &attributes, size, 0);
	return fd < 0 ? -errno : fd;
}

static uint64_t rights_of(enum coop_plan_access access)
{
	switch (access) {
	case COOP_ACCESS_READ:
		return FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
	case COOP_ACCESS_WRITE:
		return rights(ABI_MAX) & ~(FS_MAKE_CHAR | FS_MAKE_BLOCK);
	case COOP_ACCESS_DEVICES:
		return FS_READ_FILE | FS_WRITE_FILE | FS_READ_DIR | FS_IOCTL_DEV;
	case COOP_ACCESS_PROC:
		/* No writing: without mounts this is the host's own, with files of every process of
		 * the user. */
		return FS_READ_FILE | FS_READ_DIR;
	}
	return 0;
}

/* O_PATH with O_NOFOLLOW opens a link itself. */
static int refuse_link(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode))
		return fd;
	(void)close(fd);
	return -ELOOP;
}

/* One step down; the fd that it starts from is closed. */
static int step_down(int from, const char *name, size_t size)
{
	char component[NAME_MAX + 1];
	int fd = -1, error = ENAMETOOLONG;

	if (size <= NAME_MAX) {
		memcpy(component, name, size);
		component[size] = 0;
		fd = openat(from, component, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		error = errno;
	}
	(void)close(from);
	return fd < 0 ? -error : refuse_link(fd);
}

/* Name by name, where openat2 is refused: by the filter that a prepared process is already
 * under. */
static int walk(const char *path)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (fd >= 0 && *path) {
		size_t size = strcspn(path, "/");
		if (size)
			fd = step_down(fd, path, size);
		path += size + (path[size] == '/');
	}
	return fd;
}

/* Paths of a plan have no links; one that has become a link since is not followed. */
static int look_up(const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
	if (fd < 0)
		return errno == ENOSYS ? walk(path) : -errno;
	return refuse_link(fd);
}

static int allow(int ruleset, uint64_t allowed, int place)
{
	struct path_beneath rule = {.allowed = allowed, .parent = place};
	struct stat st;

	if (fstat(place, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.allowed &= FS_OF_FILES;
	if (!rule.allowed)
		return 0;
	return syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

int coop_landlock_allow(int ruleset, uint32_t abi, const char *path, enum coop_plan_access access)
{
	int place = look_up(path);

	/* What cannot be reached needs no permission, and what has become a link is not what was
	 * meant. */
	if (place == -ENOENT || place == -ENOTDIR || place == -EACCES || place == -ELOOP)
		return 0;
	if (place < 0)
		return place;
	int r = allow(ruleset, rights_of(access) & rights(abi), place);
	(void)close(place);
	return r;
}

int coop_landlock_allow_fd(int ruleset, uint32_t abi, int fd, enum coop_plan_access access)
{
	return allow(ruleset, rights_of(access) & rights(abi), fd);
}

int coop_landlock_enforce(int ruleset)
{
	return syscall(RESTRICT_SELF, ruleset, 0) < 0 ? -errno : 0;
}
