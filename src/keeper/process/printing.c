#include "keeper/process/printing.h"

#include "base/clock.h"
#include "base/io/log.h"
#include "interface/err.h"
#include "keeper/core/life.h"
#include "keeper/output/output.h"
#include "keeper/output/stream.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/holder.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/progress.h"
#include "keeper/process/quota.h"

#define QUIET_NS 100000000u /* an ended one's output is over when it has been quiet so long */

/* An output is a part of its process, which must not go while the loop or the disk has hold of the
 * part. */
static void hold(struct coop_output *output)
{
	(void)coop_process_ref(coop_process_of(output));
}

static void release(struct coop_output *output)
{
	coop_process_unref(coop_process_of(output));
}

static void arrived(struct coop_outlet *stream, bool first)
{
	struct coop_process *process = coop_process_of(stream->output);

	/* One that is still starting has not been told of: its first output is, right after
	 * that. */
	if (first && process->course.phase > COOP_PHASE_STARTING)
		COOP_TELL(process, on_first_output, stream);
	coop_deadlines_touch(process);
	coop_progress_output(process);
	if (coop_process_reaped(process) && !coop_process_told(process) &&
	    !process->course.drain_waits)
		coop_deadlines_set(process, COOP_DUE_QUIET, coop_clock_now() + QUIET_NS);
}

static void changed(struct coop_output *output)
{
	coop_observer_news(coop_process_of(output));
}

static void ended(struct coop_outlet *stream)
{
	struct coop_process *process = coop_process_of(stream->output);

	coop_quota_recharge(process);
	if (coop_output_ended(stream->output))
		coop_phase_at(process, COOP_AT_DRAINED);
}

static void due(struct coop_output *output, enum coop_output_due what, uint64_t when)
{
	static const enum coop_deadline which[] = {
		[COOP_OUTPUT_CHUNK] = COOP_DUE_CHUNK,
		[COOP_OUTPUT_SHRINK] = COOP_DUE_SHRINK,
		[COOP_OUTPUT_RETRY] = COOP_DUE_RETRY,
	};
	struct coop_process *process = coop_process_of(output);

	/* The rest of a character is waited for from its first byte on. */
	if (what != COOP_OUTPUT_CHUNK || !process->clock.due[COOP_DUE_CHUNK])
		coop_deadlines_set(process, which[what], when);
}

static void waits(struct coop_output *output)
{
	coop_holders_wait(coop_process_of(output));
}

static void spool_stopped(struct coop_outlet *stream, int error)
{
	struct coop_process *process = coop_process_of(stream->output);

	/* The files of a keeper that leaves are gone already. */
	if (error && !coop_life_finished(process->keeper))
		coop_log(COOP_LOG_WARN, "spool stopped id=%s stream=%s error=%s", process->id,
			 coop_stream_name(stream->number), coop_err_errno_name(error));
	if (process->terms.quota_kills && coop_process_live(process))
		COOP_TELL(process, on_output_quota);
}

const struct coop_output_owner coop_printing = {
	.hold = hold,
	.release = release,
	.arrived = arrived,
	.changed = changed,
	.ended = ended,
	.due = due,
	.room = coop_holders_room,
	.waits = waits,
	.spool_stopped = spool_stopped,
};
