#include "keeper/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdpass.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/memfd.h"
#include "keeper/keeper.h"
#include "keeper/spawn.h"
#include "sandbox/plan.h"

/* At most this many plans wait for their answer: each carries descriptors, and the kernel bounds those in flight. */
#define SENT_MAX 48u
#define WATCHDOG_MS 10000u
#define USELESS_MAX 5u

extern const uint8_t coop_launcher_image[], coop_launcher_image_end[];

static void on_socket(uv_poll_t *poll, int status, int events);

static int execute(const struct coop_keeper *keeper, int socket, pid_t *ret_pid)
{
	char path[32], name[] = "coop-launcher";
	char *argv[] = {name, NULL}, *envp[] = {NULL};
	posix_spawn_file_actions_t actions;

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", keeper->launcher.image_fd);
	int r = posix_spawn_file_actions_init(&actions);
	for (int fd = 0; r == 0 && fd < 3; fd++)
		r = posix_spawn_file_actions_adddup2(&actions, keeper->null_fd, fd);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, socket, COOP_PLAN_LAUNCHER_FD);
	/* Shares the keeper's memory until it executes: costs the same however large the keeper is. */
	if (r == 0)
		r = posix_spawn(ret_pid, path, &actions, NULL, argv, envp);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int start(struct coop_keeper *keeper)
{
	struct coop_launcher *launcher = &keeper->launcher;
	int pair[2], r = 0;
	pid_t pid = 0;

	uv_poll_t *poll = coop_mem_zalloc(sizeof *poll);
	if (!poll)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		r = -errno;
	COOP_AUTO_FD int ours = r < 0 ? -1 : pair[0];
	COOP_AUTO_FD int theirs = r < 0 ? -1 : pair[1];
	if (r == 0 && fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r == 0)
		r = execute(keeper, theirs, &pid);
	if (r == 0)
		r = uv_poll_init(&keeper->loop, poll, ours);
	if (r < 0) {
		free(poll);
		return r;
	}
	/* Commands get the limit that the user had, not the one that the keeper raised for itself. */
	(void)prlimit(pid, RLIMIT_NOFILE, &keeper->original_nofile, NULL);
	launcher->pid = pid;
	launcher->fd = COOP_TAKE_FD(ours);
	launcher->poll = poll;
	launcher->poll_events = UV_READABLE;
	poll->data = keeper;
	return uv_poll_start(poll, UV_READABLE, on_socket);
}

static void on_poll_closed(uv_handle_t *handle)
{
	free(handle);
}

static void disconnect(struct coop_launcher *launcher)
{
	if (launcher->poll)
		uv_close((uv_handle_t *)launcher->poll, on_poll_closed);
	if (launcher->fd >= 0)
		(void)close(launcher->fd);
	launcher->poll = NULL;
	launcher->fd = -1;
}

/* Whether some plan waits for the launcher that runs now. */
static bool owes_answers(const struct coop_launcher *launcher)
{
	COOP_LIST_EACH(&launcher->sent, link)
	{
		if (!COOP_LIST_ITEM(link, struct coop_spawn, in_launcher)->unanswered)
			return true;
	}
	return false;
}

static void on_watchdog(uv_timer_t *timer)
{
	struct coop_keeper *keeper = timer->data;

	if (!keeper->launcher.pid || !owes_answers(&keeper->launcher))
		return;
	coop_log(COOP_LOG_ERROR, "launcher does not answer: it is ended and another started pid=%d",
		 keeper->launcher.pid);
	(void)kill(keeper->launcher.pid, SIGKILL); /* our unreaped child */
}

uint64_t coop_launcher_answered(const struct coop_keeper *keeper)
{
	const struct coop_launcher *launcher = &keeper->launcher;

	if (coop_list_empty(&launcher->sent))
		return launcher->sequence;
	return COOP_LIST_ITEM(launcher->sent.next, struct coop_spawn, in_launcher)->sequence - 1;
}

static void update_poll(struct coop_keeper *keeper)
{
	struct coop_launcher *launcher = &keeper->launcher;
	bool more = !coop_list_empty(&launcher->queue) && launcher->sent_count < SENT_MAX;
	int events = UV_READABLE | (more ? UV_WRITABLE : 0);

	if (!launcher->poll || events == launcher->poll_events)
		return;
	launcher->poll_events = events;
	(void)uv_poll_start(launcher->poll, events, on_socket);
}

static void send_queue(struct coop_keeper *keeper)
{
	struct coop_launcher *launcher = &keeper->launcher;

	while (launcher->poll && !coop_list_empty(&launcher->queue) &&
	       launcher->sent_count < SENT_MAX) {
		struct coop_spawn *spawn =
			COOP_LIST_ITEM(launcher->queue.next, struct coop_spawn, in_launcher);
		struct coop_plan *plan =
			(struct coop_plan *)(void *)coop_buf_front(&spawn->message);
		plan->sequence = launcher->sequence + 1;
		int r = coop_fdpass_send(launcher->fd, plan, coop_buf_size(&spawn->message),
					 spawn->fds, (size_t)spawn->fd_count);
		if (r == -EAGAIN || r == -EPIPE || r == -ECONNRESET)
			break; /* full; or gone, and SIGCHLD will say so */
		coop_list_remove(&spawn->in_launcher);
		if (r < 0) {
			coop_spawn_answered(spawn, 0, -r);
			continue;
		}
		spawn->sequence = ++launcher->sequence;
		coop_list_add(&launcher->sent, &spawn->in_launcher);
		launcher->sent_count++;
		coop_spawn_sent(spawn);
		(void)uv_timer_start(&launcher->watchdog, on_watchdog, WATCHDOG_MS, 0);
	}
	update_poll(keeper);
}

