#include "keeper/ops/notices.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "interface/choices.h"
#include "interface/schema.h"
#include "keeper/core/keeper.h"
#include "keeper/core/meters.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/link/watch.h"
#include "keeper/output/spool.h"
#include "keeper/output/stream.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/session.h"
#include "keeper/process/cause.h"
#include "keeper/process/eviction.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/progress.h"
#include "keeper/process/registry.h"
#include "keeper/store/record.h"

struct coop_notices {
	struct coop_link subscribers;
	unsigned count;
};

struct coop_notices *coop_notices_new(void)
{
	struct coop_notices *notices = coop_mem_zalloc(sizeof *notices);

	if (notices)
		coop_list_init(&notices->subscribers);
	return notices;
}

unsigned coop_notices_count(const struct coop_keeper *keeper)
{
	return coop_notices_of(keeper)->count;
}

/* A connection that is ending acts as nobody, and hears nothing more. */
static bool wants(const struct coop_subscriber *subscriber, const struct coop_agent *owner)
{
	const struct coop_request *request = subscriber->request;
	const struct coop_agent *viewer = request->conn->agent;

	return viewer && coop_agent_sees(viewer, owner) &&
	       coop_agent_matches(viewer, owner, coop_arg_string(request->args, "agent", NULL));
}

static bool wants_process(const struct coop_subscriber *subscriber,
			  const struct coop_process *process)
{
	return wants(subscriber, process->agent) &&
	       coop_record_in_session(process,
				      coop_arg_string(subscriber->request->args, "session", NULL));
}

static void write_bytes(const struct coop_process *process, struct coop_jsonw *w)
{
	coop_jsonw_begin(w, "bytes");
	for (int i = 0; i < process->output.count; i++)
		coop_jsonw_uint(w, coop_stream_name(process->output.streams[i].number),
				process->output.streams[i].ring.end);
	coop_jsonw_end(w);
}

static void write_process(const struct coop_process *process, const struct coop_agent *viewer,
			  bool ended, struct coop_jsonw *w)
{
	char session[COOP_SESSION_TEXT];

	coop_session_format(process->terms.session_n, session);
	coop_jsonw_begin(w, "process");
	coop_jsonw_string(w, "id", process->id);
	coop_jsonw_string(w, "label", process->labels.label);
	coop_jsonw_string(w, "tag", process->labels.tag);
	coop_jsonw_string(w, "agent", coop_agent_label(viewer, process->agent));
	coop_jsonw_string(w, "agent_path", process->agent->path);
	coop_jsonw_string(w, "session", *session ? session : NULL);
	coop_jsonw_int(w, "pid", process->child.pid);
	coop_jsonw_string(w, "state", coop_choices_state[coop_process_state(process)]);
	if (ended) {
		coop_jsonw_time(w, "started_at", process->times.started_at);
		coop_jsonw_time(w, "ended_at", process->end.ended_at);
		coop_record_write_exit(process->end.wait_status, process->end.cause, w);
		coop_jsonw_string(w, "end_cause", coop_cause_name(process->end.cause));
		write_bytes(process, w);
		coop_jsonw_string(w, "output_path", coop_spool_path(&process->output, 0));
		coop_jsonw_bool(w, "receipt", coop_process_receipt(process));
	}
	coop_jsonw_end(w);
}

/* Tells what was missed, if there is room for it. Returns whether nothing is left to say. */
static bool tell_gap(struct coop_subscriber *subscriber)
{
	struct coop_jsonw w;

	if (!coop_conn_has_room_now(subscriber->request->conn))
		return subscriber->lost == 0;
	if (subscriber->lost) {
		coop_meters_of(subscriber->request->keeper)->gaps++;
		coop_request_event(subscriber->request, "gap", &w);
		coop_jsonw_uint(&w, "lost", subscriber->lost);
		coop_request_event_end(subscriber->request, &w);
		subscriber->lost = 0;
	}
	return true;
}

/* Begins an event, or counts it as lost. */
static bool begin(struct coop_subscriber *subscriber, const char *event, struct coop_jsonw *w)
{
	if (!tell_gap(subscriber) || !coop_conn_has_room_now(subscriber->request->conn)) {
		subscriber->lost++;
		return false;
	}
	coop_request_event(subscriber->request, event, w);
	coop_jsonw_time(w, "at", coop_clock_wall_ms());
	return true;
}

/* `live` tells what happened since the subscription from what is replayed. */
static void send_exit(struct coop_subscriber *subscriber, struct coop_process *process,
		      struct coop_jsonw *w)
{
	const struct coop_agent *viewer = subscriber->request->conn->agent;

	coop_jsonw_bool(w, "live", process->times.told_number > subscriber->came);
	write_process(process, viewer, true, w);
	coop_eviction_tells(subscriber->request->conn, process, false);
	coop_request_event_end(subscriber->request, w);
}

