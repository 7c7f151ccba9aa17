#include "keeper/core/keeper.h"
#include "sandbox/layout/ghosts.h"
#include "sandbox/layout/masks.h"
#include "sandbox/policy/found.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io/log.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "keeper/agents/change.h"
#include "keeper/confine/private_files.h"
#include "keeper/link/connection.h"
#include "keeper/link/listener.h"
#include "keeper/link/preflight.h"
#include "keeper/link/request.h"
#include "keeper/link/scouts.h"
#include "keeper/main/startup.h"
#include "keeper/ops/op_operator.h"
#include "keeper/ops/op_port.h"
#include "keeper/ops/op_spawn.h"
#include "keeper/output/spool.h"
#include "keeper/process/eviction.h"
#include "keeper/process/holder.h"
#include "keeper/process/process.h"
#include "keeper/tree/kill.h"
#include "keeper/tree/orphans.h"
#include "keeper/tree/reap.h"
#include "records/audit.h"
#include "records/backlog.h"
#include "sandbox/layout/silence.h"
#include "sandbox/plan/plan.h"

#define LINGER_MS 2000
#define FDS_HELD_BACK 24 /* so that clients can always be answered, and /proc looked at */

static void on_child(uv_poll_t *handle, int status, int events)
{
	struct coop_keeper *keeper = handle->data;
	struct signalfd_siginfo info[16];

	(void)status;
	(void)events;
	keeper->wakeups++;
	ssize_t n = read(keeper->child_fd, info, sizeof info);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof info[0]; i++)
		coop_reap_leader(keeper, (pid_t)info[i].ssi_pid);
	/* Several deaths may share one signal, and orphans die too: all that is looked for once the
	 * answers are out. */
	keeper->reap_again = true;
}

/* SIGCHLD comes through a descriptor: two system calls and a pipe less than libuv's way, on the
 * path of every exit. */
static int watch_children(struct coop_keeper *keeper)
{
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &child, NULL) < 0)
		return -errno;
	keeper->child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (keeper->child_fd < 0)
		return -errno;
	int r = uv_poll_init(&keeper->loop, &keeper->on_child, keeper->child_fd);
	keeper->on_child.data = keeper;
	return r < 0 ? r : uv_poll_start(&keeper->on_child, UV_READABLE, on_child);
}

static void on_stop(uv_signal_t *handle, int number)
{
	struct coop_keeper *keeper = handle->data;

	coop_log(COOP_LOG_INFO, "stopping signal=%d", number);
	coop_keeper_shutdown(keeper, 5000, NULL);
}

static int load_again(const struct coop_keeper *keeper, struct coop_conf *ret, struct coop_err *err)
{
	struct coop_conf fresh;
	int r = coop_conf_load(keeper->conf_path, keeper->overrides, &fresh, err);

	if (r < 0)
		return r;
	/* Rules that vanish are no rules that were taken back. */
	if (keeper->conf.present && !fresh.present) {
		coop_conf_clear(&fresh);
		return coop_err_field(
			err, COOP_INVALID_INPUT, "configuration",
			"%.300s is not there any more; empty it to take back what it said",
			keeper->conf_path);
	}
	*ret = fresh;
	return 0;
}

int coop_keeper_reload(struct coop_keeper *keeper, struct coop_err *err)
{
	struct coop_conf fresh = {0};

	if (load_again(keeper, &fresh, err) < 0) {
		(void)snprintf(keeper->conf_error, sizeof keeper->conf_error, "%s", err->message);
		coop_log(COOP_LOG_ERROR, "configuration not loaded, the old one holds error=\"%s\"",
			 err->message);
		return -1;
	}
	coop_conf_clear(&keeper->conf);
	keeper->conf = fresh;
	keeper->conf_loaded_at = coop_clock_wall_ms();
	*keeper->conf_error = 0;
	coop_eviction_recount(keeper);
	coop_groups_conf_changed(keeper);
	coop_log(COOP_LOG_INFO, "configuration loaded path=%s",
		 fresh.present ? keeper->conf_path : "none");
	return 0;
}

