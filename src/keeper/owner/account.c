#include "keeper/owner/account.h"

#include "keeper/owner/agent.h"

/* Of this level alone: a limit binds the sum of an agent and all below it, so whoever asks walks up
 * and asks each level. */
uint64_t coop_account_excess(const struct coop_agent *agent, uint64_t bytes)
{
	int64_t limit = coop_agent_max_buffer(agent);
	uint64_t wanted = agent->buffer_bytes + bytes;

	return limit < 0 || wanted <= (uint64_t)limit ? 0 : wanted - (uint64_t)limit;
}

/* The old amount is taken off the old agent before the new one is added to the new: a connection
 * can become another agent's with bytes still unread, and levels that both lie under must not count
 * them twice. */
void coop_account_unread(struct coop_unread *unread, struct coop_agent *agent, uint64_t bytes)
{
	if (!bytes || !agent) {
		agent = NULL;
		bytes = 0;
	}
	if (unread->agent == agent && unread->bytes == bytes)
		return;
	struct coop_agent *before = unread->agent;
	for (struct coop_agent *level = before; level; level = level->parent) {
		level->buffer_bytes -= unread->bytes;
		level->unread_bytes -= unread->bytes;
	}
	for (struct coop_agent *level = agent; level; level = level->parent) {
		level->buffer_bytes += bytes;
		level->unread_bytes += bytes;
	}
	unread->bytes = bytes;
	/* The new agent is held before the old one is let go, as they may be the same, and this its
	 * last reference. */
	unread->agent = agent ? coop_agent_ref(agent) : NULL;
	coop_agent_unref(before);
}

bool coop_account_full(const struct coop_agent *agent)
{
	for (const struct coop_agent *level = agent; level; level = level->parent) {
		if (coop_account_excess(level, 0))
			return true;
	}
	return false;
}
