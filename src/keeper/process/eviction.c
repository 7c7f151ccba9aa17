#include "keeper/process/eviction.h"

#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/later.h"
#include "base/list.h"
#include "base/mem.h"
#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/watch.h"
#include "keeper/owner/agent.h"
#include "keeper/process/completions.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"

#define MS 1000000u
#define TRIM_BATCH 64
#define TRIM_AFTER_MS 100

/* In a connection's `telling`: an end that the client is being told of. By its number, as the
 * record may go before the client has taken it. */
struct telling {
	uint64_t n;
	uint64_t at; /* of `sent`, when it is told; UINT64_MAX: its frame is still being written */
	bool owner, heard;
	bool given; /* its completion is in the frame */
};

struct coop_eviction {
	struct coop_later look;   /* something happened that may let a record go */
	struct coop_link crowded; /* agents with more finished records than they may keep */
	int64_t surplus;          /* finished records above their agents' caps */
	bool receipts_over;       /* some principal may have more than it is allowed */
	uv_timer_t timer;
	bool armed;
	struct coop_keeper *keeper;
};

static void trim_soon(struct coop_later *item);

struct coop_eviction *coop_eviction_new(struct coop_keeper *keeper)
{
	struct coop_eviction *eviction = coop_mem_zalloc(sizeof *eviction);

	if (!eviction)
		return NULL;
	eviction->keeper = keeper;
	eviction->look.run = trim_soon;
	coop_list_init(&eviction->crowded);
	(void)uv_timer_init(coop_loop_of(keeper), &eviction->timer);
	eviction->timer.data = eviction;
	return eviction;
}

void coop_eviction_look(struct coop_keeper *keeper)
{
	coop_later(coop_laters_of(keeper), &coop_eviction_of(keeper)->look);
}

/* Persistent ones are not in it: they stay for their retention, within a limit of their own. */
static int64_t surplus(const struct coop_agent *agent)
{
	int64_t over = (int64_t)agent->evictable - coop_agent_max_finished(agent);

	return over > 0 ? over : 0;
}

/* The keeper knows how many are too many in all, and whose. */
static void note(struct coop_agent *agent, int64_t before)
{
	struct coop_eviction *eviction = coop_eviction_of(agent->keeper);
	int64_t after = surplus(agent);

	eviction->surplus += after - before;
	if (after && !agent->in_crowded.next)
		coop_list_add(&eviction->crowded, &agent->in_crowded);
	else if (!after)
		coop_list_remove(&agent->in_crowded);
}

void coop_eviction_add(struct coop_process *process)
{
	struct coop_agent *agent = process->agent;
	int64_t before = surplus(agent);

	coop_eviction_look(process->keeper);
	if (process->terms.lease == COOP_LEASE_PERSISTENT)
		return;
	coop_list_add(process->times.owner_told_at ? &agent->told : &agent->untold,
		      &process->in.agent);
	agent->evictable++;
	note(agent, before);
}

/* From one list to the other: what the owner knows of goes before what he does not. */
static void put_behind_told(struct coop_process *process)
{
	if (!process->in.agent.next)
		return;
	coop_list_remove(&process->in.agent);
	coop_list_add(&process->agent->told, &process->in.agent);
}

void coop_eviction_remove(struct coop_process *process)
{
	struct coop_agent *agent = process->agent;
	struct coop_principal *principal = agent->principal;
	int64_t before = surplus(agent);

	if (process->in.receipts.next) {
		coop_list_remove(&process->in.receipts);
		principal->receipt_count--;
	}
	if (!process->in.agent.next)
		return;
	coop_list_remove(&process->in.agent);
	agent->evictable--;
	note(agent, before);
}

void coop_eviction_receipt(struct coop_process *process)
{
	struct coop_principal *principal = process->agent->principal;

	coop_list_add(&principal->receipts, &process->in.receipts);
	principal->receipt_count++;
	if (principal->receipt_count > coop_conf_of(process->keeper)->settings.max_receipts)
		coop_eviction_of(process->keeper)->receipts_over = true;
	coop_eviction_look(process->keeper);
}

/* The last that a connection has started is about to be asked for by it: a cap or a short retention
 * must not take the result from under it. */
