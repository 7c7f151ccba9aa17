#include "keeper/ops/op_port.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/json/jsonw.h"
#include "base/list.h"
#include "base/mem.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/ops/ports.h"
#include "keeper/process/lookup.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/store/record.h"

#define INTERVAL_MS 100u
#define TURN_NS 10000000u /* then the rest have to wait for the next turn */

struct coop_ports {
	struct coop_link waiting; /* requests of `wait_port`; the one looked at longest ago first */
	uv_timer_t timer;
};

static void drop(struct coop_request *request)
{
	free(request->state);
	request->state = NULL;
	request->on_drop = NULL;
}

static void answer(struct coop_request *request)
{
	const struct coop_port_search *search = request->state;
	struct coop_process *process = request->process;
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_jsonw_bool(&w, "listening", search->found);
	coop_jsonw_bool(&w, "timed_out", !search->found && !coop_process_told(process));
	if (search->found) {
		coop_jsonw_string(&w, "address", search->address);
		coop_jsonw_int(&w, "pid", search->pid);
	} else {
		coop_jsonw_null(&w, "address");
		coop_jsonw_null(&w, "pid");
	}
	coop_record_show(process, COOP_RECORD_FULL, request->conn, &w, "process");
	drop(request);
	coop_request_end(request, &w);
}

/* One that began to listen since the last look is not missed. */
static void look_and_answer(struct coop_request *request)
{
	(void)coop_ports_look(request->process, request->state, true);
	coop_conn_answer_soon(request);
}

/* All who wait for the same are told what one look has found. An answer may take others with it:
 * they stay in a list until it is their turn. */
static void answer_alike(struct coop_request *first)
{
	const struct coop_port_search found = *(const struct coop_port_search *)first->state;
	const struct coop_process *process = first->process;
	struct coop_link alike;

	coop_list_init(&alike);
	COOP_LIST_EACH(&coop_ports_of(process->keeper)->waiting, link)
	{
		struct coop_request *request =
			COOP_LIST_ITEM(link, struct coop_request, in_process);
		struct coop_port_search *search = request->state;
		if (request->process != process || search->port != found.port)
			continue;
		*search = found;
		coop_list_remove(link);
		coop_list_add(&alike, link);
	}
	while (!coop_list_empty(&alike))
		coop_conn_answer_soon(COOP_LIST_ITEM(alike.next, struct coop_request, in_process));
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_keeper *keeper = timer->data;
	struct coop_link *waiting = &coop_ports_of(keeper)->waiting;
	uint64_t began = coop_clock_now();
	size_t count = 0;

	COOP_LIST_EACH(waiting, link)
	{
		count++;
	}
	/* Answers take requests out of the list, so it is always the first whose turn it is. */
	for (; count && !coop_list_empty(waiting) && coop_clock_now() - began < TURN_NS; count--) {
		struct coop_request *request =
			COOP_LIST_ITEM(waiting->next, struct coop_request, in_process);
		struct coop_port_search *search = request->state;
		coop_list_remove(&request->in_process);
		coop_list_add(waiting, &request->in_process);
		(void)coop_ports_look(request->process, search, false);
		if (search->found)
			answer_alike(request);
	}
	if (!coop_list_empty(waiting))
		(void)uv_timer_start(timer, on_timer, INTERVAL_MS, 0);
}

struct coop_ports *coop_ports_new(struct coop_keeper *keeper)
{
	struct coop_ports *ports = coop_mem_zalloc(sizeof *ports);

	if (!ports)
		return NULL;
	coop_list_init(&ports->waiting);
	(void)uv_timer_init(coop_loop_of(keeper), &ports->timer);
	ports->timer.data = keeper;
	return ports;
}

/* The timer runs only while somebody waits. */
static void wait_for_it(struct coop_request *request)
{
	struct coop_keeper *keeper = request->keeper;

	coop_list_add(&coop_ports_of(keeper)->waiting, &request->in_process);
	if (uv_is_active((uv_handle_t *)&coop_ports_of(keeper)->timer))
		return;
	uv_update_time(coop_loop_of(keeper));
	(void)uv_timer_start(&coop_ports_of(keeper)->timer, on_timer, INTERVAL_MS, 0);
}

static void fail(struct coop_request *request, const struct coop_err *err)
{
	drop(request);
	coop_request_fail(request, err);
}

void coop_op_wait_port(struct coop_request *request)
{
	int64_t timeout = coop_arg_int(request->args, "timeout_ms", -1);
	struct coop_process *process = coop_lookup_named(request);
	struct coop_port_search *search;
	struct coop_err err;

	if (!process)
		return;
	search = coop_mem_zalloc(sizeof *search);
	if (!search) {
		coop_request_no_memory(request);
		return;
	}
	search->port = (uint16_t)coop_arg_int(request->args, "port", 0);
	coop_process_hold(process, request);
	request->state = search;
	request->on_drop = drop;
	request->on_timeout = look_and_answer;
	request->on_room = answer;
	if (coop_ports_look(process, search, true) < 0) {
		(void)coop_err_set(
			&err, COOP_UNAVAILABLE,
			"this kernel does not tell who listens: it has no /proc/net/tcp");
		fail(request, &err);
	} else if (search->found || coop_process_told(process) || timeout == 0) {
		coop_conn_answer_soon(request);
	} else if (timeout > 0 && coop_request_timer(request, (uint64_t)timeout) < 0) {
		(void)coop_err_no_memory(&err);
		fail(request, &err);
	} else {
		wait_for_it(request);
	}
}

static struct coop_request *next_of(const struct coop_process *process)
{
	const struct coop_link *waiting = &coop_ports_of(process->keeper)->waiting;

	for (struct coop_link *at = waiting->next; at != waiting; at = at->next) {
		struct coop_request *request = COOP_LIST_ITEM(at, struct coop_request, in_process);
		if (request->process == process)
			return request;
	}
	return NULL;
}

/* At the end one last look: a descendant may listen although the leader has gone. */
static void on_phase(struct coop_process *process, enum coop_phase phase)
{
	if (phase != COOP_PHASE_TOLD)
		return;
	struct coop_request *request;

	while ((request = next_of(process))) {
		(void)coop_ports_look(process, request->state, true);
		answer_alike(request);
	}
}

const struct coop_observer coop_port_observer = {.on_phase = on_phase};
