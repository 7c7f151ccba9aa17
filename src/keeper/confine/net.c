#include "keeper/confine/net.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"

#define IDLE_MS 10000u
#define IDLE_MAX 16u /* each is some 200 KiB of the kernel's memory */

struct coop_nets {
	void (*on_orphan)(const struct coop_net *net);
	uint64_t last; /* number of the last one */
	unsigned count, idle_count;
	struct coop_link idle; /* the one that is idle longest comes first */
	uv_timer_t timer;
};

static struct coop_net *new_net(struct coop_keeper *keeper, struct coop_net **home, uint32_t uid)
{
	struct coop_net *net = coop_mem_zalloc(sizeof *net);

	if (!net)
		return NULL;
	*net = (struct coop_net){.home = *home ? NULL : home,
				 .id = ++coop_nets_of(keeper)->last,
				 .fd = -1,
				 .uid = uid,
				 .keeper = keeper};
	if (net->home)
		*home = net;
	coop_nets_of(keeper)->count++;
	return net;
}

static void free_net(struct coop_net *net)
{
	if (net->home)
		*net->home = NULL;
	if (net->fd >= 0)
		(void)close(net->fd);
	coop_nets_of(net->keeper)->count--;
	free(net);
}

static void leave_idle(struct coop_net *net)
{
	coop_list_remove(&net->in_idle);
	coop_nets_of(net->keeper)->idle_count--;
}

/* The one that is idle longest is the least likely to be asked for again. */
static void free_first_idle(struct coop_nets *nets)
{
	struct coop_net *net = COOP_LIST_ITEM(nets->idle.next, struct coop_net, in_idle);

	leave_idle(net);
	free_net(net);
}

void coop_nets_drop_idle(struct coop_keeper *keeper)
{
	while (coop_nets_of(keeper)->idle_count)
		free_first_idle(coop_nets_of(keeper));
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_nets *nets = timer->data;
	uint64_t now = coop_clock_now();

	while (nets->idle_count) {
		const struct coop_net *net =
			COOP_LIST_ITEM(nets->idle.next, struct coop_net, in_idle);
		uint64_t age = (now - net->idle_since) / 1000000u;
		if (age < IDLE_MS) {
			(void)uv_timer_start(timer, on_timer, IDLE_MS - age, 0);
			return;
		}
		free_first_idle(nets);
	}
}

struct coop_nets *coop_nets_new(struct coop_keeper *keeper,
				void (*on_orphan)(const struct coop_net *net))
{
	struct coop_nets *nets = coop_mem_zalloc(sizeof *nets);

	if (!nets)
		return NULL;
	nets->on_orphan = on_orphan;
	coop_list_init(&nets->idle);
	(void)uv_timer_init(coop_loop_of(keeper), &nets->timer);
	nets->timer.data = nets;
	return nets;
}

unsigned coop_nets_count(const struct coop_keeper *keeper)
{
	return coop_nets_of(keeper)->count;
}

void coop_nets_free(struct coop_keeper *keeper)
{
	coop_nets_drop_idle(keeper);
	(void)uv_timer_stop(&coop_nets_of(keeper)->timer);
}

/* A network belongs to one user id: for another a new one is made, which is kept for nobody while
 * the first is in use. */
struct coop_net *coop_net_take(struct coop_keeper *keeper, struct coop_net **home, uint32_t uid)
{
	struct coop_net *net = *home;

	if (net && net->uid != uid && !net->users) {
		leave_idle(net);
		free_net(net);
		net = NULL;
	}
	if (!net || net->uid != uid)
		net = new_net(keeper, home, uid);
	else if (!net->users)
		leave_idle(net);
	if (net)
		net->users++;
	return net;
}

void coop_net_drop(struct coop_net *net)
{
	if (!net || --net->users)
		return;
	struct coop_nets *nets = coop_nets_of(net->keeper);
	if (!net->home || net->fd < 0 || coop_life_stopping(net->keeper)) {
		free_net(net);
		return;
	}
	if (nets->idle_count == IDLE_MAX)
		free_first_idle(nets);
	net->idle_since = coop_clock_now();
	coop_list_add(&nets->idle, &net->in_idle);
	nets->idle_count++;
	if (!uv_is_active((uv_handle_t *)&nets->timer))
		(void)uv_timer_start(&nets->timer, on_timer, IDLE_MS, 0);
}

void coop_net_orphan(struct coop_net **home)
{
	/* What was prepared for it is of no use to anybody. */
	if (*home)
		coop_nets_of((*home)->keeper)->on_orphan(*home);
	struct coop_net *net = *home;
	if (!net)
		return;
	net->home = NULL;
	*home = NULL;
	if (!net->users) {
		leave_idle(net);
		free_net(net);
	}
}
