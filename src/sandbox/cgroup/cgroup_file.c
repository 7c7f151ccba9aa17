#include "sandbox/cgroup/cgroup_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "sandbox/cgroup/controller.h"

/* What was killed is gone in some milliseconds, unless a disk or a network holds it. */
#define DYING_TRIES 400
#define DYING_PAUSE_NS 5000000L

int coop_cgfile_join(const char *folder, const char *name, char *ret, size_t size)
{
	int n = snprintf(ret, size, "%s/%s", folder, name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int coop_cgfile_write(const char *folder, const char *name, const char *text)
{
	char path[COOP_CG_PATH_MAX];
	size_t size = strlen(text);
	ssize_t n;

	if (coop_cgfile_join(folder, name, path, sizeof path) < 0)
		return -ENAMETOOLONG;
	COOP_AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do
		n = write(fd, text, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int coop_cgfile_write_number(const char *folder, const char *name, int64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRId64, number);
	return coop_cgfile_write(folder, name, text);
}

ssize_t coop_cgfile_read(const char *folder, const char *name, char *ret, size_t size)
{
	char path[COOP_CG_PATH_MAX];
	ssize_t n;

	if (coop_cgfile_join(folder, name, path, sizeof path) < 0)
		return -ENAMETOOLONG;
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do
		n = read(fd, ret, size - 1);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	ret[n] = 0;
	return n;
}

char *coop_cgfile_read_all(const char *path)
{
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct coop_buf buf = {0};
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0) {
		uint8_t *to = coop_buf_reserve(&buf, 4096);
		if (!to) {
			errno = ENOMEM;
			n = -1;
			break;
		}
		n = read(fd, to, 4095);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			coop_buf_commit(&buf, (size_t)n);
		else if (n == 0)
			*to = 0;
	}
	if (n < 0) {
		int saved = errno;
		coop_buf_clear(&buf);
		errno = saved;
		return NULL;
	}
	/* Nothing was consumed: the data begin where the memory begins. */
	return (char *)buf.data;
}

uint64_t coop_cgfile_number(const char *text, const char *key)
{
	size_t size = key ? strlen(key) : 0;

	if (!key)
		return strtoull(text, NULL, 10);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, size) && line[size] == ' ')
			return strtoull(line + size + 1, NULL, 10);
	}
	return 0;
}

int coop_cgfile_make(const char *path)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

int coop_cgfile_procs(const char *folder, int (*each)(pid_t pid, void *context), void *context)
{
	char path[COOP_CG_PATH_MAX];

	if (coop_cgfile_join(folder, "cgroup.procs", path, sizeof path) < 0)
		return -ENAMETOOLONG;
	COOP_AUTO_FREE char *text = coop_cgfile_read_all(path);
	if (!text)
		return -errno;
	for (char *line = text, *end; *line; line = *end ? end + 1 : end) {
		long pid = strtol(line, &end, 10);
		if (end == line)
			break;
		int r = each((pid_t)pid, context);
		if (r != 0)
			return r;
	}
	return 0;
}

int coop_cgfile_folders(const char *folder, int (*each)(const char *path, void *context),
			void *context)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		char path[COOP_CG_PATH_MAX];
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		r = coop_cgfile_join(folder, entry->d_name, path, sizeof path);
		if (r == 0)
			r = each(path, context);
	}
	(void)closedir(dir);
	return r;
}

static int kill_one(pid_t pid, void *context)
{
	/* 0 stands for one that this PID namespace does not see. */
	if (pid > 1 && pid != getpid())
		(void)kill(pid, SIGKILL);
	return 0;
}

static int kill_below(const char *path, void *spare)
{
	if (spare && !strcmp(strrchr(path, '/') + 1, spare))
		return 0;
	/* Version 2 does it at once and for those below, too; nothing that forks meanwhile gets
	 * away. */
	if (coop_cgfile_write(path, "cgroup.kill", "1") < 0) {
		(void)coop_cgfile_procs(path, kill_one, NULL);
		(void)coop_cgfile_folders(path, kill_below, NULL);
	}
	/* A freezer of version 1 keeps even the killed. */
	(void)coop_cgfile_write(path, "freezer.state", "THAWED");
	return 0;
}

static int remove_below(const char *path, void *spare)
{
	if (spare && !strcmp(strrchr(path, '/') + 1, spare))
		return 0;
	int r = coop_cgfile_folders(path, remove_below, NULL);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

int coop_cgfile_remove_tree(const char *folder, const char *spare,
			    enum coop_cgfile_patience patience)
{
	void *context = (void *)(uintptr_t)spare;
	int r = -EBUSY, tries = patience == COOP_CGFILE_WAIT ? DYING_TRIES : 1;

	for (int i = 0; r == -EBUSY && i < tries; i++) {
		if (i > 0)
			(void)nanosleep(&(struct timespec){.tv_nsec = DYING_PAUSE_NS}, NULL);
		/* Empty ones go without a word to anybody; the rest is killed, again and again, for
		 * as long as something is there. */
		r = spare ? coop_cgfile_folders(folder, remove_below, context)
			  : remove_below(folder, NULL);
		if (r == -EBUSY && spare)
			(void)coop_cgfile_folders(folder, kill_below, context);
		else if (r == -EBUSY)
			(void)kill_below(folder, NULL);
	}
	return r == -ENOENT ? 0 : r;
}
