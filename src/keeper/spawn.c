#include "keeper/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/memfd.h"
#include "keeper/connection.h"
#include "keeper/keeper.h"
#include "keeper/kill.h"
#include "keeper/op_spawn.h"
#include "keeper/process.h"
#include "keeper/request.h"
#include "keeper/spawn_fds.h"

#define ATTEMPTS_MAX 3 /* plans lost with a dying launcher are sent again */

static int failed_at(struct coop_err *err, const char *step, int error)
{
	int r = coop_err_set(err, COOP_SPAWN_FAILED, "the process could not be started: %s: %s",
			     step, strerror(error));

	coop_err_detail(err, "step", step);
	coop_err_detail(err, "errno", coop_err_errno_name(error));
	return r;
}

static uint32_t append_all(struct coop_buf *body, char *const *strings, bool *failed)
{
	uint32_t count = 0;

	for (; strings[count]; count++)
		*failed = *failed ||
			  coop_buf_append(body, strings[count], strlen(strings[count]) + 1) < 0;
	return count;
}

static int make_message(struct coop_spawn *spawn, const struct coop_spawn_command *command)
{
	struct coop_plan plan = {.magic = COOP_PLAN_MAGIC,
				 .flags = spawn->process->pty ? COOP_PLAN_TERMINAL : 0,
				 .mark = spawn->process->keeper->mark | spawn->process->n};
	struct coop_buf body = {0};
	bool failed = false;
	int r = 0;

	plan.argc = append_all(&body, command->argv, &failed);
	plan.envc = append_all(&body, command->envp, &failed);
	plan.body_size = coop_buf_size(&body);
	if (!failed && sizeof plan + plan.body_size > COOP_PLAN_INLINE_MAX) {
		plan.flags |= COOP_PLAN_BODY_FD;
		r = coop_memfd_sealed("coop-plan", coop_buf_front(&body), plan.body_size);
		spawn->fds[COOP_PLAN_FD_BODY] = r;
		spawn->fd_count = COOP_PLAN_FD_COUNT;
	}
	failed = failed || coop_buf_append(&spawn->message, &plan, sizeof plan) < 0;
	if (!(plan.flags & COOP_PLAN_BODY_FD))
		failed = failed || coop_buf_append(&spawn->message, coop_buf_front(&body),
						   plan.body_size) < 0;
	coop_buf_clear(&body);
	return failed ? -ENOMEM : r < 0 ? r : 0;
}

static void on_poll_closed(uv_handle_t *handle)
{
	struct coop_spawn *spawn = handle->data;

	coop_process_unref(spawn->process);
	free(spawn);
}

static void release(struct coop_spawn *spawn)
{
	spawn->process->spawn = NULL;
	coop_spawn_fds_close(spawn);
	coop_buf_clear(&spawn->message);
	if (spawn->polling) {
		uv_close((uv_handle_t *)&spawn->status_poll, on_poll_closed);
		(void)close(spawn->status_fd);
		return;
	}
	if (spawn->status_fd >= 0)
		(void)close(spawn->status_fd);
	coop_process_unref(spawn->process);
	free(spawn);
}

static const char *step_name(int step)
{
	static const char *const names[] = {"clone", "body",  "death_signal", "session", "terminal",
					    "stdio", "chdir", "close_fds",    "exec"};

	return step >= 0 && step < COOP_STEP_COUNT ? names[step] : "unknown";
}

static void drop_request(struct coop_request *request)
{
	struct coop_process *process = request->state;

	if (process->spawn)
		process->spawn->request = NULL;
}

