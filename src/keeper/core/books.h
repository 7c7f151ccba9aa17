/* What this keeper writes to the disk, and reads from it: its key, its database, its audit. Opened
 * by main/startup.c, before the loop runs; the helper thread writes to both. */
#ifndef COOP_KEEPER_BOOKS_H
#define COOP_KEEPER_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "records/audit.h"

struct coop_secret;
struct coop_store;

struct coop_books {
	struct coop_secret *secret;
	struct coop_store *store; /* NULL in a private keeper */
	bool recording;           /* processes are recorded there, not only agents and tokens */
	int64_t last_row;         /* numbers of agents and tokens where there is no database */
	struct coop_audit *audit; /* NULL: nothing is audited */
	uint64_t audit_lost;      /* ends that could not be written */
	char audit_error[160];    /* why the last line could not be; "" if it could */
	struct coop_audit_anchor audit_then; /* its ends as an earlier keeper noted them */
	char audit_fault[160]; /* what was missing when a keeper started; "": nothing */
};

#endif
