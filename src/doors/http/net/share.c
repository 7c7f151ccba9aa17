#include "doors/http/net/share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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
	COOP_LIST_EACH(&shares->all, link)
	{
		struct coop_agent_share *share =
			COOP_LIST_ITEM(link, struct coop_agent_share, link);
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
	share->shares = shares;
	coop_list_push(&shares->all, &share->link);
	return share;
}

void coop_share_unref(struct coop_agent_share *share)
{
	if (!share || --share->refs)
		return;
	coop_list_remove(&share->link);
	free(share);
}

bool coop_share_enter(struct coop_share_part *part, struct coop_agent_share *share)
{
	struct coop_agent_shares *shares = share->shares;

	if (share->connections >= shares->max_per_agent ||
	    (!share->own && shares->others >= shares->max_of_agents))
		return false;
	share->connections++;
	shares->others += !share->own;
	coop_share_leave(part);
	part->share = share;
	return true;
}

void coop_share_leave(struct coop_share_part *part)
{
	struct coop_agent_share *share = part->share;

	if (!share)
		return;
	share->connections--;
	share->shares->others -= !share->own;
	share->held -= part->held;
	share->unread -= part->unread;
	*part = (struct coop_share_part){0};
}

bool coop_share_hold(struct coop_share_part *part, size_t bytes)
{
	struct coop_agent_share *share = part->share;

	if (!share)
		return true;
	share->held = share->held - part->held + bytes;
	part->held = bytes;
	return share->held <= COOP_SHARE_HELD_MAX &&
	       (!bytes || share->held + share->input <= COOP_SHARE_TAKEN_MAX);
}

void coop_share_count_unread(struct coop_share_part *part, size_t bytes)
{
	if (!part->share)
		return;
	part->share->unread += bytes - part->unread;
	part->unread = bytes;
}

bool coop_share_may_wait(const struct coop_share_part *part, size_t more)
{
	return !part->share || part->share->unread + more <= COOP_SHARE_UNREAD_MAX;
}
