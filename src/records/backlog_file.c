#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "records/backlog.h"

#define SAVED "backlog"
#define SAVING "backlog.new"
#define MAGIC UINT64_C(0x31776f6c6b636162) /* another than that of the memory */

/* Before each entry in the file; the first one of the file has the lane COOP_LANE_COUNT and the
 * magic as its number. */
struct mark {
	uint32_t lane, size;
	uint64_t number;
};

static int write_all(int fd, const void *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes = (const uint8_t *)bytes + n;
		size -= (size_t)n;
	}
	return 0;
}

static int write_lane(const struct coop_backlog *backlog, enum coop_lane lane, int fd)
{
	struct coop_backlog_entry entry;
	uint64_t at = 0, end = coop_backlog_end(backlog, lane);
	int r;

	while ((r = coop_backlog_next(backlog, lane, &at, end, &entry)) > 0) {
		struct mark mark = {
			.lane = lane, .size = (uint32_t)entry.size, .number = entry.number};
		r = write_all(fd, &mark, sizeof mark);
		if (r == 0)
			r = write_all(fd, entry.bytes, entry.size);
		if (r < 0)
			return r;
	}
	return r;
}

int coop_backlog_save(const struct coop_backlog *backlog, const char *state_dir)
{
	const struct mark first = {.lane = COOP_LANE_COUNT, .number = MAGIC};
	char path[4200], final[4200];
	size_t waiting = 0;

	for (enum coop_lane i = 0; i < COOP_LANE_COUNT; i++)
		waiting += coop_backlog_waiting(backlog, i);
	if (*coop_backlog_path(backlog) || !waiting)
		return 0;
	(void)snprintf(path, sizeof path, "%s/" SAVING, state_dir);
	(void)snprintf(final, sizeof final, "%s/" SAVED, state_dir);
	(void)unlink(path);
	COOP_AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int r = write_all(fd, &first, sizeof first);
	for (enum coop_lane i = 0; r == 0 && i < COOP_LANE_COUNT; i++)
		r = write_lane(backlog, i, fd);
	if (r == 0 && (fsync(fd) < 0 || rename(path, final) < 0))
		r = -errno;
	if (r < 0)
		(void)unlink(path);
	return r;
}

/* 1 with the bytes, 0 at the end of the file or where it is no such file, or -errno. */
static int read_mark(int fd, struct mark *ret, uint8_t **ret_bytes)
{
	ssize_t n = read(fd, ret, sizeof *ret);

	if (n < 0)
		return -errno;
	if (n != (ssize_t)sizeof *ret || ret->size > COOP_BACKLOG_BYTES)
		return 0;
	uint8_t *bytes = coop_mem_alloc(ret->size);
	if (!bytes)
		return -ENOMEM;
	for (size_t have = 0; have < ret->size; have += (size_t)n) {
		n = read(fd, bytes + have, ret->size - have);
		if (n > 0)
			continue;
		int error = n < 0 ? -errno : 0;
		free(bytes);
		return error;
	}
	*ret_bytes = bytes;
	return 1;
}

int coop_backlog_load(struct coop_backlog *backlog, const char *state_dir)
{
	char path[4200];
	struct mark mark;
	uint8_t *bytes = NULL;
	int r;

	(void)snprintf(path, sizeof path, "%s/" SAVED, state_dir);
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	for (bool begun = false; (r = read_mark(fd, &mark, &bytes)) > 0; begun = true) {
		if (begun && mark.lane < COOP_LANE_COUNT)
			(void)coop_backlog_put(backlog, mark.lane, mark.number, bytes, mark.size,
					       0);
		free(bytes);
		if (!begun && (mark.lane != COOP_LANE_COUNT || mark.number != MAGIC))
			break;
	}
	return r < 0 ? r : 0;
}

void coop_backlog_forget(const char *state_dir)
{
	char path[4200];

	(void)snprintf(path, sizeof path, "%s/" SAVED, state_dir);
	(void)unlink(path);
}
