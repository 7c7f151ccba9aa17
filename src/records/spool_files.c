#include "records/spool_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/paths.h"
#include "base/mem.h"

#define SPARE_MAX (64u << 20) /* of a small disk an eighth */
#define SPARE_PART 8u

int coop_spool_files_name(struct coop_spool_files *files, const char *folder, unsigned streams)
{
	static const char *const names[COOP_SPOOL_FILES] = {"output", "stdout", "stderr", "pty"};
	unsigned long long random;
	char path[4224];

	if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
		return -EIO;
	for (unsigned i = 0; i < COOP_SPOOL_FILES; i++) {
		if (!(streams & 1u << i))
			continue;
		(void)snprintf(path, sizeof path, "%s/%016llx.%s", folder, random, names[i]);
		files->paths[i] = coop_mem_strdup(path);
		if (!files->paths[i]) {
			coop_spool_files_clear(files);
			return -ENOMEM;
		}
	}
	return 0;
}

void coop_spool_files_clear(struct coop_spool_files *files)
{
	for (int i = 0; i < COOP_SPOOL_FILES; i++)
		free(COOP_TAKE_PTR(files->paths[i]));
}

static int make_file(const char *path)
{
	COOP_AUTO_FD int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : 0;
}

int coop_spool_files_make(const struct coop_spool_files *files, const char *folder)
{
	int r = coop_paths_make_dir(folder);

	for (int i = 0; r == 0 && i < COOP_SPOOL_FILES; i++) {
		if (files->paths[i])
			r = make_file(files->paths[i]);
	}
	if (r < 0)
		coop_spool_files_remove(files);
	return r;
}

void coop_spool_files_remove(const struct coop_spool_files *files)
{
	for (int i = 0; i < COOP_SPOOL_FILES; i++) {
		if (files->paths[i])
			(void)unlink(files->paths[i]);
	}
}

/* Whether the disk has as much as that, and what must stay. */
static bool has_room(int fd, size_t size)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0)
		return true;
	uint64_t part = (uint64_t)fs.f_blocks * fs.f_frsize / SPARE_PART;
	return (uint64_t)fs.f_bavail * fs.f_frsize >= size + (part < SPARE_MAX ? part : SPARE_MAX);
}

int coop_spool_files_append(const char *path, const uint8_t *bytes, size_t size)
{
	COOP_AUTO_FD int fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!has_room(fd, size))
		return -ENOSPC;
	while (size) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

size_t coop_spool_files_read(const char *path, uint64_t position, uint8_t *bytes, size_t size)
{
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	size_t have = 0;
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0 && have < size) {
		n = pread(fd, bytes + have, size - have, (off_t)(position + have));
		if (n > 0)
			have += (size_t)n;
	}
	return have;
}
