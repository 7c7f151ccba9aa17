/* Whether a program is one that a list names. */
#ifndef COOP_POLICY_MATCH_H
#define COOP_POLICY_MATCH_H

#include "policy/rules.h"
#include "policy/runs.h"

/* A program and the file it is; looked up once, when first needed. */
struct coop_match {
	const struct coop_run *run;
	const char *cwd, *path;
	bool looked;
	char found[4096];    /* as PATH has it; empty: nowhere */
	char resolved[4096]; /* without links; empty likewise */
};

/* The first entry that names it, or NULL. An entry with a slash is a path, any other a name. */
const struct coop_rule *coop_match_find(const struct coop_rules *rules, struct coop_match *match);

/* Whether there is such a program at all. */
bool coop_match_exists(struct coop_match *match);

#endif
