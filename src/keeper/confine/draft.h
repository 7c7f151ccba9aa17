/* A spawn on its way from the arguments to the launcher: everything is checked here, and nothing is
 * started. */
#ifndef COOP_KEEPER_DRAFT_H
#define COOP_KEEPER_DRAFT_H

#include <jansson.h>
#include <stdbool.h>

#include "interface/err.h"
#include "keeper/conf/env.h"
#include "keeper/confine/injections.h"

struct coop_agent;
struct coop_process;
struct coop_request;
struct coop_session;

struct coop_draft {
	struct coop_request *request;
	struct coop_agent *agent; /* who would own it */
	const json_t *args;
	struct coop_process *process; /* a reference; NULL where even that was not to be had */
	const char **argv;            /* borrowed strings */
	struct coop_injections *injections; /* NULL: none */
	struct coop_injections_data input;  /* stdin's bytes, borrowed */
	struct coop_env env;
	struct coop_session *session; /* NULL: the default one */
	int cwd_fd;
	char *cwd_name;  /* as it was called, absolute; NULL: it came to none */
	int program_fd;  /* of a helper, the keeper's own; -1: the command is found by its name */
	bool again;      /* it failed for what a thread must look up first: see preflight.h */
	bool recordable; /* what is wrong may leave a record: no such directory, no such user */
	struct coop_err *err;
};

/* Checks quotas and arguments and fills the draft, whose request, agent and err are set. 0, or the
 * error filled; or -EAGAIN with `again` set. Either way it must be cleared. */
int coop_draft_fill(struct coop_draft *draft);

/* The labels alone, for a record of what cannot be started. 0 or -ENOMEM. */
int coop_draft_labels(struct coop_draft *draft);

void coop_draft_clear(struct coop_draft *draft);

#endif
