#include "keeper/launch/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/fdpass.h"
#include "base/io/log.h"
#include "base/mem.h"
#include "interface/err.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/core/meters.h"
#include "keeper/launch/helpers.h"
#include "keeper/launch/launcher_start.h"

/* At most this many plans wait for their answer: each carries descriptors, and the kernel bounds
 * those in flight. */
#define SENT_MAX 48u
#define WATCHDOG_MS 10000u
#define USELESS_MAX 5u

static int execute(struct coop_launcher *launcher, int userns);
static void on_socket(uv_poll_t *poll, int status, int events);
static void on_watchdog(uv_timer_t *timer);
static void refuse_queue(struct coop_launcher *launcher, int error);
static void send_queue(struct coop_launcher *launcher);

/* The one whose namespace it joins; NULL: it makes its own. One in a control group serves the same
 * sessions as the others of its kind, whose networks belong to the namespace of the first of
 * them. */
static struct coop_launcher *first_of_kind(const struct coop_launcher *launcher)
{
	struct coop_launcher_class class = launcher->class;

	if (!class.cell || class.kind == COOP_LAUNCHER_PLAIN)
		return NULL;
	class.cell = 0;
	return coop_launcher_get(launcher->keeper, &class);
}

/* Whether it is not started again and again: it cannot be, or dies without a single answer. */
static bool is_hopeless(const struct coop_launcher *launcher)
{
	return launcher->refusal.error || launcher->useless > USELESS_MAX;
}

/* Whether its namespace will be known soon: it is being started. */
static bool is_coming(const struct coop_launcher *first)
{
	return first->userns_fd < 0 && first->poll && !first->greeted;
}

static void watch(struct coop_launcher *launcher)
{
	(void)uv_timer_start(&launcher->watchdog, on_watchdog, WATCHDOG_MS, 0);
}

/* Starts it, or has it wait for the first of its kind: what it is sent meanwhile stays in its
 * queue. */
static int start(struct coop_launcher *launcher)
{
	struct coop_launcher *first = launcher->userns_fd < 0 ? first_of_kind(launcher) : NULL;

	launcher->waits = false;
	if (first && first->userns_fd < 0 && !is_hopeless(first))
		coop_launcher_warm(first);
	if (first && is_coming(first)) {
		launcher->waits = true;
		return 0;
	}
	return execute(launcher, first ? first->userns_fd : launcher->userns_fd);
}

/* What the first of a kind is like is known, or will not be: those that wait for it go on. */
static void start_waiting(struct coop_launcher *first)
{
	COOP_LIST_EACH(&coop_launchers_of(first->keeper)->all, link)
	{
		struct coop_launcher *launcher = COOP_LIST_ITEM(link, struct coop_launcher, in_all);
		if (!launcher->waits || first_of_kind(launcher) != first)
			continue;
		int r = start(launcher);
		if (r < 0)
			refuse_queue(launcher, -r);
		else
			send_queue(launcher);
	}
}

static int execute(struct coop_launcher *launcher, int userns)
{
	struct coop_keeper *keeper = launcher->keeper;
	COOP_AUTO_FD int fd = -1;
	pid_t pid = 0;
	int ours = -1;

	uv_poll_t *poll = coop_mem_zalloc(sizeof *poll);
	if (!poll)
		return -ENOMEM;
	struct coop_launcher_start how = {.class = &launcher->class,
					  .userns = userns,
					  .doors = launcher->doors,
					  .door_count = launcher->door_count};
	int r = coop_launcher_start(keeper, &how, &ours, &pid);
	fd = ours;
	if (r == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r == 0)
		r = uv_poll_init(coop_loop_of(keeper), poll, fd);
	if (r < 0) {
		free(poll);
		return r;
	}
	launcher->pid = pid;
	launcher->fd = COOP_TAKE_FD(fd);
	launcher->poll = poll;
	launcher->poll_events = UV_READABLE;
	launcher->refusal = (struct coop_plan_reply){0};
	launcher->ready = launcher->greeted = false;
	poll->data = launcher;
	watch(launcher);
	return uv_poll_start(poll, UV_READABLE, on_socket);
}

