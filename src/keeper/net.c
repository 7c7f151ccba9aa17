#include "keeper/net.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "keeper/keeper.h"
#include "keeper/slots.h"

struct coop_net *coop_net_take(struct coop_keeper *keeper, struct coop_net **home, uint32_t uid)
{
	struct coop_net *net = *home;

	if (!net || net->uid != uid) {
		net = coop_mem_zalloc(sizeof *net);
		if (!net)
			return NULL;
		*net = (struct coop_net){.home = *home ? NULL : home,
					 .id = ++keeper->last_net,
					 .fd = -1,
					 .uid = uid,
					 .keeper = keeper};
		if (net->home)
			*home = net;
		keeper->net_count++;
	}
	net->users++;
	return net;
}

void coop_net_drop(struct coop_net *net)
{
	if (!net || --net->users)
		return;
	if (net->home)
		*net->home = NULL;
	if (net->fd >= 0)
		(void)close(net->fd);
	net->keeper->net_count--;
	free(net);
}

void coop_net_orphan(struct coop_net **home)
{
	struct coop_net *net = *home;

	/* What was prepared for it is of no use to anybody. */
	if (net)
		coop_slots_drop_net(net->keeper, net);
	if (*home)
		(*home)->home = NULL;
	*home = NULL;
}
