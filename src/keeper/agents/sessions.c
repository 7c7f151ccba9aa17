#include "keeper/agents/sessions.h"
#include "keeper/owner/agents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/jsonw.h"
#include "base/list.h"
#include "base/mem.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/conf/conf.h"
#include "keeper/confine/net.h"
#include "keeper/core/keeper.h"
#include "keeper/core/labels.h"
#include "keeper/core/life.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/queue.h"
#include "keeper/owner/session.h"
#include "keeper/process/completions.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/tree/party.h"

#define GRACE_MS 5000

/* The handle stands in the session, so both go together. */
static void on_closed(uv_handle_t *handle)
{
	struct coop_session *session = handle->data;

	coop_net_orphan(&session->net);
	free(session->label);
	free(session);
}

/* Processes that stay leave it first; a number that nobody uses any more is never given again, so
 * nothing can join it by mistake. */
static void drop(struct coop_session *session)
{
	session->ending = true;
	while (!coop_list_empty(&session->processes))
		coop_list_remove(session->processes.next);
	coop_completions_close(&session->completions);
	coop_list_remove(&session->in_agent);
	session->agent->session_count--;
	coop_agents_of(session->agent->keeper)->session_count--;
	coop_life_look(session->agent->keeper);
	coop_agent_unref(session->agent);
	uv_close((uv_handle_t *)&session->timer, on_closed);
}

void coop_session_drop_all(struct coop_agent *agent)
{
	while (!coop_list_empty(&agent->sessions))
		drop(COOP_LIST_ITEM(agent->sessions.next, struct coop_session, in_agent));
}

/* Ends what is in it, and then itself; the party is told when all are gone. */
static void end_session(struct coop_session *session, const struct coop_kill_order *order,
			struct coop_party *party)
{
	session->ending = true;
	COOP_LIST_EACH(&session->processes, link)
	{
		struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.session);
		if (process->terms.lease != COOP_LEASE_PERSISTENT)
			coop_party_add(party, process, order);
	}
	drop(session);
	coop_party_wait(party);
}

static void nobody_waits(struct coop_party *party)
{
	(void)party;
}

/* As `session_end` does it, with nobody to be answered. */
static void on_expired(uv_timer_t *timer)
{
	struct coop_session *session = timer->data;
	struct coop_kill_order order = {
		.cause = COOP_CAUSE_SESSION_END,
		.evidence = {.limit = "session max_lifetime_ms", .value = session->max_lifetime_ms},
		.grace_ms = GRACE_MS,
	};
	struct coop_party *party = coop_party_new(NULL, nobody_waits);

	if (party)
		end_session(session, &order, party);
	else
		(void)uv_timer_start(timer, on_expired, 100, 0); /* no memory: again soon */
}

static void write_session(const struct coop_session *session, const struct coop_agent *viewer,
			  struct coop_jsonw *w, const char *name)
{
	char text[COOP_SESSION_TEXT];
	unsigned live = 0;

	COOP_LIST_EACH(&session->processes, link)
	{
		live += coop_process_live(COOP_LIST_ITEM(link, struct coop_process, in.session));
	}
	coop_session_format(session->n, text);
	coop_jsonw_begin(w, name);
	coop_jsonw_string(w, "id", text);
	coop_jsonw_string(w, "label", session->label);
	coop_jsonw_string(w, "agent", coop_agent_label(viewer, session->agent));
	coop_jsonw_string(w, "agent_path", session->agent->path);
	coop_jsonw_time(w, "created_at", session->created_at);
	coop_jsonw_time(w, "expires_at", session->expires_at);
	coop_jsonw_uint(w, "processes", live);
	coop_jsonw_end(w);
}

static struct coop_session *new_session(struct coop_agent *agent, const json_t *args)
{
	struct coop_session *session = coop_mem_zalloc(sizeof *session);
	const char *label = coop_arg_string(args, "label", NULL);

