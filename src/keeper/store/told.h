/* What the record of a process tells of its confinement. */
#ifndef COOP_KEEPER_TOLD_H
#define COOP_KEEPER_TOLD_H

#include "base/json/jsonw.h"

struct coop_process;

/* The record's `sandbox`. */
void coop_confine_write(const struct coop_process *process, struct coop_jsonw *w, const char *name);

#endif
