#include "sandbox/layout/silence.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"

#define LINKS_MAX 40 /* the kernel follows no more */

/* Somebody else answers for them: a server, a host, a program. With what stands behind a dot as in
 * "fuse.sshfs". */
static const char *const silent_kinds[] = {
	"9p",      "afs",  "autofs", "beegfs",   "ceph",   "cifs",   "coda",   "davfs", "fuse",
	"fuseblk", "gfs2", "gpfs",   "lustre",   "ncpfs",  "nfs",    "nfs4",   "ocfs2", "orangefs",
	"prl_fs",  "smb3", "smbfs",  "virtiofs", "vboxsf", "vmhgfs", "wekafs",
};

/* The kernel answers for them from memory, also where it has to look. */
static const char *const memory_kinds[] = {
	"cgroup", "cgroup2", "devtmpfs", "proc", "ramfs", "sysfs", "tmpfs",
};

static bool is_of(const char *const *kinds, size_t count, const char *type)
{
	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(kinds[i]);
		if (!strncmp(type, kinds[i], size) && (!type[size] || type[size] == '.'))
			return true;
	}
	return false;
}

static bool can_be_silent(const struct coop_mount *mount)
{
	/* Where that is the root nothing works without it, the keeper neither. */
	return mount->point[1] &&
	       is_of(silent_kinds, sizeof silent_kinds / sizeof silent_kinds[0], mount->type);
}

static void forget(struct coop_silence *silence)
{
	coop_mountinfo_clear(&silence->table);
	free(silence->points);
	silence->points = NULL;
	silence->count = 0;
	silence->known = false;
}

static int list_points(struct coop_silence *silence)
{
	const struct coop_mountinfo *table = &silence->table;

	silence->points = coop_mem_alloc((table->count + 1) * sizeof *silence->points);
	if (!silence->points)
		return -ENOMEM;
	for (size_t i = 0; i < table->count; i++) {
		if (can_be_silent(&table->mounts[i]))
			silence->points[silence->count++] = table->mounts[i].point;
	}
	return 0;
}

/* The kernel tells of a change to each descriptor once, by a priority event. */
static bool has_changed(const struct coop_silence *silence)
{
	struct pollfd wait = {.fd = silence->fd, .events = POLLPRI};

	return !silence->watched || poll(&wait, 1, 0) != 0;
}

void coop_silence_refresh(struct coop_silence *silence)
{
	/* Opened before the table is read: what changes in between is told. */
	if (!silence->watched) {
		silence->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
		silence->watched = silence->fd >= 0;
	}
	if (!has_changed(silence) && silence->known)
		return;
	/* What cannot be read now, for want of memory or descriptors, is read the next time. Until
	 * then no mount is known; what the kernel has not at hand is still not waited for. */
	forget(silence);
	silence->generation++;
	silence->known = coop_mountinfo_read(&silence->table) == 0 && list_points(silence) == 0;
	if (!silence->known)
		forget(silence);
}

void coop_silence_clear(struct coop_silence *silence)
{
	forget(silence);
	if (silence->watched)
		(void)close(silence->fd);
	silence->watched = false;
}

bool coop_silence_holds(const struct coop_silence *silence, const char *path)
{
	for (size_t i = 0; i < silence->count; i++) {
		if (coop_path_below(path, silence->points[i]))
			return true;
	}
	return false;
}

static bool in_memory(const struct coop_silence *silence, const char *folder)
{
	const struct coop_mount *mount = coop_mountinfo_find(&silence->table, folder);

	return mount &&
	       is_of(memory_kinds, sizeof memory_kinds / sizeof memory_kinds[0], mount->type);
}

static int open_path(const char *path, int flags, unsigned resolve)
{
	struct open_how how = {.flags = (unsigned)(O_PATH | O_CLOEXEC | flags), .resolve = resolve};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);

	if (fd >= 0)
		return fd;
	/* Refused by a filter that knows no such call: then nothing is at hand. */
	return errno == ENOSYS || errno == EPERM || errno == EINVAL ? -EAGAIN : -errno;
}

