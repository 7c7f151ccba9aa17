#include "keeper/process/process.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"
#include "keeper/link/request.h"
#include "keeper/output/digest.h"
#include "keeper/output/ring.h"
#include "keeper/output/spool.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/session.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/eviction.h"
#include "keeper/process/observer.h"
#include "keeper/process/printing.h"
#include "keeper/process/progress.h"
#include "keeper/process/quota.h"
#include "keeper/process/registry.h"
#include "keeper/process/wire.h"

/* An ended process's output is over when it has been quiet for this long. */
#define QUIET_NS 100000000u
#define MS 1000000u

struct coop_process *coop_process_new(struct coop_agent *agent)
{
	struct coop_keeper *keeper = agent->keeper;
	struct coop_process *process = coop_mem_zalloc(sizeof *process);

	if (!process)
		return NULL;
	process->keeper = keeper;
	process->asked = coop_clock_now();
	process->agent = coop_agent_ref(agent);
	process->refs = 1;
	coop_list_init(&process->waiters);
	coop_list_init(&process->followers);
	coop_list_init(&process->holders);
	coop_readers_init(&process->named);
	coop_output_init(&process->output, keeper, &coop_printing,
			 (size_t)coop_conf_of(keeper)->settings.max_events);
	process->output.spool_account = &agent->principal->spool_bytes;
	coop_deadlines_init(process);
	return process;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct coop_process *process = handle->data;

	coop_labels_clear(&process->labels);
	free(process->archived_evidence);
	coop_agent_unref(process->agent);
	free(process);
}

struct coop_process *coop_process_ref(struct coop_process *process)
{
	process->refs++;
	return process;
}

void coop_process_unref(struct coop_process *process)
{
	if (--process->refs)
		return;
	/* Nothing points here any more but handles of libuv, whose closing holds references of its
	 * own, and the timer. */
	COOP_TELL(process, on_free);
	coop_output_clear(&process->output);
	coop_notes_clear(&process->notes);
	coop_readers_clear(&process->named);
	coop_progress_free(process);
	coop_wire_close(process->wire);
	uv_close((uv_handle_t *)&process->timer, on_timer_closed);
}

void coop_process_touch(struct coop_process *process)
{
	if (process->limits.idle_timeout_ms && coop_process_live(process))
		coop_deadlines_set(process, COOP_DUE_IDLE,
				   coop_clock_now() +
					   (uint64_t)process->limits.idle_timeout_ms * MS);
}

void coop_process_hold(struct coop_process *process, struct coop_request *request)
{
	request->process = coop_process_ref(process);
	request->release = coop_process_unref;
}

void coop_process_join(struct coop_process *process, struct coop_session *session)
{
	process->session_n = session->n;
	coop_list_add(&session->processes, &process->in_session);
}

bool coop_process_boxed(const struct coop_process *process)
{
	return process->boxed;
}

bool coop_process_gone(const struct coop_process *process)
{
	if (coop_registry_has_root(process))
		return false;
	return process->root_pid || coop_process_reaped(process);
}

void coop_process_emptied(struct coop_process *process)
{
	if (!process->emptied)
		process->emptied = coop_clock_now();
	coop_registry_settled(process);
	coop_eviction_look(process->keeper);
	COOP_TELL(process, on_empty);
}

bool coop_process_tidy(const struct coop_process *process)
{
	return !process->due[COOP_DUE_TIDY];
}

void coop_process_tidied(struct coop_process *process)
{
	coop_deadlines_set(process, COOP_DUE_TIDY, 0);
	COOP_TELL(process, on_tidy);
	coop_process_news(process);
}

bool coop_process_is_news(const struct coop_process *process)
{
	return process->end.cause != COOP_CAUSE_SPAWN_FAILED || process->record_failure;
}

void coop_process_news(struct coop_process *process)
{
	COOP_TELL(process, on_news);
}

void coop_process_drain_pause(struct coop_process *process)
{
	uint64_t now = coop_clock_now(), due = process->due[COOP_DUE_DRAINED];

	if (!coop_process_reaped(process) || coop_process_told(process) || process->drain_waits)
		return;
	process->drain_waits = true;
	process->drain_left = due > now ? due - now : 0;
	coop_deadlines_set(process, COOP_DUE_DRAINED, 0);
	coop_deadlines_set(process, COOP_DUE_QUIET, 0);
}

void coop_process_drain_resume(struct coop_process *process)
{
	uint64_t now = coop_clock_now();

	if (!process->drain_waits || coop_process_told(process))
		return;
	process->drain_waits = false;
	coop_deadlines_set(process, COOP_DUE_QUIET, now + QUIET_NS);
	coop_deadlines_set(process, COOP_DUE_DRAINED, now + process->drain_left);
}

void coop_process_recharge(struct coop_process *process)
{
	uint64_t held = 0;

	for (int i = 0; i < process->output.count; i++)
		held += process->output.streams[i].ring.capacity;
	if (process->phase == COOP_PHASE_TOLD && !coop_process_removed(process) &&
	    coop_output_ended(&process->output))
		coop_quota_charge(process, held);
}

void coop_process_reader_begin(struct coop_process *process)
{
	process->readers++;
}

void coop_process_reader_end(struct coop_process *process)
{
	process->readers--;
	coop_process_let_go(process);
}

void coop_process_owner_told(struct coop_process *process)
{
	if (process->owner_told_at || !coop_process_told(process))
		return;
	process->owner_told_at = coop_clock_wall_ms();
	coop_eviction_told(process);
}

void coop_process_let_go(struct coop_process *process)
{
	if (!coop_process_removed(process) || process->readers)
		return;
	coop_output_close(&process->output);
}