static void on_hangup(uv_signal_t *handle, int number)
{
	struct coop_keeper *keeper = handle->data;
	struct coop_err err;

	(void)number;
	if (coop_preflight_conf(keeper))
		(void)coop_keeper_reload(keeper, &err); /* it has said what is wrong */
}

/* Clients that do not take their answers are not waited for any longer. */
static void on_linger(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

/* Everything has ended: the last answers are written. */
static void finish_shutdown(struct coop_keeper *keeper)
{
	struct coop_jsonw w;

	coop_op_spawn_stopping(keeper);
	while (!coop_list_empty(&keeper->shutdown_requests)) {
		struct coop_request *request = COOP_LIST_ITEM(keeper->shutdown_requests.next,
							      struct coop_request, in_process);
		coop_request_result(request, &w);
		coop_jsonw_uint(&w, "ended", keeper->shutdown_ended - keeper->registry.live);
		coop_jsonw_uint(&w, "survivors", keeper->registry.live);
		coop_request_end(request, &w);
	}
	coop_spool_remove(keeper);
	coop_private_files_end(keeper);
	keeper->finished = true;
	uv_update_time(&keeper->loop);
	(void)uv_timer_start(&keeper->idle_timer, on_linger, LINGER_MS, 0);
}

static bool all_sent(const struct coop_keeper *keeper)
{
	COOP_LIST_EACH(&keeper->connections, link)
	{
		const struct coop_conn *conn = COOP_LIST_ITEM(link, struct coop_conn, in_keeper);
		if (coop_buf_size(&conn->out) || !coop_list_empty(&conn->ready))
			return false;
	}
	return true;
}

/* What could not be killed is not waited for: it is told of as a survivor. */
static bool nothing_to_wait_for(const struct coop_keeper *keeper)
{
	if (!coop_list_empty(&keeper->kills))
		return false;
	COOP_LIST_EACH(&keeper->registry.all, link)
	{
		const struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in_all);
		if (!process->told && !process->unkillable)
			return false;
	}
	return true;
}

/* Each connection once: one that has more to do at once must leave the others their turn. */
static void flush(struct coop_keeper *keeper)
{
	struct coop_link now;

	coop_list_init(&now);
	while (!coop_list_empty(&keeper->dirty)) {
		struct coop_link *link = keeper->dirty.next;
		coop_list_remove(link);
		coop_list_add(&now, link);
	}
	while (!coop_list_empty(&now))
		coop_conn_flush(COOP_LIST_ITEM(now.next, struct coop_conn, in_dirty));
}

static void no_sleep(uv_idle_t *handle)
{
	/* that it is active is what counts: the loop looks for events, and comes back without
	 * waiting for one */
	(void)handle;
}

/* Everything that handlers left to do: kills go on, caps are applied, answers are sent. */
static void before_sleep(uv_prepare_t *handle)
{
	struct coop_keeper *keeper = handle->data;

	flush(keeper);
	coop_process_write_ends(keeper);
	/* Looking for what is to end takes memory, and gives more back. */
	bool before = coop_mem_relief(true);
	if (keeper->reap_again) {
		keeper->reap_again = false;
		coop_reap(keeper);
	}
	if (keeper->recount) {
		keeper->recount = false;
		coop_orphans_recount(keeper);
	}
	coop_kill_round(keeper);
	(void)coop_mem_relief(before);
	coop_eviction_trim_soon(keeper);
	coop_questions_go_on(keeper);
	if (keeper->stopping && !keeper->finished && nothing_to_wait_for(keeper))
		finish_shutdown(keeper);
	flush(keeper);
	coop_eviction_trim_soon(keeper); /* answers that were taken just now have told of ends */
	coop_process_write_ends(keeper);
	if (keeper->finished && all_sent(keeper))
		uv_stop(&keeper->loop);
	/* Sending may have made room for requests that waited, a kill may have to look again: no
	 * event will tell of either. */
	if (!coop_list_empty(&keeper->dirty) || keeper->reap_again || keeper->kill_again)
		(void)uv_idle_start(&keeper->busy, no_sleep);
	else
		(void)uv_idle_stop(&keeper->busy);
	coop_tree_turn_over(keeper);
}

