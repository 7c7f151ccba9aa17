#include "keeper/confine/confine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "keeper/confine/reports.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/host/views.h"
#include "keeper/process/process.h"
#include "sandbox/layout/idmap.h"

struct coop_confine *coop_confine_new(void)
{
	struct coop_confine *confine = coop_mem_zalloc(sizeof *confine);

	if (!confine)
		return NULL;
	coop_sandbox_policy_init(&confine->policy);
	confine->group.fd = confine->freezer.fd = -1;
	confine->achieved = coop_reports_new();
	confine->start = coop_mem_zalloc(sizeof *confine->start);
	if (confine->achieved && confine->start)
		return confine;
	coop_confine_discard(confine);
	return NULL;
}

/* Of what it was given nothing stays in our memory. */
static void end_start(struct coop_confine *confine)
{
	struct coop_confine_start *start = confine->start;

	if (!start)
		return;
	confine->start = NULL;
	for (uint32_t i = 0; i < start->tree_count; i++) {
		(void)close(start->trees[i]);
		if (start->folders[i] >= 0)
			(void)close(start->folders[i]);
	}
	coop_layout_clear(&start->layout);
	free(start->cwd_name);
	free(start);
}

void coop_confine_discard(struct coop_confine *confine)
{
	if (!confine)
		return;
	end_start(confine);
	coop_sandbox_policy_clear(&confine->policy);
	coop_reports_drop(confine->achieved);
	free(confine->asked);
	free(confine->tmpdir);
	free(confine);
}

/* What only the start needed is large, and records are kept for long. */
void coop_confine_started(struct coop_process *process)
{
	struct coop_confine *confine = process->confine;

	confine->achieved =
		coop_reports_share(&coop_views_of(process->keeper)->reports, confine->achieved);
	end_start(confine);
}

const char *coop_confine_profile(const struct coop_process *process)
{
	const struct coop_sandbox_policy *policy =
		process && process->confine ? &process->confine->policy : NULL;

	if (!policy || policy->profile < 0)
		return NULL;
	return policy->name ? policy->name : coop_profile_name((enum coop_profile)policy->profile);
}

/* By name where the view or the host has one for it, since that is what `id` prints. */
const char *coop_confine_user(const struct coop_process *process, char *ret)
{
	const struct coop_confine *confine = process->confine;

	if (!confine || confine->policy.profile < 0)
		return NULL;
	if (confine->user)
		return confine->user;
	(void)snprintf(ret, COOP_CONFINE_USER, "%u",
		       confine->launcher.other_ids ? confine->launcher.uid : geteuid());
	return ret;
}

int coop_confine_tree_anew(const struct coop_process *process, uint32_t number)
{
	struct coop_keeper *keeper = process->keeper;
	int folder = process->confine->start->folders[number];

	return folder < 0 ? -EMFILE
			  : coop_idmap_tree(&coop_views_of(keeper)->idmaps, folder,
					    coop_host_of(keeper)->can.uid,
					    coop_host_of(keeper)->can.gid);
}
