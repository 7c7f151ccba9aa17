/* A process being started: pipes, plan, the launcher's answer, and the child's own word over its
 * channel. spawn_begin.c sends it on its way, spawn.c hears what became of it. */
#ifndef COOP_KEEPER_SPAWN_H
#define COOP_KEEPER_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/list.h"
#include "interface/err.h"
#include "keeper/launch/launch.h"

struct coop_launcher;
struct coop_process;
struct coop_request;
struct coop_wire;

typedef void (*coop_spawn_replies)(struct coop_request *request, struct coop_process *process);

struct coop_spawn {
	struct coop_launch launch;
	struct coop_process *process; /* a reference */
	struct coop_request *request; /* NULL once its connection is gone */
	coop_spawn_replies reply;     /* answers that once the program runs */
	struct coop_launcher *launcher;
	/* in two steps: what the sandbox is sent that the message makes; empty: the message is
	 * all */
	struct coop_buf rest;
	int fds[COOP_LAUNCH_FDS_MAX];
	unsigned attempts;
	bool stood;        /* its first process was stopped, and has been killed for that */
	bool stays;        /* the launcher does, for others of its agent: it counts this one */
	bool answered;     /* the launcher's reply is known, or will never come */
	bool heard;        /* the child has said how it went */
	pid_t cloned_pid;  /* the child's own word */
	pid_t program_pid; /* with a first process of its own: that one's word */
	int reply_error;
	enum coop_plan_step reply_step;
	struct coop_plan_status failure; /* event 0: none */
	/* the keeper's own, while the sandbox was being made already; NULL: none */
	struct coop_err *refusal;
	bool ended; /* the program ended before its start was known */
	bool alone, root_gone;
	int wait_status;
	struct rusage usage;
	struct coop_wire *wire;
};

/* What a spawn needs beyond the process itself; everything is copied or duplicated. */
struct coop_observer;
extern const struct coop_observer coop_start_observer;
/* What the launcher says of a spawn. */
extern const struct coop_launch_calls coop_spawn_launch;

struct coop_spawn_command {
	coop_spawn_replies reply;
	char *const *argv, *const *envp;
	int cwd_fd;
	int program_fd; /* what is executed instead of argv[0]; -1: nothing */
	bool stdin_pipe;
	const uint8_t *stdin_bytes;
	size_t stdin_size;
	bool keep_stdin_open;
};

/* Starts the process, which is in the registry already. 0: the request will be answered when the
 * program has been executed or could not be. Else nothing was started and the error is filled; the
 * request is the caller's. */
int coop_spawn_start(struct coop_process *process, const struct coop_spawn_command *command,
		     struct coop_request *request, struct coop_err *err);

/* Sends the plan to the launcher, over a channel of its own; in two steps the rest goes ahead, if
 * it is there already. 0, or -errno: it is still the caller's. The launcher's refusal may end the
 * spawn before this returns. */
int coop_spawn_submit(struct coop_spawn *spawn);
/* It was submitted, and cannot be gone on with. The request is answered when nothing of it is left
 * with the launcher. */
void coop_spawn_abandon(struct coop_spawn *spawn, const struct coop_err *err);
/* Gives back all that it holds. */
void coop_spawn_release(struct coop_spawn *spawn);

/* What the child says over the wire is the spawn's to hear. */
void coop_spawn_listen(struct coop_spawn *spawn, struct coop_wire *wire);

/* Our child was reaped while it was being started. */
void coop_spawn_root_gone(struct coop_spawn *spawn, int wait_status, const struct rusage *usage);

#endif
