/* A call as run.c and call.c see it. */
#ifndef COOP_TOOLS_RUN_PRIVATE_H
#define COOP_TOOLS_RUN_PRIVATE_H

#include "doors/tools/core/fiber.h"
#include "doors/tools/core/run.h"

struct coop_tool_run {
	struct coop_tool_call call; /* first: handlers have only this */
	const struct coop_tool_host *host;
	struct coop_tool_client client;
	struct coop_fiber *fiber;
	uv_timer_t timer;
	int64_t started;
	int status;   /* what the handler returned */
	char *own;    /* a process that ends if the caller gives up; NULL: none */
	bool running; /* the fiber is on the processor */
	bool over;    /* the handler has returned */
	bool cancelled;
	bool woken, timed_out; /* what a pause waits for */
	bool no_memory;        /* a member of the result is missing */
};

/* Lets the fiber go on, wherever it waits; it looks itself whether what it waits for is there. */
void coop_tool_run_kick(struct coop_tool_run *run);
/* Sets timed_out at that time and kicks; negative: never. */
void coop_tool_run_alarm(struct coop_tool_run *run, int64_t until);

#endif
