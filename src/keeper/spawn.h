/* A process being started: pipes, plan, the launcher's answer, and the child's own word over its status pipe. */
#ifndef COOP_KEEPER_SPAWN_H
#define COOP_KEEPER_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "keeper/list.h"
#include "sandbox/plan.h"

struct coop_process;
struct coop_request;

struct coop_spawn {
	struct coop_process *process; /* a reference */
	struct coop_request *request; /* NULL once its connection is gone */
	struct coop_link in_launcher;
	struct coop_buf message; /* plan and body */
	int fds[COOP_PLAN_FD_COUNT];
	int fd_count;
	uint64_t sequence; /* 0: not sent */
	unsigned attempts;
	bool answered;    /* the launcher's reply is known, or will never come */
	bool heard;       /* the status pipe has ended */
	bool unanswered;  /* the launcher died: only the child can say what became of it */
	pid_t cloned_pid; /* the child's own word */
	int reply_error;
	struct coop_plan_status failure; /* step CLONED: none */
	bool ended;                      /* the child was reaped before its start was known */
	int wait_status;
	struct rusage usage;
	int status_fd;
	uv_poll_t status_poll;
	bool polling;
};

/* What a spawn needs beyond the process itself; everything is copied or duplicated. */
struct coop_spawn_command {
	char *const *argv, *const *envp;
	int cwd_fd;
	bool stdin_pipe;
	const uint8_t *stdin_bytes;
	size_t stdin_size;
	bool keep_stdin_open;
};

/* Starts the process, which is in the registry already. 0: the request will be answered when the program has been executed or
 * could not be. Else nothing was started and the error is filled; the request is the caller's. */
int coop_spawn_start(struct coop_process *process, const struct coop_spawn_command *command,
		     struct coop_request *request, struct coop_err *err);

/* The plan is on its way: from here on the status pipe's other end is the child's alone. */
void coop_spawn_sent(struct coop_spawn *spawn);

/* The launcher's reply: pid, or an errno. */
void coop_spawn_answered(struct coop_spawn *spawn, pid_t pid, int error);

/* The launcher died without a reply. The status pipe tells what became of the plan: the child's pid, or the end of file of one
 * that was never cloned. */
void coop_spawn_unanswered(struct coop_spawn *spawn);

#endif
