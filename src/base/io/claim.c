#include "base/io/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PID_TEXT 16

/* Locks of open file descriptions: unlike those of processes they outlive a fork, and nobody loses
 * one by opening and closing the file elsewhere. Unlike flock they can be asked for without being
 * taken, even for a moment in which somebody else would be turned away. */
static struct flock whole_file(void)
{
	return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

static int open_claim(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	return fd < 0 ? -errno : fd;
}

void coop_claim_name(int fd)
{
	char text[PID_TEXT];
	int size = snprintf(text, sizeof text, "%d\n", getpid());

	/* Without room on the disk others are told of a keeper without its number. */
	if (ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, text, (size_t)size, 0);
}

static int take(const char *path, int how, int *ret_fd)
{
	struct flock lock = whole_file();
	COOP_AUTO_FD int fd = open_claim(path, O_RDWR | O_CREAT);

	if (fd < 0)
		return fd;
	if (fcntl(fd, how, &lock) < 0)
		return errno == EACCES || errno == EAGAIN || errno == EINTR ? -EWOULDBLOCK : -errno;
	coop_claim_name(fd);
	*ret_fd = COOP_TAKE_FD(fd);
	return 0;
}

int coop_claim_take(const char *path, int *ret_fd)
{
	return take(path, F_OFD_SETLK, ret_fd);
}

int coop_claim_wait(const char *path, int *ret_fd)
{
	return take(path, F_OFD_SETLKW, ret_fd);
}

/* One number and a line's end, as coop_claim_name() writes it. Whatever else stands there is not
 * said to anybody. */
static pid_t read_pid(int fd)
{
	char text[PID_TEXT];
	ssize_t n = pread(fd, text, sizeof text - 1, 0);

	if (n < 2 || text[n - 1] != '\n')
		return 0;
	text[n - 1] = 0;
	if (strspn(text, "0123456789") != (size_t)n - 1 || n - 1 > 9)
		return 0;
	return (pid_t)strtol(text, NULL, 10);
}

bool coop_claim_held(const char *path, pid_t *ret_pid)
{
	struct flock lock = whole_file();
	COOP_AUTO_FD int fd = open_claim(path, O_RDONLY);

	if (fd < 0 || fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
		return false;
	*ret_pid = read_pid(fd);
	return true;
}
