#include "keeper/process/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "keeper/core/keeper.h"
#include "keeper/core/meters.h"

/* The kernel adds it: a child cannot say that it is somebody else. */
static pid_t sender_of(struct msghdr *header)
{
	struct ucred who = {0};

	for (struct cmsghdr *item = CMSG_FIRSTHDR(header); item; item = CMSG_NXTHDR(header, item)) {
		if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_CREDENTIALS)
			memcpy(&who, CMSG_DATA(item), sizeof who);
	}
	return who.pid;
}

/* 1: a message; 0: the end; -1: nothing now. */
static int receive(struct coop_wire *wire, struct coop_plan_status *ret, pid_t *ret_sender)
{
	union {
		struct cmsghdr header; /* for its alignment */
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec part = {.iov_base = ret, .iov_len = sizeof *ret};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = control.bytes,
				.msg_controllen = sizeof control.bytes};
	ssize_t n;

	/* A child that leaves before it has read all that was sent to it resets the channel. What
	 * it said is still there. */
	do
		n = recvmsg(wire->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && errno == EAGAIN)
		return -1;
	if (n != (ssize_t)sizeof *ret)
		return 0;
	*ret_sender = sender_of(&header);
	return 1;
}

/* A handler may close the wire, or end the process that it is about: looked at before each
 * message. */
void coop_wire_drain(struct coop_wire *wire)
{
	struct coop_plan_status message;
	pid_t sender = 0;

	while (!wire->closed && !wire->over) {
		int r = receive(wire, &message, &sender);
		if (r < 0)
			return;
		if (r > 0) {
			wire->on_message(wire, &message, sender);
			continue;
		}
		wire->over = true;
		(void)uv_poll_stop(&wire->poll);
		wire->on_end(wire);
	}
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct coop_wire *wire = poll->data;

	(void)status;
	(void)events;
	coop_meters_of(wire->keeper)->wakeups++;
	coop_wire_drain(wire);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* Before the other end is given away: a message sent earlier would come without its sender's
 * pid. */
static int watch(struct coop_wire *wire)
{
	int on = 1, r = 0;

	if (setsockopt(wire->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
		r = -errno;
	if (r == 0)
		r = uv_poll_init(coop_loop_of(wire->keeper), &wire->poll, wire->fd);
	if (r < 0)
		return r;
	wire->poll.data = wire;
	return uv_poll_start(&wire->poll, UV_READABLE, on_readable);
}

struct coop_wire *coop_wire_new(struct coop_keeper *keeper, int *ret_theirs, int *ret_error)
{
	struct coop_wire *wire = coop_mem_zalloc(sizeof *wire);
	int pair[2];

	*ret_error = ENOMEM;
	if (!wire)
		return NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		*ret_error = errno;
		free(wire);
		return NULL;
	}
	*wire = (struct coop_wire){.keeper = keeper, .fd = pair[0]};
	int r = coop_keeper_fd_allowed(keeper, pair[1]) ? watch(wire) : -EMFILE;
	if (r < 0) {
		(void)close(pair[0]);
		(void)close(pair[1]);
		*ret_error = -r;
		free(wire);
		return NULL;
	}
	*ret_theirs = pair[1];
	return wire;
}

void coop_wire_usage(const struct coop_plan_status *message, struct rusage *ret)
{
	*ret = (struct rusage){
		.ru_utime = {.tv_sec = (time_t)(message->cpu_ns / 1000000000u),
			     .tv_usec = (suseconds_t)(message->cpu_ns % 1000000000u / 1000u)},
		.ru_maxrss = (long)(message->peak_bytes / 1024),
	};
}

/* The handle lives until the loop has closed it, and the struct with it. */
void coop_wire_close(struct coop_wire *wire)
{
	if (!wire || wire->closed)
		return;
	wire->closed = true;
	uv_close((uv_handle_t *)&wire->poll, on_closed);
	(void)close(wire->fd);
}