static void raise_fd_limit(struct coop_keeper *keeper)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	keeper->original_nofile = limit;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		keeper->fd_limit = limit.rlim_cur;
	else
		keeper->fd_limit = keeper->original_nofile.rlim_cur; /* fewer processes fit */
}

bool coop_keeper_fd_allowed(const struct coop_keeper *keeper, int fd)
{
	return (rlim_t)fd + FDS_HELD_BACK < keeper->fd_limit;
}

static int watch_signals(struct coop_keeper *keeper)
{
	const struct {
		uv_signal_t *handle;
		int number;
		uv_signal_cb call;
	} rows[] = {
		{&keeper->on_term, SIGTERM, on_stop},
		{&keeper->on_int, SIGINT, on_stop},
		{&keeper->on_hup, SIGHUP, on_hangup},
	};

	(void)signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int r = uv_signal_init(&keeper->loop, rows[i].handle);
		rows[i].handle->data = keeper;
		if (r == 0)
			r = uv_signal_start(rows[i].handle, rows[i].call, rows[i].number);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The one that most commands need is started before the first comes. */
static void warm_launcher(struct coop_keeper *keeper)
{
	const struct coop_host *can = &keeper->host.can;
	bool full = keeper->conf.profiles.defaults.profile == COOP_PROFILE_FULL;
	bool boxed = !full && !can->error[COOP_CAN_NESTED] && !can->error[COOP_CAN_NETNS];
	struct coop_launcher_class class = {
		.kind = boxed ? COOP_LAUNCHER_BOX : COOP_LAUNCHER_PLAIN,
		.other_ids = keeper->host.root_keeper && !full,
		.uid = can->uid,
		.gid = can->gid,
	};
	struct coop_launcher *launcher = coop_launcher_get(keeper, &class);

	if (launcher)
		coop_launcher_warm(launcher);
	if (!full)
		coop_parks_warm(keeper, &class);
}

int coop_keeper_init(struct coop_keeper *keeper, struct coop_err *err)
{
	coop_list_init(&keeper->connections);
	coop_list_init(&keeper->dirty);
	coop_list_init(&keeper->kills);
	coop_list_init(&keeper->shutdown_requests);
	coop_list_init(&keeper->principals);
	coop_list_init(&keeper->left_out);
	coop_list_init(&keeper->crowded);
	coop_list_init(&keeper->changes);
	coop_list_init(&keeper->questions);
	coop_list_init(&keeper->ended);
	coop_list_init(&keeper->subscribers);
	keeper->started_at = coop_clock_wall_ms();
	raise_fd_limit(keeper);
	keeper->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	keeper->spare_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int r = keeper->null_fd < 0 || keeper->spare_fd < 0 ? -errno : uv_loop_init(&keeper->loop);
	if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0)
		r = watch_children(keeper);
	if (r == 0)
		r = watch_signals(keeper);
	if (r < 0)
		return coop_err_set(err, COOP_INTERNAL, "the keeper cannot be set up: %s",
				    strerror(-r));
	(void)uv_prepare_init(&keeper->loop, &keeper->before_sleep);
	keeper->before_sleep.data = keeper;
	(void)uv_prepare_start(&keeper->before_sleep, before_sleep);
	(void)uv_idle_init(&keeper->loop, &keeper->busy);
	(void)uv_timer_init(&keeper->loop, &keeper->trim_timer);
	keeper->trim_timer.data = keeper;
	(void)uv_timer_init(&keeper->loop, &keeper->idle_timer);
	keeper->idle_timer.data = keeper;
	(void)uv_timer_init(&keeper->loop, &keeper->expiry);
	keeper->expiry.data = keeper;
	coop_admission_init(keeper);
	coop_journal_init(keeper);
	r = coop_spool_clean(keeper);
	if (r < 0)
		return coop_err_set(err, COOP_UNAVAILABLE, "the spool's folder: %s", strerror(-r));
	r = coop_registry_init(keeper, err);
	if (r == 0)
		r = coop_startup(keeper, err);
	if (r < 0)
		return r;
	r = coop_launchers_init(keeper);
	if (r < 0)
		return coop_err_set(err, COOP_INTERNAL, "the launcher cannot be started: %s",
				    strerror(-r));
	coop_keeper_host_init(keeper);
	coop_private_files_clean(keeper);
	keeper->ghosts = *keeper->state_dir
				 ? coop_ghosts_new(keeper->state_dir,
						   coop_backlog_apart(keeper->journal.backlog))
				 : coop_ghosts_new(NULL, -1);
	keeper->host.scouts = coop_scouts_new(keeper);
	if (!keeper->ghosts || !keeper->host.scouts)
		return coop_err_no_memory(err);
	coop_silence_refresh(&keeper->host.silence);
	coop_nets_init(keeper);
	coop_op_port_init(keeper);
	coop_list_init(&keeper->reports);
	coop_slots_init(keeper);
	coop_groups_init(keeper);
	coop_parks_init(keeper);
	warm_launcher(keeper);
	coop_journal_line(keeper); /* ends of what is lost may wait */
	return 0;
}