static void fail_spawn(struct coop_spawn *spawn)
{
	struct coop_process *process = spawn->process;
	struct coop_request *request = spawn->request;
	struct coop_err err;
	int error = spawn->reply_error ? spawn->reply_error : spawn->failure.value;

	(void)failed_at(&err, step_name(spawn->failure.step), error);
	if (spawn->failure.step == COOP_STEP_EXEC)
		(void)snprintf(err.message, sizeof err.message, "cannot execute %.300s: %s",
			       process->labels.command, strerror(error));
	if (error == E2BIG)
		(void)coop_err_field(&err, COOP_TOO_LARGE, "argv",
				     "argv and env are larger than the kernel takes");
	/* Only what a user could have meant as a command leaves a record; want of resources does not. */
	bool keep =
		process->record_failure && spawn->failure.step >= COOP_STEP_CHDIR && error != E2BIG;
	coop_registry_clear_pid(
		process); /* the child is reaped as somebody unknown: it never was a process of ours */
	process->record_failure = keep;
	release(spawn);
	coop_process_failed(process, error == ENOENT ? 127 : 126);
	if (keep)
		coop_err_detail(&err, "id", process->id);
	else
		coop_registry_remove(process);
	if (request) {
		request->on_drop = NULL;
		coop_request_fail(request, &err);
	}
}

static void succeed(struct coop_spawn *spawn)
{
	struct coop_process *process = spawn->process;
	struct coop_request *request = spawn->request;
	bool ended = spawn->ended;
	int wait_status = spawn->wait_status;
	struct rusage usage = spawn->usage;

	release(spawn);
	coop_process_executed(process);
	if (request) {
		request->on_drop = NULL;
		coop_spawn_reply(request, process);
	}
	coop_kill_started(process);
	if (ended)
		coop_process_ended(process, wait_status, &usage);
}

/* Both words are in: the launcher's (or it is dead) and the child's. */
static void conclude(struct coop_spawn *spawn)
{
	struct coop_process *process = coop_process_ref(spawn->process);

	if (!spawn->answered || !spawn->heard) {
		coop_process_unref(process);
		return;
	}
	if (spawn->reply_error || spawn->failure.step != COOP_STEP_CLONED)
		fail_spawn(spawn);
	else
		succeed(spawn);
	coop_process_unref(process);
}

static int watch_status(struct coop_spawn *spawn);

/* Sends the plan once more, through the launcher that was started meanwhile. 0: the old spawn is gone; -errno: it is still the
 * caller's. */
static int try_again(struct coop_spawn *spawn)
{
	struct coop_process *process = spawn->process;
	struct coop_spawn *next =
		spawn->attempts + 1 < ATTEMPTS_MAX ? coop_mem_alloc(sizeof *next) : NULL;

	if (!next)
		return -EIO;
	*next = (struct coop_spawn){
		.process = coop_process_ref(process),
		.request = spawn->request,
		.message = spawn->message,
		.fd_count = spawn->fd_count,
		.attempts = spawn->attempts + 1,
		.status_fd = -1,
	};
	memcpy(next->fds, spawn->fds, sizeof next->fds);
	for (int i = 0; i < COOP_PLAN_FD_COUNT; i++)
		spawn->fds[i] = -1;
	spawn->message = (struct coop_buf){0};
	release(spawn);
	process->spawn = next;
	int r = watch_status(next);
	if (r < 0)
		coop_spawn_answered(next, 0, -r);
	else
		coop_launcher_submit(process->keeper, next);
	return 0;
}

/* The launcher died after it had cloned: the child's own word stands in for its reply. */
static void adopt(struct coop_spawn *spawn)
{
	spawn->unanswered = false;
	coop_spawn_answered(spawn, spawn->cloned_pid, 0);
}

/* The launcher died with this plan, and the child's silence says that it was never cloned: it is sent again. */
static void repeat(struct coop_spawn *spawn)
{
	coop_launcher_settled(spawn->process->keeper, spawn);
	if (try_again(spawn) == 0)
		return;
	spawn->sequence = 0; /* nobody waits for its answer any more */
	coop_spawn_answered(spawn, 0, EIO);
}