static void on_poll_closed(uv_handle_t *handle)
{
	free(handle);
}

/* Only the socket: the process is gone when the kernel says so. */
static void disconnect(struct coop_launcher *launcher)
{
	if (launcher->poll)
		uv_close((uv_handle_t *)launcher->poll, on_poll_closed);
	if (launcher->fd >= 0)
		(void)close(launcher->fd);
	launcher->poll = NULL;
	launcher->fd = -1;
}

/* Whether some plan waits for the launcher that runs now, or it has said nothing at all. */
static bool owes_answers(const struct coop_launcher *launcher)
{
	if (!launcher->greeted)
		return true;
	COOP_LIST_EACH(&launcher->sent, link)
	{
		if (!COOP_LIST_ITEM(link, struct coop_launch, in_launcher)->unanswered)
			return true;
	}
	return false;
}

static void on_watchdog(uv_timer_t *timer)
{
	struct coop_launcher *launcher = timer->data;

	if (!launcher->pid || !owes_answers(launcher))
		return;
	coop_log(COOP_LOG_ERROR, "launcher does not answer: it is ended and another started pid=%d",
		 launcher->pid);
	(void)kill(launcher->pid, SIGKILL); /* our unreaped child */
}

/* The lowest number that is still owed an answer by any of them: all before it are known. */
uint64_t coop_launchers_answered(const struct coop_keeper *keeper)
{
	uint64_t answered = coop_launchers_of(keeper)->sequence;

	COOP_LIST_EACH(&coop_launchers_of(keeper)->all, link)
	{
		const struct coop_launcher *launcher =
			COOP_LIST_ITEM(link, struct coop_launcher, in_all);
		if (!coop_list_empty(&launcher->sent)) {
			uint64_t first =
				COOP_LIST_ITEM(launcher->sent.next, struct coop_launch, in_launcher)
					->sequence;
			answered = first - 1 < answered ? first - 1 : answered;
		}
		if (!coop_list_empty(&launcher->fills)) {
			uint64_t first = COOP_LIST_ITEM(launcher->fills.next, struct coop_launch,
							in_launcher)
						 ->sequence;
			answered = first - 1 < answered ? first - 1 : answered;
		}
	}
	return answered;
}

/* Writable is asked for only while something waits, or the loop would spin. */
static void update_poll(struct coop_launcher *launcher)
{
	bool more = !coop_list_empty(&launcher->queue) && launcher->sent_count < SENT_MAX;
	int events = UV_READABLE | (more ? UV_WRITABLE : 0);

	if (!launcher->poll || events == launcher->poll_events)
		return;
	launcher->poll_events = events;
	(void)uv_poll_start(launcher->poll, events, on_socket);
}

/* The number is given in order of sending, which is the order of the answers. */
static int send_plan(struct coop_launcher *launcher, struct coop_launch *launch)
{
	int fds[COOP_LAUNCH_FDS_MAX];
	size_t count = launch->calls->sending(launch, fds);
	struct coop_plan *plan = (struct coop_plan *)(void *)coop_buf_front(&launch->message);

	plan->sequence = coop_launchers_of(launcher->keeper)->sequence + 1;
	return coop_fdpass_send(launcher->fd, plan, coop_buf_size(&launch->message), fds, count);
}

static void send_queue(struct coop_launcher *launcher)
{
	while (launcher->poll && !coop_list_empty(&launcher->queue) &&
	       launcher->sent_count < SENT_MAX) {
		struct coop_launch *launch =
			COOP_LIST_ITEM(launcher->queue.next, struct coop_launch, in_launcher);
		int r = send_plan(launcher, launch);
		if (r == -EAGAIN || r == -EPIPE || r == -ECONNRESET)
			break; /* full; or gone, and SIGCHLD will say so */
		coop_list_remove(&launch->in_launcher);
		if (r < 0) {
			launch->calls->refused(launch, -r, COOP_STEP_CLONE);
			continue;
		}
		launch->sequence = launcher->last_sent =
			++coop_launchers_of(launcher->keeper)->sequence;
		coop_list_add(&launcher->sent, &launch->in_launcher);
		launcher->sent_count++;
		launch->calls->sent(launch);
		/* Later plans do not give it more time for the first. */
		if (!uv_is_active((uv_handle_t *)&launcher->watchdog))
			watch(launcher);
	}
	update_poll(launcher);
}