static void on_idle(uv_timer_t *timer)
{
	struct coop_keeper *keeper = timer->data;

	keeper->idle_armed = false;
	coop_log(COOP_LOG_INFO, "nothing to keep: leaving");
	coop_keeper_shutdown(keeper, 0, NULL);
}

void coop_keeper_check_idle(struct coop_keeper *keeper)
{
	const struct coop_registry *registry = &keeper->registry;

	if (keeper->stopping)
		return;
	if (keeper->private_served && keeper->connection_count == 0) {
		coop_keeper_shutdown(keeper, 0, NULL);
		return;
	}
	bool idle = keeper->on_demand && keeper->conf.settings.idle_exit_ms &&
		    registry->live == 0 && registry->finished_count == 0 &&
		    keeper->session_count == 0 && keeper->connection_count == 0;
	if (idle == keeper->idle_armed)
		return;
	keeper->idle_armed = idle;
	uv_update_time(&keeper->loop);
	if (idle)
		(void)uv_timer_start(&keeper->idle_timer, on_idle,
				     (uint64_t)keeper->conf.settings.idle_exit_ms, 0);
	else
		(void)uv_timer_stop(&keeper->idle_timer);
}

void coop_keeper_shutdown(struct coop_keeper *keeper, uint64_t grace_ms,
			  struct coop_request *request)
{
	struct coop_kill_order order = {
		.cause = COOP_CAUSE_SHUTDOWN,
		.grace_ms = grace_ms,
	};

	if (request)
		coop_list_add(&keeper->shutdown_requests, &request->in_process);
	if (!keeper->stopping)
		keeper->shutdown_ended = keeper->registry.live;
	keeper->stopping = true;
	coop_listener_close(keeper);
	/* Ended ones may have left descendants, which end too. */
	COOP_LIST_EACH(&keeper->registry.all, link)
	{
		struct coop_process *process = COOP_LIST_ITEM(link, struct coop_process, in_all);
		coop_holders_clear(process);
		if (!process->receipt && coop_kill_begin(process, &order) < 0)
			coop_log(COOP_LOG_ERROR, "out of memory: left to the guard id=%s",
				 process->id);
	}
	coop_keeper_check_idle(keeper);
}

