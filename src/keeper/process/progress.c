#include "keeper/process/progress.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "keeper/output/stream.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/observer.h"
#include "keeper/process/process.h"

#define MS 1000000u

int coop_progress_want(struct coop_process *process, int64_t interval_ms)
{
	struct coop_progress *progress = coop_mem_zalloc(sizeof *progress);

	if (!progress)
		return -ENOMEM;
	progress->process = process;
	progress->asked_ns = progress->interval_ns = (uint64_t)interval_ms * MS;
	process->progress = progress;
	return 0;
}

void coop_progress_free(struct coop_process *process)
{
	free(process->progress);
	process->progress = NULL;
}

/* Counted from the start of the program, not from the request: a start may wait. */
void coop_progress_begin(struct coop_process *process)
{
	if (process->progress)
		coop_deadlines_set(process, COOP_DUE_PROGRESS,
				   process->times.started + process->progress->interval_ns);
}

/* Called for each read, so it does nothing but note the time. */
void coop_progress_output(struct coop_process *process)
{
	if (process->progress)
		process->progress->last_output = coop_clock_now();
}

void coop_progress_end(struct coop_process *process)
{
	if (!process->progress)
		return;
	coop_deadlines_set(process, COOP_DUE_PROGRESS, 0);
	/* What is known now is in the record. */
	coop_list_remove(&process->progress->in_notes);
}

static void look(struct coop_progress *progress, uint64_t now)
{
	const struct coop_process *process = progress->process;
	/* Bytes may have come before the start was told. */
	uint64_t since = progress->last_output > process->times.started ? progress->last_output
									: process->times.started;
	uint64_t total = 0;

	for (int i = 0; i < process->output.count; i++)
		total += progress->bytes[i] = process->output.streams[i].ring.end;
	progress->new_bytes = total - progress->total;
	progress->total = total;
	progress->silence_ms = (now - since) / MS;
	progress->at = coop_clock_wall_ms();
}

static void on_due(struct coop_process *process, enum coop_deadline which)
{
	if (which != COOP_DUE_PROGRESS)
		return;
	struct coop_progress *progress = process->progress;
	uint64_t now = coop_clock_now();

	look(progress, now);
	progress->interval_ns = coop_progress_next(progress->interval_ns, progress->asked_ns);
	coop_deadlines_set(process, COOP_DUE_PROGRESS, now + progress->interval_ns);
	COOP_TELL(process, on_progress);
}

void coop_progress_write(const struct coop_progress *progress, struct coop_jsonw *w)
{
	const struct coop_process *process = progress->process;

	coop_jsonw_begin(w, "bytes");
	for (int i = 0; i < process->output.count; i++)
		coop_jsonw_uint(w, coop_stream_name(process->output.streams[i].number),
				progress->bytes[i]);
	coop_jsonw_end(w);
	coop_jsonw_uint(w, "new_bytes", progress->new_bytes);
	coop_jsonw_uint(w, "silence_ms", progress->silence_ms);
}

const struct coop_observer coop_progress_observer = {.on_due = on_due};
