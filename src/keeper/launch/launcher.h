/* The keeper's side of launchers: starts them from the copy inside this program, sends plans, takes
 * replies, starts another if one dies. There is one for each kind and identity that is needed. */
#ifndef COOP_KEEPER_LAUNCHER_H
#define COOP_KEEPER_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "keeper/launch/launch.h"
#include "sandbox/layout/host.h"
#include "sandbox/plan/plan.h"

struct coop_keeper;
struct coop_helpers;
struct coop_launchers;
struct coop_launch;

#define COOP_LAUNCHER_DOORS_MAX 8

/* What one launcher is, for ever. */
struct coop_launcher_class {
	enum coop_launcher_kind kind;
	bool other_ids; /* not the keeper's own, but these */
	uint32_t uid, gid;
	uint64_t cell; /* in a control group, for one process; 0: for all */
	bool stays;    /* in a control group, for all of an agent: parks.h */
};

struct coop_launcher {
	struct coop_keeper *keeper;
	struct coop_link in_all;
	struct coop_launcher_class class;
	int doors[COOP_LAUNCHER_DOORS_MAX]; /* cgroup.procs of groups that it enters first */
	int door_count;
	bool retired; /* not started again */
	bool ready;   /* the one that runs has become what it should be */
	bool greeted; /* it has said whether it has */
	bool waits;   /* it is to be started as soon as the first of its kind has said so */
	pid_t pid;    /* 0: none runs */
	int fd;
	int userns_fd; /* above the sandboxes; the next one joins it. -1: not known yet */
	/* Its own allocation: closing it takes a turn of the loop, and a new one may start before
	 * that. */
	uv_poll_t *poll;
	int poll_events;
	uint64_t last_sent; /* sequence of the last plan that it was sent */
	unsigned useless;   /* so many in a row died without an answer */
	struct coop_plan_reply
		refusal;        /* why it could not become what it should be; error 0: it could */
	struct coop_link queue; /* struct coop_launch not sent yet */
	unsigned sent_count;
	struct coop_link sent;  /* sent, not answered; oldest first */
	struct coop_link fills; /* of prepared sandboxes, likewise */
	uv_timer_t watchdog;    /* runs while something is sent and not answered */
	unsigned spawns;        /* under way that may come to it still */
};

/* Makes the image and the filters. 0 or -errno. Must be
 * called on the keeper's main thread: launchers and all processes die with the thread that started
 * them. */
int coop_launchers_new(struct coop_launchers **ret);
void coop_launchers_free(struct coop_keeper *keeper);

/* struct coop_launcher, oldest first. */
struct coop_link *coop_launchers_all(const struct coop_keeper *keeper);
unsigned coop_launchers_restarts(const struct coop_keeper *keeper);
/* Of the last plan that was sent to any. */
uint64_t coop_launchers_sequence(const struct coop_keeper *keeper);
/* See helpers.h. */
struct coop_helpers *coop_launchers_helpers(const struct coop_keeper *keeper);

/* Finds out what the host can do for somebody with these ids. 0 or -errno. */
int coop_launchers_probe(struct coop_keeper *keeper, const struct coop_launcher_class *class,
			 struct coop_host *ret);

/* The launcher of that class; it is started when it is needed. NULL without memory. */
struct coop_launcher *coop_launcher_get(struct coop_keeper *keeper,
					const struct coop_launcher_class *class);
/* It has served its one process, or never will: it is gone when it has ended. */
void coop_launcher_retire(struct coop_launcher *launcher);
/* Starts it ahead of need. */
void coop_launcher_warm(struct coop_launcher *launcher);
/* The one with that pid, or NULL. */
struct coop_launcher *coop_launcher_by_pid(const struct coop_keeper *keeper, pid_t pid);

/* Queues a spawn's plan; it is sent when the socket takes it. The spawn's `answered` is called in
 * time. */
void coop_launcher_submit(struct coop_launcher *launcher, struct coop_launch *launch);

/* Whether nobody waits for it: then it may prepare a slot. */
bool coop_launcher_idle(const struct coop_launcher *launcher);

/* Whether nothing is under way that knows of it: then it may be retired. */
bool coop_launcher_unused(const struct coop_launcher *launcher);

/* Sends the plan of a slot at once. 0, or -errno: then it is not under way. */
int coop_launcher_fill(struct coop_launcher *launcher, struct coop_buf *message, const int *fds,
		       size_t count, struct coop_launch *fill);

/* Every plan up to this one has been answered, or its child has spoken for itself. */
uint64_t coop_launchers_answered(const struct coop_keeper *keeper);

/* A spawn is settled: it leaves the list, which may let the reaper go on. */
void coop_launcher_settled(struct coop_launcher *launcher, struct coop_launch *launch);

/* The launcher's pid was reaped. */
void coop_launcher_died(struct coop_launcher *launcher);

#endif
