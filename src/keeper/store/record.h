/* The record of a process, as every answer shows it (docs/PROTOCOL.md section 6). */
#ifndef COOP_KEEPER_RECORD_H
#define COOP_KEEPER_RECORD_H

#include "base/json/jsonw.h"

#include "keeper/process/process.h"

struct coop_agent;
struct coop_conn;

enum coop_record_view {
	COOP_RECORD_FULL,
	COOP_RECORD_BRIEF,
	COOP_RECORD_CACHED, /* full, but the kernel is not asked: what was last seen, quickly */
};

/* Writes the record, as that agent sees it and with what is known now. */
void coop_record_write(const struct coop_process *process, enum coop_record_view view,
		       const struct coop_agent *viewer, struct coop_jsonw *w, const char *name);

/* Shows it to the agent of `conn`: a live process is looked at first (statistics, input), and an
 * owner who is shown a final record has been told of the end once the socket has taken it; so has
 * the connection, unless the record is a cached one: that comes before its output. */
void coop_record_show(struct coop_process *process, enum coop_record_view view,
		      struct coop_conn *conn, struct coop_jsonw *w, const char *name);

/* Parts of it: `exit` of an ended process, `end_evidence`, `audit_id` (seq 0: null). */
void coop_record_write_exit(int wait_status, enum coop_cause cause, struct coop_jsonw *w);
void coop_record_write_evidence(const struct coop_process *process, struct coop_jsonw *w,
				const char *name);
void coop_record_write_audit(uint64_t seq, struct coop_jsonw *w);
/* separate, merged; NULL for a terminal. */
const char *coop_record_stderr_mode(const struct coop_process *process);

/* Whether a filter (a session's id, "default", NULL for all) means its session. */
bool coop_record_in_session(const struct coop_process *process, const char *filter);

/* How harn-like callers name the outcome: running, exited, killed, timed_out. */
const char *coop_record_status(const struct coop_process *process);

#endif
