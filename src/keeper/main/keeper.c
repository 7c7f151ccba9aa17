#include "keeper/main/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io/log.h"
#include "base/later.h"
#include "base/mem.h"
#include "keeper/agents/change.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/config.h"
#include "keeper/confine/ceiling.h"
#include "keeper/confine/groups.h"
#include "keeper/confine/net.h"
#include "keeper/confine/parks.h"
#include "keeper/confine/private_files.h"
#include "keeper/confine/watch.h"
#include "keeper/core/books.h"
#include "keeper/core/keeper.h"
#include "keeper/core/meters.h"
#include "keeper/host/host.h"
#include "keeper/host/scouts.h"
#include "keeper/host/views.h"
#include "keeper/launch/launcher.h"
#include "keeper/link/connection.h"
#include "keeper/link/connections.h"
#include "keeper/link/listener.h"
#include "keeper/link/operation.h"
#include "keeper/link/watch.h"
#include "keeper/main/leaving.h"
#include "keeper/main/startup.h"
#include "keeper/ops/follow.h"
#include "keeper/ops/notices.h"
#include "keeper/ops/op_operator.h"
#include "keeper/ops/op_port.h"
#include "keeper/ops/op_wait.h"
#include "keeper/ops/ops.h"
#include "keeper/ops/preflight.h"
#include "keeper/output/spool.h"
#include "keeper/owner/agents.h"
#include "keeper/process/completions.h"
#include "keeper/process/eviction.h"
#include "keeper/process/holder.h"
#include "keeper/process/observer.h"
#include "keeper/process/process.h"
#include "keeper/process/progress.h"
#include "keeper/process/quota.h"
#include "keeper/process/registry.h"
#include "keeper/process/report.h"
#include "keeper/process/settle.h"
#include "keeper/start/slots.h"
#include "keeper/start/spawn.h"
#include "keeper/store/ends.h"
#include "keeper/store/journal.h"
#include "keeper/tree/kill.h"
#include "keeper/tree/rules.h"
#include "keeper/tree/tree.h"
#include "records/backlog.h"
#include "sandbox/layout/ghosts.h"
#include "sandbox/layout/masks.h"
#include "sandbox/layout/silence.h"
#include "sandbox/plan/plan.h"
#include "sandbox/policy/found.h"

/* What is left to do at the end of a turn is done in so many rounds at most: whoever has more to do
 * at once lets clients have their turn. */
#define ROUNDS 4

/* Who is told of what happens to processes, in this order: what is left of the tree decides what
 * the others see; whoever waits is answered before the disk is told. */
static const struct coop_observer *const observers[] = {
	&coop_settle_observer,      &coop_report_observer,
	&coop_progress_observer,    &coop_tree_observer,
	&coop_confine_observer,     &coop_notices_observer,
	&coop_completions_observer, &coop_wait_observer,
	&coop_port_observer,        &coop_follow_observer,
	&coop_holders_observer,     &coop_store_observer,
	&coop_start_observer,       NULL,
};

/* Who has something at connections. */
static const struct coop_conn_watch *const watchers[] = {
	&coop_follow_watch,
	&coop_notices_watch,
	&coop_holders_watch,
	&coop_tree_watch,
	&coop_eviction_watch,
	&coop_ceiling_watch,
	NULL,
};

static const struct coop_intake_calls calls = {
	.find = coop_ops_find,
	.allowed = coop_ops_allowed,
	.may_hold = coop_quota_buffer,
	.ready = coop_preflight,
};

static void on_stop(uv_signal_t *handle, int number)
{
	struct coop_main *main = handle->data;

	coop_log(COOP_LOG_INFO, "stopping signal=%d", number);
	coop_life_end(&main->keeper, 5000, NULL);
}

static void on_hangup(uv_signal_t *handle, int number)
{
	struct coop_main *main = handle->data;
	struct coop_err err;

	(void)number;
	if (coop_preflight_conf(&main->keeper))
		(void)coop_reload(&main->keeper, &err); /* it has said what is wrong */
}

static void no_sleep(uv_idle_t *handle)
{
	/* that it is active is what counts: the loop looks for events, and comes back without
	 * waiting for one */
	(void)handle;
}

/* Everything that handlers left to do. What is still left then is no event's business: the loop
 * comes back without sleeping. */
static void before_sleep(uv_prepare_t *handle)
{
	struct coop_main *main = handle->data;
	bool more = true;

	for (int round = 0; more && round < ROUNDS; round++)
		more = coop_laters_run(&main->life.laters);
	coop_leaving_go_on(main);
	if (more)
		(void)uv_idle_start(&main->busy, no_sleep);
	else
		(void)uv_idle_stop(&main->busy);
	coop_tree_turn_over(&main->keeper);
}