/* `stream`, `progress`: what the event is about; NULL: none. */
static void tell(struct coop_process *process, const char *event, const struct coop_outlet *stream,
		 const struct coop_progress *progress)
{
	bool ended = !strcmp(event, "exited");
	struct coop_jsonw w;

	COOP_LIST_EACH(&coop_notices_of(process->keeper)->subscribers, link)
	{
		struct coop_subscriber *subscriber =
			COOP_LIST_ITEM(link, struct coop_subscriber, in_keeper);
		if (!wants_process(subscriber, process) || !begin(subscriber, event, &w))
			continue;
		if (ended) {
			send_exit(subscriber, process, &w);
			continue;
		}
		if (stream)
			coop_jsonw_string(&w, "stream", coop_stream_name(stream->number));
		if (progress)
			coop_progress_write(progress, &w);
		write_process(process, subscriber->request->conn->agent, false, &w);
		coop_request_event_end(subscriber->request, &w);
	}
}

static void on_event(struct coop_process *process, const char *event)
{
	tell(process, event, NULL, NULL);
}

static void on_phase(struct coop_process *process, enum coop_phase phase)
{
	if (phase == COOP_PHASE_RUNNING)
		on_event(process, "started");
	else if (phase == COOP_PHASE_TOLD && coop_process_is_news(process))
		on_event(process, "exited");
}

/* Once a process: the end of starting may tell of it, or the stream. */
static void on_first_output(struct coop_process *process, const struct coop_outlet *stream)
{
	if (process->books.output_told)
		return;
	process->books.output_told = true;
	tell(process, "output_first", stream, NULL);
}

static void on_progress(struct coop_process *process)
{
	tell(process, "progress", NULL, process->progress);
}

const struct coop_observer coop_notices_observer = {
	.on_phase = on_phase,
	.on_event = on_event,
	.on_first_output = on_first_output,
	.on_progress = on_progress,
};

/* Details are kept without their braces, as members that others may be added to. */
void coop_notices_refused(struct coop_agent *agent, const struct coop_err *err)
{
	char details[sizeof err->details + 3];
	struct coop_jsonw w;

	(void)snprintf(details, sizeof details, "{%s}", err->details);
	COOP_LIST_EACH(&coop_notices_of(agent->keeper)->subscribers, link)
	{
		struct coop_subscriber *subscriber =
			COOP_LIST_ITEM(link, struct coop_subscriber, in_keeper);
		if (!wants(subscriber, agent) || !begin(subscriber, "quota_refused", &w))
			continue;
		coop_jsonw_string(&w, "agent",
				  coop_agent_label(subscriber->request->conn->agent, agent));
		coop_jsonw_string(&w, "agent_path", agent->path);
		coop_jsonw_string(&w, "code", coop_err_name(err->code));
		coop_jsonw_string(&w, "message", err->message);
		coop_jsonw_raw(&w, "details", details);
		coop_request_event_end(subscriber->request, &w);
	}
}

/* The ends of before its time, in the order of the starts, as far as there is room. */
static bool replay(struct coop_subscriber *subscriber)
{
	struct coop_conn *conn = subscriber->request->conn;
	bool any = false;
	struct coop_jsonw w;

	/* A connection that is ending may act as nobody. */
	if (!conn->agent)
		return false;
	COOP_LIST_EACH(&conn->agent->principal->processes, link)
	{
		struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.principal);
		if (process->n <= subscriber->replayed)
			continue;
		if (!coop_conn_has_room(conn))
			return any;
		subscriber->replayed = process->n;
		if (!coop_process_told(process) || process->times.told_number > subscriber->came ||
		    !wants_process(subscriber, process))
			continue;
		coop_request_event(subscriber->request, "exited", &w);
		coop_jsonw_time(&w, "at", process->end.ended_at);
		send_exit(subscriber, process, &w);
		any = true;
	}
	subscriber->replaying = false;
	return any;
}

static bool on_room(struct coop_conn *conn)
{
	bool any = false;

	COOP_LIST_EACH(&conn->subscribers, link)
	{
		struct coop_subscriber *subscriber =
			COOP_LIST_ITEM(link, struct coop_subscriber, in_conn);
		if (subscriber->replaying)
			any = replay(subscriber) || any;
		any = (subscriber->lost && tell_gap(subscriber)) || any;
	}
	return any;
}

static void detach(struct coop_request *request)
{
	struct coop_subscriber *subscriber = request->state;

	coop_list_remove(&subscriber->in_keeper);
	coop_list_remove(&subscriber->in_conn);
	coop_notices_of(request->keeper)->count--;
	free(subscriber);
}

void coop_op_follow_events(struct coop_request *request)
{
	struct coop_keeper *keeper = request->keeper;
	struct coop_subscriber *subscriber = coop_mem_zalloc(sizeof *subscriber);
	struct coop_jsonw w;

	if (!subscriber) {
		coop_request_no_memory(request);
		return;
	}
	subscriber->request = request;
	subscriber->came = coop_registry_told(keeper);
	subscriber->replaying = coop_arg_bool(request->args, "replay", true);
	request->state = subscriber;
	request->on_drop = detach;
	coop_list_add(&coop_notices_of(keeper)->subscribers, &subscriber->in_keeper);
	coop_list_add(&request->conn->subscribers, &subscriber->in_conn);
	coop_notices_of(keeper)->count++;
	coop_request_event(request, "subscribed", &w);
	coop_request_event_end(request, &w);
	coop_conn_touch(request->conn);
}

const struct coop_conn_watch coop_notices_watch = {.on_room = on_room};
