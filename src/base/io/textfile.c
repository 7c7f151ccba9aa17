#include "base/io/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PIECE 16384u

/* One more byte than `max` is asked for: only that tells whether there is more. */
static int read_all(int fd, size_t max, struct coop_buf *ret)
{
	for (size_t left = max + 1; left;) {
		size_t size = left < PIECE ? left : PIECE;
		uint8_t *room = coop_buf_reserve(ret, size);
		if (!room)
			return -ENOMEM;
		ssize_t n = read(fd, room, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return coop_buf_append(ret, "", 1);
		coop_buf_commit(ret, (size_t)n);
		left -= (size_t)n;
	}
	ret->data[ret->tail - 1] = 0;
	return -EFBIG;
}

int coop_textfile_read(const char *path, size_t max, struct coop_buf *ret)
{
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t before = coop_buf_size(ret);

	if (fd < 0)
		return -errno;
	int r = read_all(fd, max, ret);
	/* What is in front of it may have been moved, but is of the same size. */
	if (r < 0 && r != -EFBIG)
		ret->tail = ret->head + before;
	return r;
}
