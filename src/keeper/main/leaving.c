#include "keeper/main/leaving.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/io/log.h"
#include "base/json/jsonw.h"
#include "base/later.h"
#include "base/list.h"
#include "keeper/conf/conf.h"
#include "keeper/confine/private_files.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/host/host.h"
#include "keeper/host/scouts.h"
#include "keeper/link/connection.h"
#include "keeper/link/connections.h"
#include "keeper/link/listener.h"
#include "keeper/link/request.h"
#include "keeper/main/locks.h"
#include "keeper/ops/op_spawn.h"
#include "keeper/output/spool.h"
#include "keeper/owner/agents.h"
#include "keeper/process/holder.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/tree/kill.h"

#define LINGER_MS 2000

/* Clients that do not take their answers are not waited for any longer. */
static void on_linger(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

static void linger(struct coop_main *main)
{
	uv_update_time(&main->keeper.loop);
	(void)uv_timer_start(&main->idle, on_linger, LINGER_MS, 0);
}

/* Everything has ended: the last answers are written. */
static void finish(struct coop_main *main)
{
	struct coop_keeper *keeper = &main->keeper;
	unsigned live = coop_registry_live(keeper);
	struct coop_jsonw w;

	coop_op_spawn_stopping(keeper);
	while (!coop_list_empty(&main->shutdown_requests)) {
		struct coop_request *request = COOP_LIST_ITEM(main->shutdown_requests.next,
							      struct coop_request, in_process);
		coop_request_result(request, &w);
		coop_jsonw_uint(&w, "ended", main->shutdown_live - live);
		coop_jsonw_uint(&w, "survivors", live);
		coop_request_end(request, &w);
	}
	coop_spool_remove(keeper);
	coop_private_files_end(keeper);
	main->life.finished = true;
	linger(main);
}

/* What waits for room in a connection is on its way as well. */
static bool all_sent(const struct coop_keeper *keeper)
{
	COOP_LIST_EACH(coop_connections_all(keeper), link)
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
	if (coop_kills_any(keeper))
		return false;
	COOP_LIST_EACH(coop_registry_all(keeper), link)
	{
		const struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.all);
		if (!coop_process_told(process) && !process->course.survivors)
			return false;
	}
	return true;
}

/* Once more what is due, as the last answers have just been written. */
void coop_leaving_go_on(struct coop_main *main)
{
	if (!main->life.stopping)
		return;
	if (!main->life.finished && nothing_to_wait_for(&main->keeper)) {
		finish(main);
		(void)coop_laters_run(&main->life.laters);
	}
	if (main->life.finished && all_sent(&main->keeper))
		uv_stop(&main->keeper.loop);
}

static void on_idle(uv_timer_t *timer)
{
	struct coop_main *main = timer->data;

	main->idle_armed = false;
	coop_log(COOP_LOG_INFO, "nothing to keep: leaving");
	coop_life_end(&main->keeper, 0, NULL);
}

/* Only one that was started on demand leaves by itself: the next client starts another. */
static bool is_idle(const struct coop_main *main)
{
	const struct coop_keeper *keeper = &main->keeper;

	return main->on_demand && coop_conf_of(keeper)->settings.idle_exit_ms &&
	       coop_registry_live(keeper) == 0 && coop_registry_finished_count(keeper) == 0 &&
	       coop_agents_of(keeper)->session_count == 0 && coop_connections_count(keeper) == 0;
}

/* Something came or went: is there still something to keep? */
static void look(struct coop_later *item)
{
	struct coop_main *main = COOP_LATER_OWNER(item, struct coop_main, life.look);

	if (main->life.stopping)
		return;
	if (main->serves_one && coop_connections_count(&main->keeper) == 0) {
		coop_life_end(&main->keeper, 0, NULL);
		return;
	}
	bool idle = is_idle(main);
	if (idle == main->idle_armed)
		return;
	main->idle_armed = idle;
	uv_update_time(&main->keeper.loop);
	if (idle)
		(void)uv_timer_start(&main->idle, on_idle,
				     (uint64_t)coop_conf_of(&main->keeper)->settings.idle_exit_ms,
				     0);
	else
		(void)uv_timer_stop(&main->idle);
}

/* Ended ones may have left descendants, which end too. */
static void end_all(struct coop_keeper *keeper, uint64_t grace_ms)
{
	const struct coop_kill_order order = {.cause = COOP_CAUSE_SHUTDOWN, .grace_ms = grace_ms};

	COOP_LIST_EACH(coop_registry_all(keeper), link)
	{
		struct coop_process *process = COOP_LIST_ITEM(link, struct coop_process, in.all);
		coop_holders_clear(process);
		if (!coop_process_receipt(process) && coop_kill_begin(process, &order) < 0)
			coop_log(COOP_LOG_ERROR, "out of memory: left to the guard id=%s",
				 process->id);
	}
}

/* Asked a second time it begins nothing anew, but a shorter grace holds, and each who asked is
 * answered. */
static void shut_down(struct coop_keeper *keeper, uint64_t grace_ms, struct coop_request *request)
{
	struct coop_main *main = COOP_LIST_ITEM(keeper, struct coop_main, keeper);

	if (request)
		coop_list_add(&main->shutdown_requests, &request->in_process);
	if (!main->life.stopping)
		main->shutdown_live = coop_registry_live(keeper);
	main->life.stopping = true;
	(void)uv_timer_stop(&main->idle);
	/* From here on the next keeper waits for the end of this one. */
	coop_locks_let_go(&main->locks);
	coop_listener_close(keeper);
	end_all(keeper, grace_ms);
}

void coop_leaving_init(struct coop_main *main)
{
	coop_list_init(&main->shutdown_requests);
	main->life.look.run = look;
	main->life.shutdown = shut_down;
	(void)uv_timer_init(&main->keeper.loop, &main->idle);
	main->idle.data = main;
}

static bool in_time(uint64_t began)
{
	return coop_clock_now() - began < LINGER_MS * 1000000ull;
}

/* Bounded: a disk that stands still must not keep the keeper from leaving. */
bool coop_leaving_disk_done(struct coop_main *main)
{
	uint64_t began = coop_clock_now();

	linger(main);
	while (main->life.disk_jobs && in_time(began))
		(void)uv_run(&main->keeper.loop, UV_RUN_ONCE);
	return main->life.disk_jobs == 0;
}

/* Placeholders on mounts that may answer late: what is not done in time is the next keeper's. */
void coop_leaving_errands_done(struct coop_main *main)
{
	uint64_t began = coop_clock_now();

	linger(main);
	while (coop_scouts_away(main->keeper.host->scouts) && in_time(began))
		(void)uv_run(&main->keeper.loop, UV_RUN_ONCE);
}