void coop_launcher_submit(struct coop_launcher *launcher, struct coop_launch *launch)
{
	/* The last one died and could not be replaced then: perhaps now. */
	int r = launcher->pid || launcher->waits ? 0 : start(launcher);

	if (r < 0) {
		launch->calls->refused(launch, -r, COOP_STEP_CLONE);
		return;
	}
	coop_list_add(&launcher->queue, &launch->in_launcher);
	send_queue(launcher);
}

/* Connected, and nothing is asked of it: slots are filled by such a one alone. */
bool coop_launcher_idle(const struct coop_launcher *launcher)
{
	return launcher->poll && coop_list_empty(&launcher->queue) &&
	       coop_list_empty(&launcher->sent) && coop_list_empty(&launcher->fills);
}

bool coop_launcher_unused(const struct coop_launcher *launcher)
{
	return !launcher->spawns && coop_list_empty(&launcher->queue) &&
	       coop_list_empty(&launcher->sent) && coop_list_empty(&launcher->fills);
}

int coop_launcher_fill(struct coop_launcher *launcher, struct coop_buf *message, const int *fds,
		       size_t count, struct coop_launch *fill)
{
	struct coop_plan *plan = (struct coop_plan *)(void *)coop_buf_front(message);
	bool with_net = count > COOP_PLAN_FD_BODY;

	plan->sequence = coop_launchers_of(launcher->keeper)->sequence + 1;
	plan->flags |= with_net ? COOP_PLAN_NET_FD : 0u;
	int r = coop_fdpass_send(launcher->fd, plan, coop_buf_size(message), fds, count);
	/* The message is what tells one kind from another: it stays as it was. */
	plan->sequence = 0;
	plan->flags &= ~(uint32_t)COOP_PLAN_NET_FD;
	if (r < 0)
		return r;
	fill->sequence = launcher->last_sent = ++coop_launchers_of(launcher->keeper)->sequence;
	coop_list_add(&launcher->fills, &fill->in_launcher);
	return 0;
}

void coop_launcher_warm(struct coop_launcher *launcher)
{
	if (!launcher->pid && !launcher->waits)
		(void)start(launcher); /* it is tried again when it is needed */
}

void coop_launcher_settled(struct coop_launcher *launcher, struct coop_launch *launch)
{
	struct coop_keeper *keeper = launcher->keeper;

	coop_list_remove(&launch->in_launcher);
	launcher->sent_count--;
	/* It has answered: for the next it has all the time again. */
	if (owes_answers(launcher))
		watch(launcher);
	else
		(void)uv_timer_stop(&launcher->watchdog);
	/* Before the loop sleeps, and not from here: this may be called while reaping. */
	coop_life_reap(keeper);
}

/* A net namespace was made for a session. Nobody but the keeper keeps it, so that it goes when the
 * session's last process does. */
static void keep_net(struct coop_launcher *launcher, struct coop_launch *launch, int fd)
{
	const struct coop_plan *plan =
		(const struct coop_plan *)(const void *)coop_buf_front(&launch->message);
	struct coop_plan forget = {
		.magic = COOP_PLAN_MAGIC, .kind = COOP_PLAN_FORGET, .net_id = plan->net_id};

	launch->calls->net_made(launch, fd);
	(void)coop_fdpass_send(launcher->fd, &forget, sizeof forget, NULL, 0);
}

/* The first word of a new one: how its start went. */
static void on_hello(struct coop_launcher *launcher, const struct coop_plan_reply *reply, int *fd)
{
	launcher->refusal = *reply;
	launcher->ready = !reply->error;
	launcher->greeted = true;
	if (!owes_answers(launcher))
		(void)uv_timer_stop(&launcher->watchdog);
	if (*fd >= 0 && launcher->userns_fd < 0) {
		launcher->userns_fd = coop_launcher_raise_fd(*fd);
		*fd = -1;
	}
}