/* A descriptor of the path, which has no link on the way; one at its end is opened itself with
 * O_NOFOLLOW. -EAGAIN: it is not at hand. */
static int look(const char *path, int flags, bool cached)
{
	return open_path(path, flags, RESOLVE_NO_SYMLINKS | (cached ? RESOLVE_CACHED : 0u));
}

static bool is_link(int fd)
{
	struct statx status;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) == 0 &&
	       S_ISLNK(status.stx_mode);
}

/* One name further from the folder `at`, canonical. 0; 1: a link was followed; or -errno. */
static int step(const struct coop_silence *silence, const char *name, char *at, char *rest)
{
	char path[COOP_PATH_SIZE];

	if (coop_path_join(at, name, path) < 0)
		return -ENAMETOOLONG;
	if (coop_silence_holds(silence, path))
		return -EREMOTE;
	int r = look(path, O_NOFOLLOW, true);
	/* Of a name that is not there such file systems keep nothing. */
	if (r == -EAGAIN && in_memory(silence, at))
		r = look(path, O_NOFOLLOW, false);
	COOP_AUTO_FD int fd = r;
	if (fd < 0)
		return fd;
	if (!is_link(fd)) {
		memcpy(at, path, strlen(path) + 1);
		return 0;
	}
	/* Links of processes lead anywhere, by other mounts than ours. */
	if (coop_path_below(at, "/proc") && strcmp(at, "/proc") != 0)
		return -EREMOTE;
	r = coop_path_follow(path, at, rest);
	return r < 0 ? r : 1;
}

static int walk(const struct coop_silence *silence, const char *path, char at[COOP_PATH_SIZE])
{
	char rest[COOP_PATH_SIZE], name[COOP_PATH_SIZE];
	int n = snprintf(rest, sizeof rest, "%s", path), links = 0, r = 0;

	if (n < 0 || (size_t)n >= sizeof rest)
		return -ENAMETOOLONG;
	memcpy(at, "/", 2);
	while (r >= 0 && coop_path_cut(rest, name)) {
		r = 0;
		if (!strcmp(name, ".."))
			coop_path_parent(at, at);
		else if (strcmp(name, ".") != 0)
			r = step(silence, name, at, rest);
		if (r > 0 && ++links > LINKS_MAX)
			r = -ELOOP;
	}
	return r < 0 ? r : 0;
}

int coop_silence_resolve(const struct coop_silence *silence, const char *path,
			 char ret[COOP_PATH_SIZE])
{
	/* Mostly there is no link on the way, and one call says all. */
	if (coop_path_normal(path) && !coop_silence_holds(silence, path)) {
		int fd = look(path, 0, true);
		if (fd >= 0) {
			(void)close(fd);
			memcpy(ret, path, strlen(path) + 1);
			return 0;
		}
		if (fd != -ELOOP && fd != -EAGAIN)
			return fd;
	}
	return walk(silence, path, ret);
}

int coop_silence_ask(const struct coop_silence *silence, const char *path)
{
	char real[COOP_PATH_SIZE];

	/* With no mount that links must not lead into the kernel may follow them itself. It does
	 * not those of processes, which lead anywhere: it would have to look. */
	if (silence->known && !silence->count) {
		int fd = open_path(path, 0, RESOLVE_CACHED);
		if (fd >= 0)
			(void)close(fd);
		if (fd != -EAGAIN)
			return fd < 0 ? fd : 0;
	}
	return coop_silence_resolve(silence, path, real);
}

const char *coop_silence_below(const struct coop_silence *silence, const char *folder, size_t *at)
{
	while (*at < silence->count) {
		const char *point = silence->points[(*at)++];
		if (coop_path_below(point, folder))
			return point;
	}
	return NULL;
}
