/* The program that is to run: its arguments and variables, found in a plan's body, and the search
 * for it. In the child: no heap. */
#ifndef COOP_SANDBOX_PROGRAM_H
#define COOP_SANDBOX_PROGRAM_H

#include "sandbox/plan/plan.h"

struct coop_program {
	char **argv, **envp;
};

/* Lays out the pointers. 0 or -errno (-EPROTO: the body does not hold what the plan says). */
int coop_program_unpack(const struct coop_plan *plan, char *text, const char *end,
			struct coop_program *ret);

/* Executes it, as execvpe would. Returns only if that fails, with errno. */
void coop_program_execute(const struct coop_program *program);

/* Executes what the descriptor holds, wherever its name leads in this view, if it has one at all.
 * Returns only if that fails, with errno. */
void coop_program_execute_fd(const struct coop_program *program, int fd);

#endif
