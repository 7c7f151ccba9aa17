#include "base/io/fdpass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
	struct cmsghdr header; /* for its alignment */
	char bytes[CMSG_SPACE(sizeof(int) * COOP_FDPASS_MAX)];
};

int coop_fdpass_send(int socket, const void *bytes, size_t size, const int *fds, size_t count)
{
	union control control = {0};
	struct iovec io = {.iov_base = (void *)(size_t)bytes, .iov_len = size};
	struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1};

	if (count > COOP_FDPASS_MAX)
		return -EMSGSIZE;
	if (count) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
	}
	ssize_t n;
	do
		n = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static size_t take_fds(struct msghdr *message, int *ret_fds)
{
	size_t count = 0;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret_fds, CMSG_DATA(header), count * sizeof(int));
	}
	return count;
}

ssize_t coop_fdpass_receive(int socket, void *bytes, size_t size, int *ret_fds, size_t *ret_count)
{
	union control control;
	struct iovec io = {.iov_base = bytes, .iov_len = size};
	struct msghdr message = {
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes,
	};
	ssize_t n;
	int fds[COOP_FDPASS_MAX];

	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	size_t count = take_fds(&message, fds);
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (size_t i = 0; i < count; i++)
			(void)close(fds[i]);
		return -EMSGSIZE;
	}
	memcpy(ret_fds, fds, count * sizeof(int));
	*ret_count = count;
	return n;
}