static void answer_fill(struct coop_launch *fill, pid_t pid, int error)
{
	if (error)
		fill->calls->refused(fill, error, COOP_STEP_CLONE);
	else
		fill->calls->answered(fill, pid);
}

static void on_reply(struct coop_launcher *launcher, const struct coop_plan_reply *reply, int *fd)
{
	if (reply->sequence == 0) {
		on_hello(launcher, reply, fd);
		start_waiting(launcher);
		return;
	}
	COOP_LIST_EACH(&launcher->fills, link)
	{
		struct coop_launch *launch = COOP_LIST_ITEM(link, struct coop_launch, in_launcher);
		if (launch->sequence == reply->sequence) {
			answer_fill(launch, reply->pid, reply->error);
			return;
		}
	}
	COOP_LIST_EACH(&launcher->sent, link)
	{
		struct coop_launch *launch = COOP_LIST_ITEM(link, struct coop_launch, in_launcher);
		if (launch->sequence != reply->sequence)
			continue;
		launcher->useless = 0;
		if (reply->net && *fd >= 0) {
			keep_net(launcher, launch, *fd);
			*fd = -1;
		}
		if (reply->error)
			launch->calls->refused(launch, reply->error,
					       (enum coop_plan_step)reply->step);
		else
			launch->calls->answered(launch, reply->pid);
		return;
	}
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
	struct coop_launcher *launcher = poll->data;
	struct coop_plan_reply reply;
	int fds[COOP_FDPASS_MAX];
	size_t count;

	(void)status;
	(void)events;
	coop_meters_of(launcher->keeper)->wakeups++;
	while (launcher->poll == poll) {
		ssize_t n = coop_fdpass_receive(launcher->fd, &reply, sizeof reply, fds, &count);
		if (n == (ssize_t)sizeof reply) {
			int fd = count ? fds[0] : -1;
			on_reply(launcher, &reply, &fd);
			if (fd >= 0)
				(void)close(fd);
			continue;
		}
		/* End of file: its death is reported too, and is what starts the next one. */
		if (n != -EAGAIN)
			disconnect(launcher);
		break;
	}
	if (launcher->poll == poll)
		send_queue(launcher);
}

/* No other is started: what waits is told why. */
static void refuse_queue(struct coop_launcher *launcher, int error)
{
	bool told = launcher->refusal.error != 0;

	while (!coop_list_empty(&launcher->queue)) {
		struct coop_launch *launch =
			COOP_LIST_ITEM(launcher->queue.next, struct coop_launch, in_launcher);
		coop_list_remove(&launch->in_launcher);
		launch->calls->refused(launch, told ? launcher->refusal.error : error,
				       told ? (enum coop_plan_step)launcher->refusal.step
					    : COOP_STEP_CLONE);
	}
}

static void on_launcher_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* Nothing of it runs any more. */
static void forget(struct coop_launcher *launcher)
{
	for (int i = 0; i < launcher->door_count; i++)
		(void)close(launcher->doors[i]);
	if (launcher->userns_fd >= 0)
		(void)close(launcher->userns_fd);
	coop_list_remove(&launcher->in_all);
	uv_close((uv_handle_t *)&launcher->watchdog, on_launcher_closed);
}

/* What it still said counts, then what it had not answered is settled, and only then the next one
 * gets the queue. */
