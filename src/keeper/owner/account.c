#include "keeper/owner/account.h"

#include "keeper/owner/agent.h"

uint64_t coop_account_excess(const struct coop_agent *agent, uint64_t bytes)
{
	int64_t limit = coop_agent_max_buffer(agent);
	uint64_t wanted = agent->buffer_bytes + bytes;

	return limit < 0 || wanted <= (uint64_t)limit ? 0 : wanted - (uint64_t)limit;
}

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