	if (!session || (label && !(session->label = coop_label_clean(label)))) {
		free(session);
		return NULL;
	}
	session->agent = coop_agent_ref(agent);
	session->n = ++coop_agents_of(agent->keeper)->last_session;
	coop_agents_of(agent->keeper)->session_count++;
	coop_life_look(agent->keeper);
	session->created_at = coop_clock_wall_ms();
	session->max_lifetime_ms = coop_arg_int(args, "max_lifetime_ms", 0);
	if (session->max_lifetime_ms)
		session->expires_at = session->created_at + session->max_lifetime_ms;
	coop_list_init(&session->processes);
	coop_completions_init(&session->completions);
	coop_list_add(&agent->sessions, &session->in_agent);
	agent->session_count++;
	(void)uv_timer_init(coop_loop_of(agent->keeper), &session->timer);
	session->timer.data = session;
	uv_update_time(coop_loop_of(agent->keeper));
	if (session->max_lifetime_ms)
		(void)uv_timer_start(&session->timer, on_expired,
				     (uint64_t)session->max_lifetime_ms, 0);
	return session;
}

/* Each keeper has a range of numbers, behind those of the one before it, and may run out of
 * them. */
void coop_op_session_new(struct coop_request *request)
{
	struct coop_agent *agent = request->conn->agent;
	const struct coop_keeper *keeper = request->keeper;
	int64_t limit = coop_conf_of(keeper)->settings.max_sessions;
	struct coop_err err = {0};
	struct coop_jsonw w;

	int r = 0;
	if (coop_agents_of(keeper)->session_end &&
	    coop_agents_of(keeper)->last_session >= coop_agents_of(keeper)->session_end) {
		r = coop_err_set(&err, COOP_UNAVAILABLE,
				 "this keeper has no number left for a session: restart it");
	} else if (agent->session_count >= limit) {
		r = coop_err_set(&err, COOP_QUOTA,
				 "the limit of %lld sessions of this agent is reached",
				 (long long)limit);
		coop_err_detail(&err, "scope", "sessions");
		coop_err_detail_int(&err, "limit", limit);
		coop_err_detail_int(&err, "in_use", agent->session_count);
	}
	if (r < 0) {
		coop_request_fail(request, &err);
		return;
	}
	struct coop_session *session = new_session(agent, request->args);
	if (!session) {
		coop_request_no_memory(request);
		return;
	}
	coop_request_result(request, &w);
	write_session(session, agent, &w, "session");
	coop_request_end(request, &w);
}

static void answer_ended(struct coop_party *party)
{
	struct coop_jsonw w;

	if (!party->request)
		return;
	coop_request_result(party->request, &w);
	coop_jsonw_uint(&w, "ended", party->ended);
	coop_jsonw_uint(&w, "survivors", party->survivors);
	coop_request_end(party->request, &w);
}

/* Its own sessions alone: those of agents below are theirs to end. */
void coop_op_session_end(struct coop_request *request)
{
	struct coop_agent *agent = request->conn->agent;
	struct coop_err err;
	struct coop_session *session =
		coop_session_find(agent, coop_arg_string(request->args, "id", ""), "id", &err);
	struct coop_kill_order order = {
		.cause = COOP_CAUSE_SESSION_END,
		.evidence = {.request = "session_end", .agent = agent->path},
		.grace_ms = (uint64_t)coop_arg_int(request->args, "grace_ms", GRACE_MS),
	};

	if (!session) {
		coop_request_fail(request, &err);
		return;
	}
	struct coop_party *party = coop_party_new(request, answer_ended);
	if (party)
		end_session(session, &order, party);
	else
		coop_request_no_memory(request);
}

void coop_op_session_list(struct coop_request *request)
{
	struct coop_agent *viewer = request->conn->agent;
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_jsonw_array(&w, "sessions");
	for (struct coop_agent *agent = NULL; (agent = coop_agent_next(viewer, agent));) {
		COOP_LIST_EACH(&agent->sessions, link)
		{
			write_session(COOP_LIST_ITEM(link, struct coop_session, in_agent), viewer,
				      &w, NULL);
		}
	}
	coop_jsonw_array_end(&w);
	coop_request_end(request, &w);
}
