#include "base/unix_names.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define PART_MAX 32768u /* the kernel makes none that is larger */

int coop_unix_names_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);

	return fd < 0 ? -errno : fd;
}

static int ask(int socket)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req request;
	} message = {
		.head = {.nlmsg_len = sizeof message,
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		/* In every state: a bound datagram socket counts as connected once anybody connected to it. */
		.request = {.sdiag_family = AF_UNIX,
			    .udiag_states = UINT32_MAX,
			    .udiag_show = UDIAG_SHOW_NAME},
	};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	ssize_t n = sendto(socket, &message, sizeof message, 0, (struct sockaddr *)&kernel,
			   sizeof kernel);

	return n < 0 ? -errno : 0;
}

/* 1: appended, 0: it is no path, -errno. Without a slash in front it is abstract, or relative to who
 * knows where. */
static int take_name(const char *name, size_t size, struct coop_buf *ret)
{
	if (!size || *name != '/')
		return 0;
	int r = coop_buf_append(ret, name, strnlen(name, size));
	if (r == 0)
		r = coop_buf_append(ret, "", 1);
	return r < 0 ? r : 1;
}

/* What is told of one socket: a fixed part and attributes, of which one is its name. */
static int take_socket(const uint8_t *bytes, size_t size, struct coop_buf *ret)
{
	struct rtattr head;

	for (size_t at = NLMSG_ALIGN(sizeof(struct unix_diag_msg)); at + sizeof head <= size;
	     at += RTA_ALIGN(head.rta_len)) {
		memcpy(&head, bytes + at, sizeof head);
		if (head.rta_len < sizeof head || head.rta_len > size - at)
			return -EPROTO;
		if (head.rta_type == UNIX_DIAG_NAME)
			return take_name((const char *)bytes + at + sizeof head,
					 head.rta_len - sizeof head, ret);
	}
	return 0;
}

struct reading {
	size_t left; /* names that may yet be appended */
	bool done;
};

static int take_message(struct reading *reading, uint16_t type, const uint8_t *bytes, size_t size,
			struct coop_buf *ret)
{
	int r = 0;

	if (type == NLMSG_DONE) {
		reading->done = true;
	} else if (type == NLMSG_ERROR) {
		if (size >= sizeof r)
			memcpy(&r, bytes, sizeof r);
		return r < 0 ? r : -EPROTO;
	} else if (reading->left) {
		r = take_socket(bytes, size, ret);
		reading->left -= r > 0;
	}
	return r < 0 ? r : 0;
}

/* One part of the answer: many messages. */
static int take_part(struct reading *reading, const uint8_t *bytes, size_t size,
		     struct coop_buf *ret)
{
	struct nlmsghdr head;
	int r = 0;

	for (size_t at = 0; r == 0 && !reading->done && at + sizeof head <= size;
	     at += NLMSG_ALIGN(head.nlmsg_len)) {
		memcpy(&head, bytes + at, sizeof head);
		if (head.nlmsg_len < sizeof head || head.nlmsg_len > size - at)
			return -EPROTO;
		r = take_message(reading, head.nlmsg_type, bytes + at + sizeof head,
				 head.nlmsg_len - sizeof head, ret);
	}
	return r;
}

int coop_unix_names_ask(int socket, size_t max, struct coop_buf *ret)
{
	uint8_t part[PART_MAX];
	struct reading reading = {.left = max};

	int r = ask(socket);
	while (r == 0 && !reading.done) {
		ssize_t n = recv(socket, part, sizeof part, MSG_TRUNC);
		if (n < 0 || (size_t)n > sizeof part)
			return n < 0 ? -errno : -EMSGSIZE;
		r = take_part(&reading, part, (size_t)n, ret);
	}
	return r;
}
