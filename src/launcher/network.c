#include "launcher/network.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "sandbox/child/namespaces.h"

#define OWN_NET "/proc/self/ns/net"

/* Made for plans that the keeper had sent before it could know of the first one's: never more than
 * it lets wait. */
#define MADE_MAX 64

static int idle = -1;
static int away; /* in the network of a session */
static struct {
	uint64_t id;
	int fd;
} made[MADE_MAX];
static unsigned made_count;

static int make(void)
{
	int r = unshare(CLONE_NEWNET) < 0 ? -errno : coop_namespaces_loopback();

	if (r < 0)
		return r;
	int fd = open(OWN_NET, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int coop_network_init(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	idle = open(OWN_NET, O_RDONLY | O_CLOEXEC);
	return idle < 0 ? -errno : 0;
}

void coop_network_forget(uint64_t id)
{
	for (unsigned i = 0; i < made_count; i++) {
		if (made[i].id == id) {
			(void)close(made[i].fd);
			made[i] = made[--made_count];
			return;
		}
	}
}

static int join(int fd)
{
	away = 1;
	return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

int coop_network_enter(const struct coop_plan *plan, int fd, int *ret_made)
{
	*ret_made = -1;
	if (plan->flags & COOP_PLAN_NET_FD) {
		coop_network_forget(plan->net_id);
		return join(fd);
	}
	if (!(plan->flags & COOP_PLAN_NET_NEW))
		return 0;
	for (unsigned i = 0; i < made_count; i++) {
		if (made[i].id == plan->net_id)
			return join(made[i].fd);
	}
	if (made_count == MADE_MAX)
		coop_network_forget(made[0].id);
	away = 1;
	int fresh = make();
	if (fresh < 0)
		return fresh;
	made[made_count].id = plan->net_id;
	made[made_count++].fd = *ret_made = fresh;
	return 0;
}

void coop_network_leave(void)
{
	if (away && idle >= 0)
		(void)setns(idle, CLONE_NEWNET);
	away = 0;
}
