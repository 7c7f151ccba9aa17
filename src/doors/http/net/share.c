#include "doors/http/net/share.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doors/http/main/gateway.h"

#define NAME_MAX_SIZE 1024u

/* uid:1000; the names of other principals have no colon. Below that user's main the agents stand
 * side by side, and with another principal there is nothing above them. */
static void write_name(char ret[NAME_MAX_SIZE], const char *principal, const char *agent)
{
	bool user = strncmp(principal, "uid:", 4) == 0;
	size_t size = strcspn(agent, "/");

	if (user && agent[size])
		size += 1 + strcspn(agent + size + 1, "/");
	(void)snprintf(ret, NAME_MAX_SIZE, "%s %.*s", principal, (int)size, agent);
}

struct coop_agent_share *coop_share_of(struct coop_agent_shares *shares, const char *principal,
				       const char *agent)
{
	char name[NAME_MAX_SIZE];

	write_name(name, principal, agent);
	for (struct coop_agent_share *share = shares->first; share; share = share->next) {
		if (strcmp(share->name, name) == 0) {
			share->refs++;
			return share;
		}
	}
	struct coop_agent_share *share = coop_mem_zalloc(sizeof *share + strlen(name) + 1);
	if (!share)
		return NULL;
	memcpy(share->name, name, strlen(name) + 1);
	share->own = strncmp(principal, "uid:", 4) == 0 && strcmp(agent, "main") == 0;
	share->refs = 1;
	share->next = shares->first;
	share->link = &shares->first;
	if (share->next)
		share->next->link = &share->next;
	shares->first = share;
	return share;
}

void coop_share_unref(struct coop_agent_share *share)
{
	if (!share || --share->refs)
		return;
	*share->link = share->next;
	if (share->next)
		share->next->link = share->link;
	free(share);
}

bool coop_share_enter(struct coop_agent_shares *shares, struct coop_agent_share *share,
		      const struct coop_gateway_options *options)
{
	if (share->connections >= options->max_per_agent ||
	    (!share->own && shares->others >= options->max_of_agents))
		return false;
	share->connections++;
	shares->others += !share->own;
	return true;
}

void coop_share_leave(struct coop_agent_shares *shares, struct coop_agent_share *share)
{
	share->connections--;
	shares->others -= !share->own;
}
