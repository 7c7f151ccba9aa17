#include "keeper/process/settle.h"

#include "base/clock.h"
#include "keeper/core/keeper.h"
#include "keeper/core/labels.h"
#include "keeper/core/meters.h"
#include "keeper/output/output.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/note.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/quota.h"
#include "keeper/process/registry.h"

#define MS 1000000u

static void count_end(const struct coop_process *process)
{
	struct coop_meters *meters = coop_meters_of(process->keeper);

	if (process->end.cause != COOP_CAUSE_SPAWN_FAILED)
		coop_histogram_add(&meters->exit, coop_clock_now() - process->end.ended);
	meters->ends[process->end.cause]++;
}

/* Later output belongs to descendants: it is kept in the rings, and counts for nothing here. */
static void enter_told(struct coop_process *process)
{
	static const enum coop_deadline over[] = {COOP_DUE_QUIET, COOP_DUE_DRAINED, COOP_DUE_CHUNK};
	uint64_t retention = (uint64_t)process->terms.limits.exit_retention_ms * MS;

	for (size_t i = 0; i < sizeof over / sizeof over[0]; i++)
		coop_deadlines_set(process, over[i], 0);
	coop_output_settle(&process->output);
	if (!coop_process_removed(process))
		coop_deadlines_set(process, COOP_DUE_RETENTION, coop_clock_now() + retention);
	coop_registry_finished(process);
	coop_quota_recharge(process);
	count_end(process);
}

/* Output and events are given up. */
static void enter_receipt(struct coop_process *process)
{
	coop_deadlines_set(process, COOP_DUE_RETENTION, 0);
	coop_output_give_up(&process->output);
	coop_labels_shorten(&process->labels);
	coop_registry_shed(process);
}

/* The last event before the exit: behind all output, as far as that is known. */
static void on_telling(struct coop_process *process)
{
	coop_output_index_rest(&process->output);
	coop_note_end(process);
}

static void on_phase(struct coop_process *process, enum coop_phase phase)
{
	if (phase == COOP_PHASE_ENDED)
		process->output.stage = COOP_OUTPUT_LEFT;
	else if (phase == COOP_PHASE_TOLD)
		enter_told(process);
	else if (phase == COOP_PHASE_RECEIPT)
		enter_receipt(process);
}

const struct coop_observer coop_settle_observer = {
	.on_telling = on_telling,
	.on_phase = on_phase,
};