void coop_eviction_claim(struct coop_process *process, struct coop_conn *conn)
{
	process->origin.starter = conn;
	coop_list_add(&conn->started, &process->origin.in_started);
}

void coop_eviction_unclaim(struct coop_process *process)
{
	if (!process->origin.starter)
		return;
	process->origin.starter = NULL;
	coop_list_remove(&process->origin.in_started);
	coop_eviction_look(process->keeper);
}

/* That connection has taken the record; another's looking changes nothing. */
static void heard_by(struct coop_process *process, const struct coop_conn *conn)
{
	if (coop_process_told(process) && process->origin.starter == conn)
		coop_eviction_unclaim(process);
}

static void on_over(struct coop_conn *conn)
{
	while (!coop_list_empty(&conn->started))
		coop_eviction_unclaim(
			COOP_LIST_ITEM(conn->started.next, struct coop_process, origin.in_started));
}

/* When the claim of its starter is over, should that never ask; 0: there is none. */
static uint64_t claimed_until(const struct coop_process *process)
{
	int64_t patience = coop_conf_of(process->keeper)->settings.hold_idle_ms;

	return process->origin.starter ? process->end.ended + (uint64_t)patience * MS : 0;
}

bool coop_eviction_awaited(const struct coop_process *process, const struct coop_conn *conn)
{
	return process->audience.readers ||
	       (process->origin.starter != conn && claimed_until(process) > coop_clock_now());
}

uint64_t coop_eviction_kept_until(const struct coop_process *process)
{
	uint64_t until = claimed_until(process);
	bool last = process->origin.starter &&
		    process->origin.in_started.next == &process->origin.starter->started;

	return last && until > coop_clock_now() ? until : 0;
}

/* Kept: what a reader is reading or its starter is about to read, what is being killed, and what
 * still owns living processes. */
bool coop_eviction_may_go(struct coop_process *process)
{
	return process->in.agent.next && !process->audience.readers && !process->kill &&
	       !coop_eviction_kept_until(process) && !coop_observer_owns_others(process, false);
}

static bool evict_from(struct coop_link *list)
{
	COOP_LIST_EACH(list, link)
	{
		struct coop_process *process = COOP_LIST_ITEM(link, struct coop_process, in.agent);
		if (!coop_eviction_may_go(process))
			continue;
		coop_phase_at(process, COOP_AT_SHED);
		return true;
	}
	return false;
}

static bool evict_one(struct coop_agent *agent)
{
	return evict_from(&agent->told) || evict_from(&agent->untold);
}

/* Counted at every level above, so that an ancestor sees that something is missing. */
static void drop_receipt(struct coop_process *process)
{
	for (struct coop_agent *agent = process->agent; agent; agent = agent->parent)
		agent->receipts_dropped++;
	coop_registry_remove(process);
}

/* Oldest first, by principal: one that starts much loses its own and nobody else's. */
static void drop_receipts(struct coop_keeper *keeper)
{
	COOP_LIST_EACH(coop_agents_principals(keeper), link)
	{
		struct coop_principal *principal =
			COOP_LIST_ITEM(link, struct coop_principal, in_keeper);
		while (principal->receipt_count > coop_conf_of(keeper)->settings.max_receipts) {
			drop_receipt(COOP_LIST_ITEM(principal->receipts.next, struct coop_process,
						    in.receipts));
		}
	}
}

void coop_eviction_trim(struct coop_keeper *keeper)
{
	struct coop_eviction *eviction = coop_eviction_of(keeper);

	coop_later_cancel(&eviction->look);
	COOP_LIST_EACH(&eviction->crowded, link)
	{
		struct coop_agent *agent = COOP_LIST_ITEM(link, struct coop_agent, in_crowded);
		while (surplus(agent) && evict_one(agent))
			;
	}
	drop_receipts(keeper);
	eviction->receipts_over = false;
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_eviction *eviction = timer->data;

	eviction->armed = false;
	coop_eviction_trim(eviction->keeper);
}

/* Looking who left descendants behind costs the same for one as for many, so the caps are applied
 * in batches: at once if the surplus is large, else after a short while. */
