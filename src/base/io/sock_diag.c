#include "base/io/sock_diag.h"

#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>

#define PART_MAX 32768u /* the kernel makes none that is larger */

int coop_sock_diag_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	return fd < 0 ? -errno : fd;
}

static int send_question(int fd, const void *question, size_t size)
{
	struct {
		struct nlmsghdr head;
		unsigned char body[COOP_SOCK_DIAG_QUESTION_MAX];
	} message = {.head = {.nlmsg_len = (unsigned)NLMSG_LENGTH(size),
			      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};

	assert(size <= sizeof message.body);
	memcpy(message.body, question, size);
	return send(fd, &message, message.head.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* One message of the answer. 1: go on, 0: that was all, or -errno. */
static int take(const struct nlmsghdr *head, int (*each)(void *user, const void *told, size_t size),
		void *user)
{
	const struct nlmsgerr *error = NLMSG_DATA(head);

	if (head->nlmsg_type == NLMSG_DONE)
		return 0;
	if (head->nlmsg_type == NLMSG_ERROR)
		return error->error < 0 ? error->error : -EPROTO;
	if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return 1;
	int r = each(user, NLMSG_DATA(head), head->nlmsg_len - NLMSG_HDRLEN);
	return r < 0 ? r : 1;
}

int coop_sock_diag_ask(int fd, const void *question, size_t size,
		       int (*each)(void *user, const void *told, size_t size), void *user)
{
	_Alignas(struct nlmsghdr) char part[PART_MAX];
	int r = send_question(fd, question, size);

	if (r < 0)
		return r;
	for (;;) {
		ssize_t n = recv(fd, part, sizeof part, MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0)
			return -errno;
		if (n == 0 || (size_t)n > sizeof part)
			return -EPROTO;
		unsigned left = (unsigned)n;
		for (const struct nlmsghdr *head = (const void *)part; NLMSG_OK(head, left);
		     head = NLMSG_NEXT(head, left)) {
			r = take(head, each, user);
			if (r <= 0)
				return r;
		}
	}
}
