/* A function with a stack of its own, which can be suspended where it stands and resumed later: a
 * tool that asks the keeper three times reads as three calls one after the other, while the loop
 * serves others in between. One thread; a fiber never resumes another. */
#ifndef COOP_TOOLS_FIBER_H
#define COOP_TOOLS_FIBER_H

#include <stdbool.h>
#include <stddef.h>

/* Memory is only used as far as it is touched; below it lies a page that nobody may touch. */
#define COOP_FIBER_STACK ((size_t)256 << 10)

struct coop_fiber;

/* `run` is not begun yet. NULL without memory. */
struct coop_fiber *coop_fiber_new(void (*run)(void *context), void *context);
/* Runs it until it suspends itself (false) or has returned (true). */
bool coop_fiber_resume(struct coop_fiber *fiber);
/* From within: back to whoever resumed it. */
void coop_fiber_suspend(struct coop_fiber *fiber);
/* One that has returned, or never began. NULL is fine. */
void coop_fiber_free(struct coop_fiber *fiber);
/* Gives back the stacks that are kept for the next ones. */
void coop_fiber_trim(void);

#endif
