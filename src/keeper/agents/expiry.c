#include "keeper/agents/expiry.h"
#include "keeper/owner/agents.h"

#include "base/clock.h"
#include "base/io/log.h"
#include "keeper/agents/agent_remove.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/owner/agent.h"

#define GRACE_MS 500
#define AGAIN_MS 1000 /* after a removal that failed: the disk was full, memory was short */

/* How long it still has; -1: there is no end to wait for. */
static int64_t left(const struct coop_agent *agent, int64_t now)
{
	int64_t at = agent->settings.extras.expires_at;

	if (!at || agent->expiring)
		return -1;
	if (at > now)
		return at - now;
	return agent->expiry_tried ? AGAIN_MS : 0;
}

/* The first one, of all principals, that has no more time than `limit`. NULL: none. */
static struct coop_agent *next_of(struct coop_keeper *keeper, int64_t now, int64_t limit,
				  int64_t *ret_left)
{
	struct coop_agent *found = NULL;

	COOP_LIST_EACH(coop_agents_principals(keeper), link)
	{
		struct coop_agent *first =
			COOP_LIST_ITEM(link, struct coop_principal, in_keeper)->first;
		for (struct coop_agent *agent = NULL;
		     first && (agent = coop_agent_next(first, agent));) {
			int64_t has = left(agent, now);
			if (has < 0 || has > limit)
				continue;
			limit = has;
			found = agent;
		}
	}
	*ret_left = limit;
	return found;
}

/* A new round: each has one try in it. */
static void begin_round(struct coop_keeper *keeper)
{
	COOP_LIST_EACH(coop_agents_principals(keeper), link)
	{
		struct coop_agent *first =
			COOP_LIST_ITEM(link, struct coop_principal, in_keeper)->first;
		for (struct coop_agent *agent = NULL;
		     first && (agent = coop_agent_next(first, agent));)
			agent->expiry_tried = false;
	}
}

static void on_expiry(uv_timer_t *timer)
{
	struct coop_keeper *keeper = timer->data;
	int64_t now = coop_clock_wall_ms(), unused;
	struct coop_agent *agent;

	begin_round(keeper);
	/* Those below it go with it, so the tree is looked at anew after each. */
	while ((agent = next_of(keeper, now, 0, &unused))) {
		coop_log(COOP_LOG_INFO, "an agent's time is over id=%lld", (long long)agent->id);
		agent->expiring = true;
		if (coop_agent_remove_expired(agent, GRACE_MS) < 0) {
			agent->expiring = false;
			agent->expiry_tried = true;
		}
	}
	coop_expiry_look(keeper);
}

void coop_expiry_look(struct coop_keeper *keeper)
{
	int64_t wait;

	if (coop_life_stopping(keeper))
		return;
	if (!next_of(keeper, coop_clock_wall_ms(), INT64_MAX, &wait)) {
		(void)uv_timer_stop(&coop_agents_of(keeper)->expiry);
		return;
	}
	uv_update_time(coop_loop_of(keeper));
	(void)uv_timer_start(&coop_agents_of(keeper)->expiry, on_expiry, (uint64_t)wait, 0);
}