static void raise_fd_limit(struct coop_place *place)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	place->original_nofile = limit;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		place->fd_limit = limit.rlim_cur;
	else
		place->fd_limit = place->original_nofile.rlim_cur; /* fewer processes fit */
}

static int watch_signals(struct coop_main *main)
{
	static const struct {
		int number;
		uv_signal_cb call;
	} rows[] = {{SIGTERM, on_stop}, {SIGINT, on_stop}, {SIGHUP, on_hangup}};

	(void)signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int r = uv_signal_init(&main->keeper.loop, &main->signals[i]);
		main->signals[i].data = main;
		if (r == 0)
			r = uv_signal_start(&main->signals[i], rows[i].call, rows[i].number);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The one that most commands need is started before the first comes. */
static void warm_launcher(struct coop_keeper *keeper)
{
	const struct coop_host *can = &keeper->host->can;
	bool full = coop_conf_of(keeper)->profiles.defaults.profile == COOP_PROFILE_FULL;
	bool boxed = !full && !can->error[COOP_CAN_NESTED] && !can->error[COOP_CAN_NETNS];
	struct coop_launcher_class class = {
		.kind = boxed ? COOP_LAUNCHER_BOX : COOP_LAUNCHER_PLAIN,
		.other_ids = keeper->host->root_keeper && !full,
		.uid = can->uid,
		.gid = can->gid,
	};
	struct coop_launcher *launcher = coop_launcher_get(keeper, &class);

	if (launcher)
		coop_launcher_warm(launcher);
	if (!full)
		coop_parks_warm(keeper, &class);
}

/* The loop, and what wakes it. 0 or -errno. */
static int make_loop(struct coop_main *main)
{
	struct coop_keeper *keeper = &main->keeper;
	int r = uv_loop_init(&keeper->loop);

	coop_laters_init(&main->life.laters);
	keeper->observers = observers;
	keeper->place.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (r == 0 && keeper->place.null_fd < 0)
		r = -errno;
	if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0)
		r = coop_reap_init(main);
	if (r == 0)
		r = watch_signals(main);
	if (r < 0)
		return r;
	(void)uv_prepare_init(&keeper->loop, &main->before_sleep);
	main->before_sleep.data = main;
	(void)uv_prepare_start(&main->before_sleep, before_sleep);
	(void)uv_idle_init(&keeper->loop, &main->busy);
	coop_leaving_init(main);
	return 0;
}

/* The parts that depend on nothing but the loop. */
static bool make_parts(struct coop_keeper *keeper)
{
	return (keeper->meters = coop_mem_zalloc(sizeof *keeper->meters)) &&
	       (keeper->books = coop_mem_zalloc(sizeof *keeper->books)) &&
	       (keeper->connections = coop_connections_new(keeper, watchers, &calls)) &&
	       (keeper->spools = coop_spools_new()) && (keeper->registry = coop_registry_new()) &&
	       (keeper->eviction = coop_eviction_new(keeper)) &&
	       (keeper->notices = coop_notices_new()) &&
	       (keeper->tree = coop_tree_new(coop_slots_has)) &&
	       (keeper->kills = coop_kills_new(keeper)) &&
	       (keeper->agents = coop_agents_new(keeper, coop_confine_agent_left)) &&
	       (keeper->host = coop_keeper_host_new()) && (keeper->views = coop_views_new()) &&
	       (keeper->nets = coop_nets_new(keeper, coop_slots_drop_net)) &&
	       (keeper->ports = coop_ports_new(keeper)) &&
	       (keeper->questions = coop_questions_new());
}

/* Opens what is on disk. Removing old spools comes before anything is written. */
static int open_books(struct coop_keeper *keeper, struct coop_err *err)
{
	int r = coop_spool_clean(keeper);

	if (r < 0)
		return coop_err_set(err, COOP_UNAVAILABLE, "the spool's folder: %s", strerror(-r));
	r = coop_registry_open(keeper, err);
	return r < 0 ? r : coop_startup(keeper, err);
}

/* What processes are started with: after what is on disk, as it asks the host. */
static int make_means(struct coop_keeper *keeper, struct coop_err *err)
{
	const char *state = keeper->place.state_dir;
	int r = coop_launchers_new(&keeper->launchers);

	if (r < 0)
		return coop_err_set(err, COOP_INTERNAL, "the launcher cannot be started: %s",
				    strerror(-r));
	coop_keeper_host_init(keeper);
	coop_private_files_clean(keeper);
	keeper->views->ghosts =
		*state ? coop_ghosts_new(state, coop_backlog_apart(keeper->journal->backlog))
		       : coop_ghosts_new(NULL, -1);
	keeper->host->scouts = coop_scouts_new(keeper);
	if (!keeper->views->ghosts || !keeper->host->scouts)
		return coop_err_no_memory(err);
	coop_silence_refresh(coop_silence_of(keeper));
	if (!(keeper->slots = coop_slots_new(keeper)) ||
	    !(keeper->groups = coop_groups_new(keeper)) ||
	    !(keeper->groups->parks = coop_parks_new(keeper, coop_slots_drop_launcher)))
		return coop_err_no_memory(err);
	return 0;
}

