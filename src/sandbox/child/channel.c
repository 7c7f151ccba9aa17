#include "sandbox/child/channel.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

int coop_channel_send(int channel, const struct coop_plan_status *message, pid_t about)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = sizeof *message};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))] = {0};
	ssize_t n;

	if (about) {
		struct ucred who = {.pid = about, .uid = geteuid(), .gid = getegid()};
		header.msg_control = control;
		header.msg_controllen = sizeof control;
		struct cmsghdr *item = CMSG_FIRSTHDR(&header);
		item->cmsg_level = SOL_SOCKET;
		item->cmsg_type = SCM_CREDENTIALS;
		item->cmsg_len = CMSG_LEN(sizeof who);
		memcpy(CMSG_DATA(item), &who, sizeof who);
	}
	do
		n = sendmsg(channel, &header, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

_Noreturn void coop_channel_fail(int channel, enum coop_plan_step step, uint32_t op)
{
	int error = errno;
	struct coop_plan_status message = {
		.event = COOP_PLAN_FAILED, .step = (uint32_t)step, .error = error, .op = op};

	(void)coop_channel_send(channel, &message, 0);
	_exit(step == COOP_STEP_EXEC && error == ENOENT ? 127 : 126);
}

/* The signal is armed first and the keeper looked for afterwards: an exiting process closes its
 * files before its children are given away, so either the poll sees the broken channel or the
 * signal comes. */
void coop_channel_die_with_keeper(int channel)
{
	struct pollfd keeper = {.fd = channel, .events = POLLRDHUP};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		coop_channel_fail(channel, COOP_STEP_DEATH_SIGNAL, 0);
	if (poll(&keeper, 1, 0) > 0 && (keeper.revents & (POLLHUP | POLLRDHUP | POLLERR)))
		_exit(126);
}
