#include "keeper/process/quota.h"

#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"
#include "keeper/output/output.h"
#include "keeper/owner/account.h"
#include "keeper/owner/agent.h"
#include "keeper/process/eviction.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"

/* Ended records whose descendants still live count like running ones: those at and below an agent,
 * of a principal, or (both NULL) all. Looked up only where it can matter. */
static int64_t left_behind(struct coop_keeper *keeper, const struct coop_agent *agent,
			   const struct coop_principal *principal)
{
	int64_t count = 0;

	COOP_LIST_EACH(coop_registry_unsettled(keeper), link)
	{
		struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.unsettled);
		if ((!agent || coop_agent_sees(agent, process->agent)) &&
		    (!principal || process->agent->principal == principal))
			count += coop_observer_owns_others(process, true);
	}
	return count;
}

/* Limit and use go into the details, so that programs need not read the sentence. */
static int refuse(struct coop_err *err, enum coop_code code, const char *scope, int64_t limit,
		  int64_t in_use, const char *what)
{
	int r = coop_err_set(err, code, "the limit of %lld %s is reached: %lld in use",
			     (long long)limit, what, (long long)in_use);

	coop_err_detail(err, "scope", scope);
	coop_err_detail_int(err, "limit", limit);
	coop_err_detail_int(err, "in_use", in_use);
	return r;
}

static int check_tree(struct coop_agent *agent, struct coop_err *err)
{
	unsigned unsettled = coop_registry_unsettled_count(agent->keeper);

	for (struct coop_agent *level = agent; level; level = level->parent) {
		int64_t limit = coop_agent_max_running(level), in_use = level->live;
		if (in_use + unsettled >= limit)
			in_use += left_behind(agent->keeper, level, NULL);
		if (in_use < limit)
			continue;
		if (level == agent)
			return refuse(err, COOP_REGISTRY_FULL, "agent", limit, in_use,
				      "running processes of this agent");
		return refuse(err, COOP_QUOTA, "ancestor", limit, in_use,
			      "running processes of an agent above, with all below it,");
	}
	return 0;
}

int coop_quota_running(struct coop_agent *agent, struct coop_err *err)
{
	struct coop_keeper *keeper = agent->keeper;
	const struct coop_settings *settings = &coop_conf_of(keeper)->settings;
	const struct coop_principal *principal = agent->principal;
	unsigned unsettled = coop_registry_unsettled_count(keeper);
	int r = check_tree(agent, err);

	if (r < 0)
		return r;
	int64_t limit = settings->principal_max_running, in_use = principal->live;
	if (in_use + unsettled >= limit)
		in_use += left_behind(keeper, NULL, principal);
	if (in_use >= limit)
		return refuse(err, COOP_QUOTA, "principal", limit, in_use,
			      "running processes of this principal");
	limit = settings->host_max_running;
	in_use = coop_registry_live(keeper);
	if (in_use + unsettled >= limit)
		in_use += left_behind(keeper, NULL, NULL);
	if (in_use < limit)
		return 0;
	/* How many are whose is nobody's business. */
	r = coop_err_set(err, COOP_REGISTRY_FULL,
			 "the host's limit of running processes, %lld, is reached",
			 (long long)limit);
	coop_err_detail(err, "scope", "host");
	coop_err_detail_int(err, "limit", limit);
	return r;
}

/* They are kept until somebody releases them: with as many as may be, no more are started. */
int coop_quota_persistent(const struct coop_agent *agent, struct coop_err *err)
{
	int64_t limit = coop_conf_of(agent->keeper)->settings.max_retained;
	unsigned retained = agent->principal->retained;

	if (!coop_agent_may_persist(agent))
		return coop_err_set(err, COOP_PERSIST_UNSUPPORTED,
				    "this agent has no grant for persistent processes");
	if (retained < limit)
		return 0;
	return refuse(err, COOP_REGISTRY_FULL, "retained", limit, retained,
		      "finished persistent processes (release some)");
}

/* What finished records at and below `level`, of removed agents too, hold and could give up. */
static uint64_t could_go(const struct coop_agent *level)
{
	uint64_t bytes = 0;

	COOP_LIST_EACH(&level->principal->processes, link)
	{
		struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.principal);
		if (process->usage.buffer_charge && coop_agent_sees(level, process->agent) &&
		    coop_eviction_may_go(process))
			bytes += process->usage.buffer_charge;
	}
	return bytes;
}

/* Nothing is given up here: the start may still be refused for another reason, and records that
 * went for it would be gone for nothing. */
int coop_quota_buffer(struct coop_agent *agent, uint64_t bytes, struct coop_err *err)
{
	for (struct coop_agent *level = agent; level; level = level->parent) {
		uint64_t over = coop_account_excess(level, bytes);
		if (!over || over <= could_go(level))
			continue;
		int r = refuse(err, COOP_QUOTA, "buffer", coop_agent_max_buffer(level),
			       (int64_t)level->buffer_bytes, "bytes for output");
		coop_err_detail_int(err, "needed", (long long)bytes);
		return r;
	}
	return 0;
}

/* The one that goes first: the agent's own before others', then those that their owner has been
 * told of, then the oldest. */
static struct coop_process *first_to_go(const struct coop_agent *agent,
					const struct coop_agent *level)
{
	struct coop_process *best = NULL;
	int best_rank = 4;

	COOP_LIST_EACH(&level->principal->processes, link)
	{
		struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.principal);
		int rank = 2 * (process->agent != agent) + !process->times.owner_told_at;
		if (rank < best_rank && process->usage.buffer_charge &&
		    coop_agent_sees(level, process->agent) && coop_eviction_may_go(process)) {
			best = process;
			best_rank = rank;
		}
	}
	return best;
}

/* All checks are behind it: what was found to be able to go does. */
void coop_quota_make_room(struct coop_agent *agent, uint64_t bytes)
{
	for (struct coop_agent *level = agent; level; level = level->parent) {
		struct coop_process *process;
		while (coop_account_excess(level, bytes) && (process = first_to_go(agent, level)))
			coop_phase_at(process, COOP_AT_SHED);
	}
}

/* A running process is charged for its rings at their full size from the start: they grow on their
 * own, and nobody can be refused then. */
void coop_quota_charge(struct coop_process *process, uint64_t bytes)
{
	for (struct coop_agent *level = process->agent; level; level = level->parent)
		level->buffer_bytes = level->buffer_bytes - process->usage.buffer_charge + bytes;
	process->usage.buffer_charge = bytes;
}

void coop_quota_count(const struct coop_process *process, int live, int finished)
{
	for (struct coop_agent *level = process->agent; level; level = level->parent) {
		level->live += (unsigned)live;
		level->finished += (unsigned)finished;
	}
	process->agent->principal->live += (unsigned)live;
	coop_registry_count(process->keeper, live, finished);
	if (process->terms.lease == COOP_LEASE_PERSISTENT)
		process->agent->principal->retained += (unsigned)finished;
}

/* After the end only what the rings have really grown to counts; before it, they may still grow.
 * Streams that descendants hold open are counted in full until they end. */
void coop_quota_recharge(struct coop_process *process)
{
	uint64_t held = 0;

	for (int i = 0; i < process->output.count; i++)
		held += process->output.streams[i].ring.capacity;
	if (process->course.phase == COOP_PHASE_TOLD && !coop_process_removed(process) &&
	    coop_output_ended(&process->output))
		coop_quota_charge(process, held);
}
