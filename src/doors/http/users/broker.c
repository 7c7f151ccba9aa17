#include "doors/http/users/broker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/list.h"
#include "base/mem.h"
#include "doors/http/net/net.h"

struct ask {
	struct coop_link link;
	void (*done)(void *context, int fd);
	void *context;
	bool sent;
};

struct coop_broker {
	void (*gone)(void *context);
	void *context;
	uv_poll_t poll;
	int fd;                /* -1: the parent has left */
	struct coop_link asks; /* the answers come in the same order */
};

static void answer(struct coop_broker *broker, int fd)
{
	struct ask *ask = COOP_LIST_ITEM(broker->asks.next, struct ask, link);

	coop_list_remove(&ask->link);
	ask->done(ask->context, fd);
	free(ask);
}

static void on_poll(uv_poll_t *poll, int status, int events);

/* Sends what the pair takes. */
static void send_asks(struct coop_broker *broker)
{
	bool full = false;

	COOP_LIST_EACH(&broker->asks, link)
	{
		struct ask *ask = COOP_LIST_ITEM(link, struct ask, link);
		if (ask->sent || full)
			continue;
		ask->sent = send(broker->fd, "keeper", 6, MSG_DONTWAIT | MSG_NOSIGNAL) == 6;
		full = !ask->sent;
	}
	(void)uv_poll_start(&broker->poll, full ? UV_READABLE | UV_WRITABLE : UV_READABLE, on_poll);
}

static void leave(struct coop_broker *broker)
{
	if (broker->fd < 0)
		return;
	(void)uv_poll_stop(&broker->poll);
	(void)close(broker->fd);
	broker->fd = -1;
	while (!coop_list_empty(&broker->asks))
		answer(broker, -EPIPE);
	broker->gone(broker->context);
}

/* One answer: a byte that is 0 or an errno, and with 0 a descriptor. */
static bool take_answer(struct coop_broker *broker)
{
	unsigned char byte = 0;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control.room,
				 .msg_controllen = sizeof control.room};
	ssize_t n = recvmsg(broker->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd = -EIO;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		leave(broker);
		return false;
	}
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(header), sizeof fd);
	else if (byte)
		fd = -byte;
	if (!coop_list_empty(&broker->asks))
		answer(broker, fd);
	else if (fd >= 0)
		(void)close(fd);
	return true;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct coop_broker *broker = poll->data;

	while (broker->fd >= 0 && take_answer(broker))
		;
	if (broker->fd >= 0)
		send_asks(broker);
}

struct coop_broker *coop_broker_new(uv_loop_t *loop, int fd, void (*gone)(void *context),
				    void *context)
{
	struct coop_broker *broker = coop_mem_zalloc(sizeof *broker);

	if (!broker)
		return NULL;
	broker->gone = gone;
	broker->context = context;
	broker->fd = fd;
	coop_list_init(&broker->asks);
	if (uv_poll_init(loop, &broker->poll, fd) < 0) {
		free(broker);
		return NULL;
	}
	broker->poll.data = broker;
	(void)uv_poll_start(&broker->poll, UV_READABLE, on_poll);
	return broker;
}

void coop_broker_close(struct coop_broker *broker)
{
	if (!broker)
		return;
	uv_close((uv_handle_t *)&broker->poll, coop_http_free_owner);
	if (broker->fd >= 0)
		(void)close(broker->fd);
	broker->fd = -1;
	while (!coop_list_empty(&broker->asks))
		answer(broker, -EPIPE);
}

int coop_broker_ask(struct coop_broker *broker, void (*done)(void *context, int fd), void *context)
{
	struct ask *ask = coop_mem_zalloc(sizeof *ask);

	if (!ask)
		return -ENOMEM;
	if (broker->fd < 0) {
		free(ask);
		return -EPIPE;
	}
	ask->done = done;
	ask->context = context;
	coop_list_add(&broker->asks, &ask->link);
	send_asks(broker);
	return 0;
}

void coop_broker_ready(struct coop_broker *broker, const char *text)
{
	char message[512];
	int n = snprintf(message, sizeof message, "ready %s", text);

	if (broker->fd >= 0 && n > 0)
		(void)send(broker->fd, message, strlen(message), MSG_NOSIGNAL);
}
