#include "keeper/process/make.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"
#include "keeper/core/labels.h"
#include "keeper/output/output.h"
#include "keeper/owner/agent.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/note.h"
#include "keeper/process/observer.h"
#include "keeper/process/printing.h"
#include "keeper/process/process.h"
#include "keeper/process/progress.h"
#include "keeper/process/reader.h"
#include "keeper/process/wire.h"

static void on_timer_closed(uv_handle_t *handle)
{
	struct coop_process *process = handle->data;

	coop_labels_clear(&process->labels);
	free(process->books.archived_evidence);
	coop_agent_unref(process->agent);
	free(process);
}

static void destroy(struct coop_process *process)
{
	/* Nothing points here any more but handles of libuv, whose closing holds references of its
	 * own, and the timer. */
	COOP_TELL(process, on_free);
	coop_output_clear(&process->output);
	coop_notes_clear(&process->notes);
	coop_readers_clear(&process->audience.named);
	coop_progress_free(process);
	coop_wire_close(process->child.wire);
	uv_close((uv_handle_t *)&process->clock.timer, on_timer_closed);
}

struct coop_process *coop_process_new(struct coop_agent *agent)
{
	struct coop_keeper *keeper = agent->keeper;
	struct coop_process *process = coop_mem_zalloc(sizeof *process);

	if (!process)
		return NULL;
	process->keeper = keeper;
	process->times.asked = coop_clock_now();
	process->agent = coop_agent_ref(agent);
	process->refs = 1;
	process->destroy = destroy;
	coop_list_init(&process->audience.waiters);
	coop_list_init(&process->audience.followers);
	coop_list_init(&process->audience.holders);
	coop_readers_init(&process->audience.named);
	coop_output_init(&process->output, keeper, &coop_printing,
			 (size_t)coop_conf_of(keeper)->settings.max_events);
	process->output.spool_account = &agent->principal->spool_bytes;
	coop_deadlines_init(process);
	return process;
}
