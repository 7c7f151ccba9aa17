/* The keeper's end of a child's channel: what the child, or the first process of its namespace,
 * tells of itself. */
#ifndef COOP_KEEPER_WIRE_H
#define COOP_KEEPER_WIRE_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

#include "sandbox/plan/plan.h"

struct coop_keeper;
struct coop_wire;

/* One message, and who sent it, as the kernel says. */
typedef void (*coop_wire_message)(struct coop_wire *wire, const struct coop_plan_status *message,
				  pid_t sender);
/* The other end is closed: nothing more will come. */
typedef void (*coop_wire_end)(struct coop_wire *wire);

struct coop_wire {
	struct coop_keeper *keeper;
	int fd;
	bool closed, over;
	uv_poll_t poll;
	coop_wire_message on_message;
	coop_wire_end on_end;
	void *user;
};

/* Makes a pair; the other end goes to *ret_theirs. NULL with *ret_error set to an errno. */
struct coop_wire *coop_wire_new(struct coop_keeper *keeper, int *ret_theirs, int *ret_error);

/* Reads what is there already: messages come before the news of the sender's death. */
void coop_wire_drain(struct coop_wire *wire);

/* What an EXITED says of the use of resources. */
void coop_wire_usage(const struct coop_plan_status *message, struct rusage *ret);

/* Nothing is called any more. */
void coop_wire_close(struct coop_wire *wire);

#endif