void coop_launcher_died(struct coop_launcher *launcher)
{
	struct coop_keeper *keeper = launcher->keeper;
	uint64_t last = launcher->last_sent;

	/* Replies that it still sent are in the socket. */
	if (launcher->poll)
		on_socket(launcher->poll, 0, UV_READABLE);
	disconnect(launcher);
	launcher->pid = 0;
	if (launcher->retired) {
		forget(launcher);
		return;
	}
	/* Plans that went to this one are not the next one's fault. */
	(void)uv_timer_stop(&launcher->watchdog);
	/* Their first processes see the end of the channel, should there be any. */
	while (!coop_list_empty(&launcher->fills))
		answer_fill(COOP_LIST_ITEM(launcher->fills.next, struct coop_launch, in_launcher),
			    0, EIO);
	if (coop_life_stopping(keeper) && coop_list_empty(&launcher->sent) &&
	    coop_list_empty(&launcher->queue)) {
		start_waiting(launcher);
		return;
	}
	coop_launchers_of(keeper)->restarts++;
	launcher->useless++;
	/* One that is hopeless is not started again until somebody needs it. */
	int r = is_hopeless(launcher) ? -ECHILD : start(launcher);
	coop_log(COOP_LOG_WARN, "launcher died, another started restarts=%u result=%s",
		 coop_launchers_of(keeper)->restarts, r < 0 ? coop_err_errno_name(-r) : "ok");
	COOP_LIST_EACH(&launcher->sent, link)
	{
		struct coop_launch *launch = COOP_LIST_ITEM(link, struct coop_launch, in_launcher);
		/* One that is tried again goes to the new launcher, at the end of this very
		 * list. */
		if (launch->sequence <= last)
			launch->calls->unanswered(launch);
	}
	if (r < 0)
		refuse_queue(launcher, -r);
	else
		send_queue(launcher);
	if (!is_coming(launcher))
		start_waiting(launcher);
}

/* It stays in the list until it has been reaped, so that its pid is known. */
void coop_launcher_retire(struct coop_launcher *launcher)
{
	launcher->retired = true;
	disconnect(launcher); /* it sees the end of file and leaves */
	if (!launcher->pid)
		forget(launcher);
}

/* Ids matter only where it runs under others than the keeper's own. */
static bool same_class(const struct coop_launcher_class *a, const struct coop_launcher_class *b)
{
	return a->kind == b->kind && a->other_ids == b->other_ids && a->cell == b->cell &&
	       (!a->other_ids || (a->uid == b->uid && a->gid == b->gid));
}

struct coop_launcher *coop_launcher_get(struct coop_keeper *keeper,
					const struct coop_launcher_class *class)
{
	COOP_LIST_EACH(&coop_launchers_of(keeper)->all, link)
	{
		struct coop_launcher *launcher = COOP_LIST_ITEM(link, struct coop_launcher, in_all);
		if (same_class(&launcher->class, class))
			return launcher;
	}
	struct coop_launcher *launcher = coop_mem_zalloc(sizeof *launcher);
	if (!launcher)
		return NULL;
	launcher->keeper = keeper;
	launcher->class = *class;
	launcher->fd = launcher->userns_fd = -1;
	coop_list_init(&launcher->queue);
	coop_list_init(&launcher->sent);
	coop_list_init(&launcher->fills);
	(void)uv_timer_init(coop_loop_of(keeper), &launcher->watchdog);
	launcher->watchdog.data = launcher;
	coop_list_add(&coop_launchers_of(keeper)->all, &launcher->in_all);
	return launcher;
}

struct coop_launcher *coop_launcher_by_pid(const struct coop_keeper *keeper, pid_t pid)
{
	COOP_LIST_EACH(&coop_launchers_of(keeper)->all, link)
	{
		struct coop_launcher *launcher = COOP_LIST_ITEM(link, struct coop_launcher, in_all);
		if (pid && launcher->pid == pid)
			return launcher;
	}
	return NULL;
}

void coop_launchers_free(struct coop_keeper *keeper)
{
	struct coop_launchers *launchers = coop_launchers_of(keeper);

	while (launchers->all.next && !coop_list_empty(&launchers->all)) {
		struct coop_launcher *launcher =
			COOP_LIST_ITEM(launchers->all.next, struct coop_launcher, in_all);
		disconnect(launcher);
		/* Nothing of the keeper outlives it, not even for a moment. */
		if (launcher->pid) {
			(void)kill(launcher->pid, SIGKILL);
			(void)waitpid(launcher->pid, NULL, 0);
		}
		forget(launcher);
	}
	for (int i = 0; i < 2; i++) {
		int fd = (const int[]){launchers->image_fd, launchers->filters_fd}[i];
		if (fd >= 0)
			(void)close(fd);
	}
	coop_helpers_close(&launchers->helpers);
}
