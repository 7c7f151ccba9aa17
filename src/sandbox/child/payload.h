/* The last steps of a child before it becomes the program, the same for every way of starting one.
 * In the child: only system calls. */
#ifndef COOP_SANDBOX_PAYLOAD_H
#define COOP_SANDBOX_PAYLOAD_H

#include <linux/filter.h>
#include <stdbool.h>

#include "sandbox/child/program.h"
#include "sandbox/layout/body.h"
#include "sandbox/plan/plan.h"

/* The system call filters that a launcher was given. */
struct coop_filters {
	struct sock_fprog program[8]; /* by enum coop_filter */
};

struct coop_payload {
	const struct coop_plan *plan;
	const struct coop_plan_rule *rules;
	const struct coop_plan_limit *limits;
	const char *text;
	struct coop_program program;
	const int *fds; /* enum coop_plan_fd */
	const struct coop_filters *filters;
	int cwd;         /* the working directory in the view; -1: COOP_PLAN_FD_CWD */
	int ruleset;     /* of Landlock, begun earlier; -1 */
	bool restricted; /* no_new_privs, capabilities and the filter are in force already */
	bool shared;     /* the table of fds is another's: leave it first */
	/* Where a failure is told: over the channel, or to the process whose memory this one
	 * shares. */
	volatile struct coop_plan_status *shared_failure;
};

/* Takes the body apart (NULL with COOP_PLAN_BODY_FD: it comes as an fd) and fills the payload. 0 or
 * -errno. */
int coop_payload_unpack(struct coop_payload *payload, const char *body, struct coop_body_view *ret);

/* Begins the Landlock ruleset with the rules that are known; more may follow. 0 or -errno. */
int coop_payload_begin_landlock(struct coop_payload *payload);

/* What can be done before the command is known, as `plan` says. On shared memory too: it leaves
 * errno alone. */
void coop_payload_restrict(struct coop_payload *payload, const struct coop_plan *plan);

/* All the rest. Never returns. */
_Noreturn void coop_payload_run(struct coop_payload *payload);

#endif