/* What is on disk comes before anything is started: a keeper that cannot keep records starts
 * nothing. */
int coop_keeper_init(struct coop_main *main, struct coop_err *err)
{
	struct coop_keeper *keeper = &main->keeper;

	keeper->place.started_at = coop_clock_wall_ms();
	raise_fd_limit(&keeper->place);
	int r = make_loop(main);
	if (r < 0)
		return coop_err_set(err, COOP_INTERNAL, "the keeper cannot be set up: %s",
				    strerror(-r));
	if (!make_parts(keeper))
		return coop_err_no_memory(err);
	coop_journal_open(keeper);
	r = open_books(keeper, err);
	if (r == 0)
		r = make_means(keeper, err);
	if (r < 0)
		return r;
	warm_launcher(keeper);
	coop_journal_line(keeper); /* ends of what is lost may wait */
	return 0;
}

void coop_keeper_run(struct coop_main *main)
{
	coop_life_look(&main->keeper);
	(void)uv_run(&main->keeper.loop, UV_RUN_DEFAULT);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* A thread is stuck, and this may be where: it is left to the next keeper. */
static bool is_silent(void *user, const char *path)
{
	const struct coop_keeper *keeper = user;

	return coop_silence_holds(coop_silence_of(keeper), path);
}

/* Connections and processes go, and what they were started with. */
static void end_parts(struct coop_keeper *keeper)
{
	COOP_LIST_EACH(coop_connections_all(keeper), link)
	{
		coop_conn_close(COOP_LIST_ITEM(link, struct coop_conn, in_keeper));
	}
	coop_ends_write(keeper);
	coop_journal_flush(keeper);
	coop_registry_clear(keeper);
	coop_slots_free(keeper);
	coop_nets_free(keeper);
	coop_groups_drop_cells(keeper);
	coop_launchers_free(keeper);
	coop_views_clear(keeper->views);
	coop_found_forget(keeper->host->credentials);
}

/* The loop is gone, and with it all handles that stand in these. */
static void free_parts(struct coop_keeper *keeper, bool idle)
{
	if (!idle)
		coop_ghosts_leave(keeper->views->ghosts, is_silent, keeper);
	coop_ghosts_free(keeper->views->ghosts);
	coop_silence_clear(coop_silence_of(keeper));
	coop_backlog_close(keeper->journal->backlog);
	coop_masks_free(keeper->host->masks);
	coop_groups_free(keeper);
	coop_config_free(keeper->config);
	coop_tree_free(keeper->tree);
	coop_buf_clear(&keeper->connections->spare_out);
	/* Not what is known of the host: threads that wait for work look at the scouts in it. */
	void *const parts[] = {
		keeper->meters, keeper->books,    keeper->connections,   keeper->listeners,
		keeper->spools, keeper->registry, keeper->eviction,      keeper->notices,
		keeper->kills,  keeper->agents,   keeper->groups->parks, keeper->views,
		keeper->nets,   keeper->ports,    keeper->questions,     keeper->launchers,
		keeper->slots,  keeper->groups,   keeper->journal,
	};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		free(parts[i]);
}

bool coop_keeper_free(struct coop_main *main)
{
	struct coop_keeper *keeper = &main->keeper;

	end_parts(keeper);
	/* Let the closing of processes and connections run its course, then close what is the
	 * keeper's own. */
	(void)uv_prepare_stop(&main->before_sleep);
	(void)uv_idle_stop(&main->busy);
	if (!coop_leaving_disk_done(main)) {
		coop_log(COOP_LOG_ERROR, "the disk is not waited for records_lost=%u",
			 keeper->journal->count);
		return false;
	}
	coop_leaving_errands_done(main);
	bool idle = coop_scouts_end(keeper->host->scouts);
	coop_changes_drop(keeper);
	coop_journal_free(keeper);
	for (int i = 0; i < 8; i++)
		(void)uv_run(&keeper->loop, UV_RUN_NOWAIT);
	coop_startup_undo(keeper);
	uv_walk(&keeper->loop, close_handle, NULL);
	(void)uv_run(&keeper->loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&keeper->loop);
	(void)close(main->reaper.fd);
	(void)close(keeper->place.null_fd);
	free_parts(keeper, idle);
	return idle;
}
