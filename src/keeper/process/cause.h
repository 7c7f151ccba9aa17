/* Why a process ended: the first rule that decided to end it, else a signal that was sent through
 * coop, else what the kernel says. */
#ifndef COOP_KEEPER_CAUSE_H
#define COOP_KEEPER_CAUSE_H

#include <stdint.h>

#include "keeper/process/kinds.h"

struct coop_process;

const char *coop_cause_name(enum coop_cause cause);
/* The cause of that name; NONE if there is none. */
enum coop_cause coop_cause_parse(const char *name);

/* Records the first rule that ends the process; later ones change nothing. */
void coop_cause_force(struct coop_process *process, enum coop_cause cause,
		      const struct coop_evidence *evidence);

/* Its leader has ended: fills cause and evidence of its end. */
void coop_cause_judge(struct coop_process *process, int wait_status, uint64_t cpu_ns);

#endif