void coop_keeper_run(struct coop_keeper *keeper)
{
	coop_keeper_check_idle(keeper);
	(void)uv_run(&keeper->loop, UV_RUN_DEFAULT);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* What the helper thread is at holds processes. Returns whether it is done; a disk that stands
 * still is not waited for. */
static bool finish_disk_jobs(struct coop_keeper *keeper)
{
	uint64_t began = coop_clock_now();

	uv_update_time(&keeper->loop);
	(void)uv_timer_start(&keeper->idle_timer, on_linger, LINGER_MS, 0);
	while (keeper->disk_jobs && coop_clock_now() - began < LINGER_MS * 1000000ull)
		(void)uv_run(&keeper->loop, UV_RUN_ONCE);
	return keeper->disk_jobs == 0;
}

/* Placeholders that a file system is asked about are waited for in the same way. */
static void finish_errands(struct coop_keeper *keeper)
{
	uint64_t began = coop_clock_now();

	uv_update_time(&keeper->loop);
	(void)uv_timer_start(&keeper->idle_timer, on_linger, LINGER_MS, 0);
	while (coop_scouts_away(keeper->host.scouts) &&
	       coop_clock_now() - began < LINGER_MS * 1000000ull)
		(void)uv_run(&keeper->loop, UV_RUN_ONCE);
}

/* A thread is stuck, and this may be where: it is left to the next keeper. */
static bool is_silent(void *user, const char *path)
{
	const struct coop_keeper *keeper = user;

	return coop_silence_holds(&keeper->host.silence, path);
}

bool coop_keeper_free(struct coop_keeper *keeper)
{
	COOP_LIST_EACH(&keeper->connections, link)
	{
		coop_conn_close(COOP_LIST_ITEM(link, struct coop_conn, in_keeper));
	}
	coop_process_write_ends(keeper);
	coop_journal_flush(keeper);
	coop_registry_free(keeper);
	coop_slots_free(keeper);
	coop_nets_free(keeper);
	coop_groups_drop_cells(keeper);
	coop_launchers_free(keeper);
	coop_helpers_close(&keeper->helpers);
	coop_idmaps_clear(&keeper->idmaps);
	coop_users_clear(&keeper->users);
	coop_found_forget(keeper->host.credentials);
	coop_host_sockets_clear(&keeper->sockets);
	/* Let the closing of processes and connections run its course, then close what is the
	 * keeper's own. */
	(void)uv_prepare_stop(&keeper->before_sleep);
	(void)uv_idle_stop(&keeper->busy);
	if (!finish_disk_jobs(keeper)) {
		coop_log(COOP_LOG_ERROR, "the disk is not waited for records_lost=%u",
			 keeper->journal.count);
		return false;
	}
	finish_errands(keeper);
	bool idle = coop_scouts_end(keeper->host.scouts);
	coop_changes_drop(keeper);
	coop_journal_free(keeper);
	for (int i = 0; i < 8; i++)
		(void)uv_run(&keeper->loop, UV_RUN_NOWAIT);
	coop_startup_undo(keeper);
	coop_conf_clear(&keeper->conf);
	uv_walk(&keeper->loop, close_handle, NULL);
	(void)uv_run(&keeper->loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&keeper->loop);
	for (size_t i = 0; i < 3; i++)
		(void)close((const int[]){keeper->child_fd, keeper->null_fd, keeper->spare_fd}[i]);
	coop_buf_clear(&keeper->spare_out);
	coop_tree_free(keeper);
	if (!idle)
		coop_ghosts_leave(keeper->ghosts, is_silent, keeper);
	coop_ghosts_free(keeper->ghosts);
	coop_silence_clear(&keeper->host.silence);
	coop_backlog_close(keeper->journal.backlog);
	coop_masks_free(keeper->host.masks);
	coop_groups_free(keeper);
	return idle;
}
