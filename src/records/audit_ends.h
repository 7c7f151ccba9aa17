/* Where the chain begins and ends in the files that are there. Any thread. */
#ifndef COOP_RECORDS_AUDIT_ENDS_H
#define COOP_RECORDS_AUDIT_ENDS_H

#include "records/audit_files.h"
#include "records/audit_line.h"

struct coop_audit_ends {
	struct coop_audit_line first, last; /* seq 0: there is no good line */
	uint64_t begins; /* seq of the current file's first good line; 0: it has none */
	/* What stands behind the last good line: so many lines, the last of them in file `damaged`
	 * of the set. */
	uint64_t bad;
	size_t damaged;
};

/* Reads no more than it takes to find a good line at each end. 0 or -errno. */
int coop_audit_ends_find(const struct coop_audit_set *set, struct coop_audit_ends *ret);

/* The beginning alone. */
int coop_audit_ends_first(const struct coop_audit_set *set, struct coop_audit_line *ret);

#endif
