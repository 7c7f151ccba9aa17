#include "keeper/core/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static int path_in(const char *dir, const char *name, char *ret_path, size_t size)
{
	int n = snprintf(ret_path, size, "%s/%s", dir, name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* Written whole beside the old file and renamed: a keeper that dies in the middle leaves the old
 * number, and no id beyond that has been given. */
int coop_ids_reserve(const char *dir, uint64_t limit)
{
	char path[4200], fresh[4200], text[32];
	int r = path_in(dir, "next-id", path, sizeof path);

	if (r == 0)
		r = path_in(dir, "next-id.new", fresh, sizeof fresh);
	if (r < 0)
		return r;
	COOP_AUTO_FD int fd =
		open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int size = snprintf(text, sizeof text, "%llu\n", (unsigned long long)limit);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, (size_t)size);
	if (n != size)
		return n < 0 ? -errno : -ENOSPC;
	return fsync(fd) < 0 || rename(fresh, path) < 0 ? -errno : 0;
}

/* Anything but what is written above is damage: to begin anew would give ids a second time. */
static int read_counter(const char *dir, uint64_t *ret)
{
	char path[4200], text[32], *end;
	int r = path_in(dir, "next-id", path, sizeof path);

	if (r < 0)
		return r;
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		*ret = 1;
		return errno == ENOENT ? 0 : -errno;
	}
	ssize_t n = read(fd, text, sizeof text - 1);
	if (n < 0)
		return -errno;
	text[n] = 0;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || end == text || *end != '\n' || value == 0 || value > UINT64_MAX / 2)
		return -EBADMSG;
	*ret = value;
	return 0;
}

int coop_ids_open(const char *dir, uint64_t *ret_next)
{
	uint64_t next;
	int r = read_counter(dir, &next);

	if (r == 0)
		r = coop_ids_reserve(dir, next + COOP_IDS_BLOCK);
	if (r == 0)
		*ret_next = next;
	return r;
}
