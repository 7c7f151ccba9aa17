#include "keeper/process/process.h"

#include "keeper/link/request.h"
#include "keeper/owner/session.h"

struct coop_process *coop_process_ref(struct coop_process *process)
{
	process->refs++;
	return process;
}

void coop_process_unref(struct coop_process *process)
{
	if (--process->refs == 0)
		process->destroy(process);
}

void coop_process_hold(struct coop_process *process, struct coop_request *request)
{
	request->process = coop_process_ref(process);
	request->release = coop_process_unref;
}

void coop_process_join(struct coop_process *process, struct coop_session *session)
{
	process->terms.session_n = session->n;
	coop_list_add(&session->processes, &process->in.session);
}

bool coop_process_boxed(const struct coop_process *process)
{
	return process->child.boxed;
}

bool coop_process_tidy(const struct coop_process *process)
{
	return !process->clock.due[COOP_DUE_TIDY];
}

bool coop_process_is_news(const struct coop_process *process)
{
	return process->end.cause != COOP_CAUSE_SPAWN_FAILED || process->terms.record_failure;
}

void coop_process_reader_begin(struct coop_process *process)
{
	process->audience.readers++;
}

void coop_process_reader_end(struct coop_process *process)
{
	process->audience.readers--;
	coop_process_let_go(process);
}

void coop_process_let_go(struct coop_process *process)
{
	if (!coop_process_removed(process) || process->audience.readers)
		return;
	coop_output_close(&process->output);
}

bool coop_process_gone(const struct coop_process *process)
{
	return !process->child.root_lives && (process->child.root || coop_process_reaped(process));
}

bool coop_process_live(const struct coop_process *process)
{
	return process->course.phase < COOP_PHASE_ENDED;
}

bool coop_process_reaped(const struct coop_process *process)
{
	return process->course.phase >= COOP_PHASE_ENDED;
}

bool coop_process_told(const struct coop_process *process)
{
	return process->course.phase >= COOP_PHASE_TOLD;
}

bool coop_process_receipt(const struct coop_process *process)
{
	return process->course.phase == COOP_PHASE_RECEIPT;
}

bool coop_process_removed(const struct coop_process *process)
{
	return process->course.phase > COOP_PHASE_NEW && !process->in.all.next;
}
