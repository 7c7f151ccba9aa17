/* One plan that a launcher is asked to carry out: embedded in what is started by it, a process or a
 * prepared sandbox. The launcher knows only whom to answer. */
#ifndef COOP_KEEPER_LAUNCH_H
#define COOP_KEEPER_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/list.h"
#include "sandbox/plan/plan.h"

#define COOP_LAUNCH_FDS_MAX ((size_t)COOP_PLAN_FD_COUNT + COOP_PLAN_EXTRA_FDS_MAX)

struct coop_launch;

struct coop_launch_calls {
	/* It is about to be sent: the last moment to add what may have become known since. Gives
	 * the descriptors that go with it, and how many. */
	size_t (*sending)(struct coop_launch *launch, int ret_fds[COOP_LAUNCH_FDS_MAX]);
	/* It is on its way: what was sent is the child's alone from here on. */
	void (*sent)(struct coop_launch *launch);
	/* The launcher's answer: the child's pid … */
	void (*answered)(struct coop_launch *launch, pid_t pid);
	/* … or why there is none. */
	void (*refused)(struct coop_launch *launch, int error, enum coop_plan_step step);
	/* With the answer came the net namespace that was made for it; the fd is taken over. */
	void (*net_made)(struct coop_launch *launch, int fd);
	/* The launcher died without an answer. NULL: that is a refusal. */
	void (*unanswered)(struct coop_launch *launch);
};

struct coop_launch {
	const struct coop_launch_calls *calls;
	struct coop_link in_launcher; /* until it is answered, and settled */
	struct coop_buf message;      /* plan and body */
	uint64_t sequence;            /* 0: not sent */
	bool unanswered; /* the launcher died: only the child can say what became of it */
};

#endif