static void on_status(uv_poll_t *poll, int status, int events)
{
	struct coop_spawn *spawn = poll->data;
	struct coop_plan_status message;
	ssize_t n;

	(void)status;
	(void)events;
	while ((n = read(spawn->status_fd, &message, sizeof message)) == (ssize_t)sizeof message) {
		if (message.step == COOP_STEP_CLONED)
			spawn->cloned_pid = message.value;
		else
			spawn->failure = message;
	}
	if (n >= 0 || (errno != EAGAIN && errno != EINTR)) {
		(void)uv_poll_stop(poll);
		spawn->heard = true;
	}
	if (spawn->unanswered)
		coop_spawn_unanswered(spawn);
	else
		conclude(spawn);
}

void coop_spawn_sent(struct coop_spawn *spawn)
{
	/* From here on only the child holds this end: the pipe ends when it executes or dies. The other ends are kept for
	 * another try until the launcher has answered. */
	(void)close(spawn->fds[COOP_PLAN_FD_STATUS]);
	spawn->fds[COOP_PLAN_FD_STATUS] = -1;
}

void coop_spawn_answered(struct coop_spawn *spawn, pid_t pid, int error)
{
	struct coop_process *process = spawn->process;
	bool sent = spawn->sequence != 0;

	if (error == 0 && coop_registry_set_pid(process, pid) < 0) {
		error = ENOMEM;
		(void)kill(pid, SIGKILL); /* it cannot be kept; our unreaped child */
	}
	coop_spawn_fds_close(spawn);
	spawn->answered = true;
	spawn->reply_error = error;
	if (error)
		spawn->heard = true;
	if (sent)
		coop_launcher_settled(process->keeper, spawn);
	conclude(spawn);
}

void coop_spawn_unanswered(struct coop_spawn *spawn)
{
	spawn->unanswered = true;
	if (spawn->cloned_pid)
		adopt(spawn);
	else if (spawn->heard)
		repeat(spawn);
}

static int watch_status(struct coop_spawn *spawn)
{
	struct coop_keeper *keeper = spawn->process->keeper;
	int r = coop_spawn_fds_pipe(keeper, 0, &spawn->status_fd, &spawn->fds[COOP_PLAN_FD_STATUS]);

	if (r == 0)
		r = uv_poll_init(&keeper->loop, &spawn->status_poll, spawn->status_fd);
	if (r < 0)
		return r;
	spawn->status_poll.data = spawn;
	spawn->polling = true;
	return uv_poll_start(&spawn->status_poll, UV_READABLE, on_status);
}

static int prepare(struct coop_spawn *spawn, const struct coop_spawn_command *command)
{
	int r = coop_spawn_fds_open(spawn, command->stdin_pipe);

	if (r == 0)
		r = watch_status(spawn);
	if (r == 0) {
		spawn->fds[COOP_PLAN_FD_CWD] = fcntl(command->cwd_fd, F_DUPFD_CLOEXEC, 3);
		r = spawn->fds[COOP_PLAN_FD_CWD] < 0 ? -errno : 0;
	}
	return r < 0 ? r : make_message(spawn, command);
}

int coop_spawn_start(struct coop_process *process, const struct coop_spawn_command *command,
		     struct coop_request *request, struct coop_err *err)
{
	struct coop_spawn *spawn = coop_mem_zalloc(sizeof *spawn);

	if (!spawn)
		return coop_err_no_memory(err);
	spawn->process = coop_process_ref(process);
	spawn->request = request;
	spawn->status_fd = -1;
	spawn->fd_count = COOP_PLAN_FD_BODY;
	for (int i = 0; i < COOP_PLAN_FD_COUNT; i++)
		spawn->fds[i] = -1;
	process->spawn = spawn;
	int r = prepare(spawn, command);
	if (r == 0 && command->stdin_size)
		r = coop_stdin_write(process, command->stdin_bytes, command->stdin_size, NULL);
	if (r == 0 && command->stdin_pipe && command->stdin_bytes && !command->keep_stdin_open)
		r = coop_stdin_end(process, NULL);
	if (r < 0) {
		release(spawn);
		return failed_at(err, "pipe", -r);
	}
	request->state = process;
	request->on_drop = drop_request;
	coop_launcher_submit(process->keeper, spawn);
	return 0;
}