static void trim_soon(struct coop_later *item)
{
	struct coop_eviction *eviction = COOP_LATER_OWNER(item, struct coop_eviction, look);

	if ((eviction->surplus <= 0 && !eviction->receipts_over) || eviction->armed)
		return;
	if (eviction->surplus >= TRIM_BATCH) {
		coop_eviction_trim(eviction->keeper);
		return;
	}
	eviction->armed = true;
	(void)uv_timer_start(&eviction->timer, on_timer, TRIM_AFTER_MS, 0);
}

void coop_eviction_recount(struct coop_keeper *keeper)
{
	struct coop_eviction *eviction = coop_eviction_of(keeper);

	eviction->surplus = 0;
	eviction->receipts_over = true; /* perhaps: the limit may be another */
	coop_eviction_look(keeper);
	/* Removed ones are in no tree any more. */
	COOP_LIST_EACH(&eviction->crowded, link)
	{
		struct coop_agent *agent = COOP_LIST_ITEM(link, struct coop_agent, in_crowded);
		if (agent->removed)
			note(agent, 0);
	}
	COOP_LIST_EACH(coop_agents_principals(keeper), link)
	{
		struct coop_agent *first =
			COOP_LIST_ITEM(link, struct coop_principal, in_keeper)->first;
		for (struct coop_agent *agent = NULL;
		     first && (agent = coop_agent_next(first, agent));)
			note(agent, 0);
	}
}

void coop_eviction_tells(struct coop_conn *conn, const struct coop_process *process, bool heard)
{
	const struct telling telling = {
		.n = process->n,
		.at = UINT64_MAX,
		.owner = conn->agent == process->agent && !process->times.owner_told_at,
		.heard = heard && process->origin.starter == conn,
	};

	/* Without memory for it nobody has been told, and the record stays a while longer. */
	if (coop_process_told(process) && (telling.owner || telling.heard))
		(void)coop_buf_append(&conn->telling, &telling, sizeof telling);
}

void coop_eviction_gives(struct coop_conn *conn, const struct coop_process *process)
{
	const struct telling telling = {.n = process->n, .at = UINT64_MAX, .given = true};

	/* Without memory for it the end is lost with the connection. */
	(void)coop_buf_append(&conn->telling, &telling, sizeof telling);
}

/* The latest first: each goes before those that are in the queue. */
static void on_close(struct coop_conn *conn)
{
	struct coop_buf *list = &conn->telling;
	struct telling telling;

	while (coop_buf_size(list)) {
		list->tail -= sizeof telling;
		memcpy(&telling, list->data + list->tail, sizeof telling);
		struct coop_process *process =
			telling.given ? coop_registry_by_number(conn->keeper, telling.n) : NULL;
		if (process)
			coop_completions_again(process);
	}
}

static void on_frame(struct coop_conn *conn, uint64_t end)
{
	struct coop_buf *list = &conn->telling;
	struct telling telling;
	size_t at = list->tail;

	while (at > list->head) {
		at -= sizeof telling;
		memcpy(&telling, list->data + at, sizeof telling);
		if (telling.at != UINT64_MAX)
			return;
		telling.at = end;
		memcpy(list->data + at, &telling, sizeof telling);
		if (!end)
			list->tail = at;
	}
}

static void owner_told(struct coop_process *process)
{
	if (process->times.owner_told_at || !coop_process_told(process))
		return;
	process->times.owner_told_at = coop_clock_wall_ms();
	put_behind_told(process);
}

static void on_taken(struct coop_conn *conn)
{
	struct telling telling;

	while (coop_buf_size(&conn->telling)) {
		memcpy(&telling, coop_buf_front(&conn->telling), sizeof telling);
		if (telling.at > conn->sent)
			return;
		coop_buf_consume(&conn->telling, sizeof telling);
		struct coop_process *process = coop_registry_by_number(conn->keeper, telling.n);
		if (process && telling.owner)
			owner_told(process);
		if (process && telling.heard)
			heard_by(process, conn);
	}
}

const struct coop_conn_watch coop_eviction_watch = {
	.on_frame = on_frame,
	.on_taken = on_taken,
	.on_over = on_over,
	.on_close = on_close,
};
