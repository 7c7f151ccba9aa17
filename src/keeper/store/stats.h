/* What a tree uses: CPU, memory, processes. Looked up when somebody asks; nothing samples by
 * itself. */
#ifndef COOP_KEEPER_STATS_H
#define COOP_KEEPER_STATS_H

#include <stdint.h>
#include <sys/resource.h>

#include "base/json/jsonw.h"

struct coop_process;

/* Brings process->usage and process->usage.descendants up to date. Live processes share one look at
 * /proc. */
void coop_stats_update(struct coop_process *process);

void coop_stats_write(const struct coop_process *process, struct coop_jsonw *w, const char *name);

#endif
