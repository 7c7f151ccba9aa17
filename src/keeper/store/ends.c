#include "keeper/store/ends.h"

#include "base/later.h"
#include "base/list.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/watch.h"
#include "keeper/core/keeper.h"
#include "keeper/process/observer.h"
#include "keeper/process/process.h"
#include "keeper/store/journal.h"
#include "keeper/store/spawn_audit.h"

static void write_end(struct coop_process *process)
{
	coop_spawn_audit_end(process);
	if (coop_process_is_news(process))
		coop_journal_ended(process);
	/* With a first process its mounts stand until that one is gone, and so do the placeholders
	 * below them. */
	if (process->course.emptied && (!coop_process_boxed(process) || coop_process_gone(process)))
		coop_confine_over(process);
	coop_process_unref(process);
}

void coop_ends_write(struct coop_keeper *keeper)
{
	struct coop_journal *journal = coop_journal_of(keeper);

	while (!coop_list_empty(&journal->ended)) {
		struct coop_process *process =
			COOP_LIST_ITEM(journal->ended.next, struct coop_process, in.ended);
		coop_list_remove(&process->in.ended);
		write_end(process);
	}
}

static void on_later(struct coop_later *item)
{
	coop_ends_write(COOP_LATER_OWNER(item, struct coop_journal, write_ends)->keeper);
}

/* Behind the answers of this turn: whoever waits for the end does not wait for its line. */
static void end_later(struct coop_process *process)
{
	struct coop_journal *journal = coop_journal_of(process->keeper);

	coop_list_add(&journal->ended, &coop_process_ref(process)->in.ended);
	journal->write_ends.run = on_later;
	coop_later(coop_laters_of(process->keeper), &journal->write_ends);
}

static void on_phase(struct coop_process *process, enum coop_phase phase)
{
	bool failed = process->end.cause == COOP_CAUSE_SPAWN_FAILED;

	if (phase == COOP_PHASE_RUNNING ||
	    (phase == COOP_PHASE_ENDED && failed && process->terms.record_failure))
		coop_journal_started(process);
	else if (phase == COOP_PHASE_TOLD)
		end_later(process);
}

const struct coop_observer coop_store_observer = {
	.on_phase = on_phase,
	.on_free = coop_journal_forget,
};