void coop_launcher_submit(struct coop_keeper *keeper, struct coop_spawn *spawn)
{
	/* The last one died and could not be replaced then: perhaps now. */
	int r = keeper->launcher.pid ? 0 : start(keeper);

	if (r < 0) {
		coop_spawn_answered(spawn, 0, -r);
		return;
	}
	coop_list_add(&keeper->launcher.queue, &spawn->in_launcher);
	send_queue(keeper);
}

void coop_launcher_settled(struct coop_keeper *keeper, struct coop_spawn *spawn)
{
	coop_list_remove(&spawn->in_launcher);
	keeper->launcher.sent_count--;
	if (coop_list_empty(&keeper->launcher.sent))
		(void)uv_timer_stop(&keeper->launcher.watchdog);
	/* Before the loop sleeps, and not from here: this may be called while reaping. */
	keeper->reap_again = keeper->reap_again || keeper->reap_pid;
}

static void on_reply(struct coop_keeper *keeper, const struct coop_plan_reply *reply)
{
	COOP_LIST_EACH(&keeper->launcher.sent, link)
	{
		struct coop_spawn *spawn = COOP_LIST_ITEM(link, struct coop_spawn, in_launcher);
		if (spawn->sequence == reply->sequence) {
			keeper->launcher.useless = 0;
			coop_spawn_answered(spawn, reply->pid, reply->error);
			return;
		}
	}
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
	struct coop_keeper *keeper = poll->data;
	struct coop_plan_reply reply;
	int fds[COOP_FDPASS_MAX];
	size_t count;

	(void)status;
	(void)events;
	keeper->wakeups++;
	while (keeper->launcher.poll == poll) {
		ssize_t n =
			coop_fdpass_receive(keeper->launcher.fd, &reply, sizeof reply, fds, &count);
		if (n == (ssize_t)sizeof reply) {
			on_reply(keeper, &reply);
			continue;
		}
		/* End of file: its death is reported too, and is what starts the next one. */
		if (n != -EAGAIN)
			disconnect(&keeper->launcher);
		break;
	}
	if (keeper->launcher.poll == poll)
		send_queue(keeper);
}

void coop_launcher_died(struct coop_keeper *keeper)
{
	struct coop_launcher *launcher = &keeper->launcher;
	uint64_t last = launcher->sequence;

	/* Replies that it still sent are in the socket. */
	if (launcher->poll)
		on_socket(launcher->poll, 0, UV_READABLE);
	disconnect(launcher);
	launcher->pid = 0;
	/* Plans that went to this one are not the next one's fault. */
	(void)uv_timer_stop(&launcher->watchdog);
	if (keeper->stopping && coop_list_empty(&launcher->sent) &&
	    coop_list_empty(&launcher->queue))
		return;
	launcher->restarts++;
	/* One that dies again and again without a single answer is not started again until somebody needs it. */
	int r = launcher->useless++ < USELESS_MAX ? start(keeper) : -ECHILD;
	coop_log(COOP_LOG_WARN, "launcher died, another started restarts=%u result=%s",
		 launcher->restarts, r < 0 ? coop_err_errno_name(-r) : "ok");
	COOP_LIST_EACH(&launcher->sent, link)
	{
		struct coop_spawn *spawn = COOP_LIST_ITEM(link, struct coop_spawn, in_launcher);
		/* One that is tried again goes to the new launcher, at the end of this very list. */
		if (spawn->sequence <= last)
			coop_spawn_unanswered(spawn);
	}
	while (r < 0 && !coop_list_empty(&launcher->queue)) {
		struct coop_spawn *spawn =
			COOP_LIST_ITEM(launcher->queue.next, struct coop_spawn, in_launcher);
		coop_list_remove(&spawn->in_launcher);
		coop_spawn_answered(spawn, 0, -r);
	}
	send_queue(keeper);
}

int coop_launcher_init(struct coop_keeper *keeper)
{
	struct coop_launcher *launcher = &keeper->launcher;

	*launcher = (struct coop_launcher){.fd = -1, .image_fd = -1};
	coop_list_init(&launcher->queue);
	coop_list_init(&launcher->sent);
	(void)uv_timer_init(&keeper->loop, &launcher->watchdog);
	launcher->watchdog.data = keeper;
	launcher->image_fd =
		coop_memfd_sealed("coop-launcher", coop_launcher_image,
				  (size_t)(coop_launcher_image_end - coop_launcher_image));
	return launcher->image_fd < 0 ? launcher->image_fd : start(keeper);
}

void coop_launcher_free(struct coop_keeper *keeper)
{
	disconnect(&keeper->launcher);
	/* Nothing of the keeper outlives it, not even for a moment. */
	if (keeper->launcher.pid) {
		(void)kill(keeper->launcher.pid, SIGKILL);
		(void)waitpid(keeper->launcher.pid, NULL, 0);
	}
	uv_close((uv_handle_t *)&keeper->launcher.watchdog, NULL);
	if (keeper->launcher.image_fd >= 0)
		(void)close(keeper->launcher.image_fd);
}
