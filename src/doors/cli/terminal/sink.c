#include "doors/cli/terminal/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_sink_init(struct cli_sink *sink, int fd)
{
	*sink = (struct cli_sink){.fd = fd, .own_fd = fd};
}

void cli_sink_free(struct cli_sink *sink)
{
	if (sink->own_fd != sink->fd)
		(void)close(sink->own_fd);
	sink->own_fd = sink->fd;
	coop_buf_clear(&sink->waiting);
}

/* O_NONBLOCK belongs to the open file description, which stdout shares with the shell and everybody
 * else on it. So a pipe or terminal is opened once more for ourselves. A file is not: its position
 * would be shared no longer. */
static void find_kind(struct cli_sink *sink)
{
	struct stat st;
	char path[32];
	if (fstat(sink->fd, &st) < 0 || S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)) {
		sink->kind = CLI_SINK_BLOCKING;
		return;
	}
	if (S_ISSOCK(st.st_mode)) {
		sink->kind = CLI_SINK_SOCKET;
		return;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", sink->fd);
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		sink->own_fd = fd;
	sink->kind = fd >= 0 ? CLI_SINK_NONBLOCKING : CLI_SINK_PIECES;
}

/* A blocking pipe that poll calls writable takes at least PIPE_BUF bytes. */
static ssize_t write_piece(int fd, const void *data, size_t size)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLOUT};
	if (poll(&pollfd, 1, 0) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(fd, data, size < 4096 ? size : 4096);
}

static ssize_t write_some(struct cli_sink *sink, const void *data, size_t size)
{
	switch (sink->kind) {
	case CLI_SINK_SOCKET:
		return send(sink->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	case CLI_SINK_PIECES:
		return write_piece(sink->fd, data, size);
	case CLI_SINK_BLOCKING:
	case CLI_SINK_NONBLOCKING:
	case CLI_SINK_UNKNOWN:
		break;
	}
	return write(sink->own_fd, data, size);
}

/* Writes until it is all written, there is no room, or it fails. Gives how much was taken. */
static size_t write_now(struct cli_sink *sink, const char *data, size_t size)
{
	size_t taken = 0;
	while (taken < size) {
		ssize_t n = write_some(sink, data + taken, size - taken);
		if (n >= 0) {
			taken += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			break;
		sink->error = errno;
		coop_buf_clear(&sink->waiting);
		break;
	}
	return taken;
}

void cli_sink_write(struct cli_sink *sink, const void *data, size_t size)
{
	if (sink->error)
		return;
	if (sink->kind == CLI_SINK_UNKNOWN)
		find_kind(sink);
	size_t taken = cli_sink_waiting(sink) ? 0 : write_now(sink, data, size);
	if (taken < size && !sink->error &&
	    coop_buf_append(&sink->waiting, (const char *)data + taken, size - taken) < 0)
		sink->error = ENOMEM;
}

void cli_sink_flush(struct cli_sink *sink)
{
	if (cli_sink_waiting(sink) == 0)
		return;
	size_t taken = write_now(sink, (const char *)coop_buf_front(&sink->waiting),
				 cli_sink_waiting(sink));
	if (!sink->error)
		coop_buf_consume(&sink->waiting, taken);
}
