/* What the kernel says about an end that was no success, in words for people. Never a guess from
 * what a process printed. */
#ifndef COOP_KEEPER_FACTS_H
#define COOP_KEEPER_FACTS_H

#include "base/json/jsonw.h"

struct coop_process;

/* A list of strings, or nothing where there is nothing to say. */
void coop_facts_write(const struct coop_process *process, struct coop_jsonw *w, const char *name);

#endif
