/* The record of a process, as every answer shows it (docs/PROTOCOL.md section 6). */
#ifndef COOP_KEEPER_RECORD_H
#define COOP_KEEPER_RECORD_H

#include "base/jsonw.h"
#include "base/schema.h"

struct coop_process;

enum coop_record_view {
	COOP_RECORD_FULL,
	COOP_RECORD_BRIEF,
	COOP_RECORD_CACHED, /* full, but the kernel is not asked: what was last seen, quickly */
};

/* Writes the record; a live process is looked at first (statistics, input). */
void coop_record_write(struct coop_process *process, enum coop_record_view view,
		       struct coop_jsonw *w, const char *name);

/* How harn-like callers name the outcome: running, exited, killed, timed_out. */
const char *coop_record_status(const struct coop_process *process);

extern const struct coop_field coop_record_fields[];

#endif
