#include "keeper/store/record.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text/signame.h"
#include "interface/choices.h"
#include "keeper/confine/confine.h"
#include "keeper/link/connection.h"
#include "keeper/output/digest.h"
#include "keeper/output/spool.h"
#include "keeper/output/stream.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/session.h"
#include "keeper/process/cause.h"
#include "keeper/process/eviction.h"
#include "keeper/process/note.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/store/facts.h"
#include "keeper/store/stats.h"
#include "keeper/store/told.h"
#include "keeper/tree/blocked.h"
#include "sandbox/policy/policy.h"

/* 0 means none inside, and null outside. */
static void write_limit(struct coop_jsonw *w, const char *name, int64_t value)
{
	if (value)
		coop_jsonw_int(w, name, value);
	else
		coop_jsonw_null(w, name);
}

/* What cannot be known is null, and neither yes nor no. */
static void write_known(struct coop_jsonw *w, const char *name, enum coop_known known)
{
	if (known == COOP_UNKNOWN)
		coop_jsonw_null(w, name);
	else
		coop_jsonw_bool(w, name, known == COOP_YES);
}

void coop_record_write_audit(uint64_t seq, struct coop_jsonw *w)
{
	char text[32];

	(void)snprintf(text, sizeof text, "aud-%llu", (unsigned long long)seq);
	coop_jsonw_string(w, "audit_id", seq ? text : NULL);
}

/* The agent's own session has no number, and is called by a word. */
bool coop_record_in_session(const struct coop_process *process, const char *filter)
{
	char text[COOP_SESSION_TEXT];

	if (!filter)
		return true;
	coop_session_format(process->terms.session_n, text);
	return !strcmp(filter, *text ? text : "default");
}

static void write_owner(const struct coop_process *process, const struct coop_agent *viewer,
			struct coop_jsonw *w)
{
	const struct coop_agent *owner = process->agent;
	char session[COOP_SESSION_TEXT];

	coop_session_format(process->terms.session_n, session);
	coop_jsonw_begin(w, "owner");
	coop_jsonw_string(w, "principal", owner->principal->name);
	coop_jsonw_string(w, "agent", owner->path);
	coop_jsonw_end(w);
	coop_jsonw_string(w, "agent", coop_agent_label(viewer, owner));
	coop_jsonw_string(w, "agent_path", owner->path);
	coop_jsonw_string(w, "session", *session ? session : NULL);
}

static void write_identity(const struct coop_process *process, struct coop_jsonw *w)
{
	const struct coop_labels *labels = &process->labels;
	char user[COOP_CONFINE_USER];

	coop_jsonw_string(w, "id", process->id);
	coop_jsonw_string(w, "tag", labels->tag);
	coop_jsonw_string(w, "label", labels->label);
	coop_jsonw_string(w, "alias", labels->alias);
	coop_jsonw_string(w, "why", labels->why);
	coop_jsonw_string(w, "task", labels->task);
	coop_jsonw_string(w, "call_id", labels->call_id);
	coop_jsonw_raw(w, "argv", labels->argv_json);
	coop_jsonw_string(w, "command", labels->command);
	coop_jsonw_bool(w, "argv_truncated", labels->truncated);
	coop_jsonw_string(w, "mode", labels->shell ? "shell" : "argv");
	coop_jsonw_string(w, "cwd", labels->cwd);
	coop_jsonw_string(w, "user", coop_confine_user(process, user));
	coop_jsonw_string(w, "kind", process->terms.pty ? "pty" : "pipe");
	coop_jsonw_string(w, "lease", coop_choices_lease[process->terms.lease]);
	coop_jsonw_string(w, "start",
			  process->confine && process->confine->pooled ? "pooled" : "launched");
}

/* Of what was lost with a keeper nobody knows how it ended. */
void coop_record_write_exit(int status, enum coop_cause cause, struct coop_jsonw *w)
{
	bool known = cause != COOP_CAUSE_LOST;
	char name[COOP_SIGNAME_TEXT];

	coop_jsonw_begin(w, "exit");
	if (known && WIFSIGNALED(status)) {
		coop_signame_format(WTERMSIG(status), name);
		coop_jsonw_null(w, "code");
		coop_jsonw_int(w, "signal", WTERMSIG(status));
		coop_jsonw_string(w, "signal_name", name);
	} else {
		if (known)
			coop_jsonw_int(w, "code", WEXITSTATUS(status));
		else
			coop_jsonw_null(w, "code");
		coop_jsonw_null(w, "signal");
		coop_jsonw_null(w, "signal_name");
	}
	coop_jsonw_bool(w, "core_dumped", known && WIFSIGNALED(status) && WCOREDUMP(status));
	coop_jsonw_end(w);
}

static void write_state(const struct coop_process *process, struct coop_jsonw *w)
{
	bool live = coop_process_live(process);
	uint64_t until = live ? coop_clock_now() : process->end.ended;

	coop_jsonw_string(w, "state", coop_choices_state[coop_process_state(process)]);
	write_limit(w, "pid", process->child.pid);
	write_limit(w, "process_group_id",
		    process->child.pid); /* a leader has its own session and group */
	coop_jsonw_time(w, "started_at", process->times.started_at);
	coop_jsonw_time(w, "ended_at", process->end.ended_at);
	coop_jsonw_uint(w, "duration_ms",
			process->times.started ? (until - process->times.started) / 1000000u : 0);
	coop_jsonw_time(w, "last_output_at", process->output.last_at);
	if (live)
		coop_jsonw_null(w, "exit");
	else
		coop_record_write_exit(process->end.wait_status, process->end.cause, w);
	coop_jsonw_string(w, "end_cause", coop_cause_name(process->end.cause));
}

/* Of an earlier keeper's receipt it is kept as text: what stood in it is not made anew. */
void coop_record_write_evidence(const struct coop_process *process, struct coop_jsonw *w,
				const char *name)
{
	const struct coop_evidence *evidence = &process->end.evidence;
	char failure[COOP_NOTE_MAX];

	if (coop_process_live(process)) {
		coop_jsonw_null(w, name);
		return;
	}
	if (process->books.archived_evidence) {
		coop_jsonw_raw(w, name, process->books.archived_evidence);
		return;
	}
	coop_jsonw_begin(w, name);
	if (process->end.cause == COOP_CAUSE_LOST)
		coop_jsonw_null(w, "wait_status");
	else
		coop_jsonw_int(w, "wait_status", process->end.wait_status);
	if (evidence->request) {
		coop_jsonw_string(w, "request", evidence->request);
		coop_jsonw_string(w, "agent", evidence->agent);
	}
	if (evidence->at)
		coop_jsonw_time(w, "at", evidence->at);
	if (evidence->limit) {
		coop_jsonw_string(w, "limit", evidence->limit);
		coop_jsonw_int(w, "value", evidence->value);
	}
	if (process->end.cause == COOP_CAUSE_SANDBOX_DENIED)
		coop_jsonw_string(w, "signal", "SIGSYS");
	if (coop_note_failure(process, failure))
		coop_jsonw_string(w, "message", failure);
	if (process->end.cause == COOP_CAUSE_OOM && process->confine) {
		coop_jsonw_uint(w, "peak_bytes", process->confine->counted.memory_peak);
		coop_jsonw_uint(w, "oom_kills", process->confine->counted.oom_kills);
	}
	coop_jsonw_end(w);
}

/* Positions as readers use them: what lies before `start` is gone, or only on disk. */
static void write_stream(const struct coop_outlet *stream, struct coop_jsonw *w)
{
	coop_jsonw_begin(w, coop_stream_name(stream->number));
	coop_jsonw_uint(w, "start", coop_stream_start(stream));
	coop_jsonw_uint(w, "end", stream->ring.end);
	coop_jsonw_uint(w, "bytes_dropped", stream->dropped);
	coop_jsonw_uint(w, "ring_bytes", stream->ring.limit);
	coop_jsonw_string(w, "overflow", coop_choices_overflow[stream->overflow]);
	coop_jsonw_bool(w, "eof", stream->eof);
	if (stream->output->spool) {
		coop_jsonw_begin(w, "spool");
		coop_jsonw_uint(w, "bytes", stream->spooled);
		coop_jsonw_bool(w, "truncated", stream->spool_stopped);
		coop_jsonw_end(w);
	} else {
		coop_jsonw_null(w, "spool");
	}
	coop_jsonw_end(w);
}

const char *coop_record_stderr_mode(const struct coop_process *process)
{
	if (process->terms.pty)
		return NULL;
	return process->terms.merged ? "merged" : "separate";
}

static void write_output(const struct coop_process *process, struct coop_jsonw *w)
{
	coop_jsonw_begin(w, "streams");
	for (int i = 0; i < process->output.count; i++)
		write_stream(&process->output.streams[i], w);
	coop_jsonw_end(w);
	coop_jsonw_string(w, "stderr_mode", coop_record_stderr_mode(process));
	coop_jsonw_begin(w, "events");
	coop_jsonw_uint(w, "first", process->output.index.first);
	coop_jsonw_uint(w, "next",
			coop_process_told(process) ? process->output.exit_cursor + 1
						   : process->output.index.next);
	if (coop_process_told(process))
		coop_jsonw_uint(w, "exit", process->output.exit_cursor);
	else
		coop_jsonw_null(w, "exit");
	coop_jsonw_end(w);
	if (process->terms.pty) {
		coop_jsonw_begin(w, "terminal");
		coop_jsonw_int(w, "cols", process->terms.cols);
		coop_jsonw_int(w, "rows", process->terms.rows);
		coop_jsonw_end(w);
	} else {
		coop_jsonw_null(w, "terminal");
	}
	coop_jsonw_string(w, "stdout_path",
			  process->terms.pty ? NULL : coop_spool_path(&process->output, 1));
	coop_jsonw_string(w, "stderr_path",
			  process->output.count == 2 ? coop_spool_path(&process->output, 2) : NULL);
	coop_jsonw_string(w, "output_path", coop_spool_path(&process->output, 0));
}

static void write_limits(const struct coop_process *process, struct coop_jsonw *w)
{
	static const struct coop_sandbox_limits none;
	const struct coop_limits *limits = &process->terms.limits;

	coop_jsonw_begin(w, "limits");
	write_limit(w, "timeout_ms", limits->timeout_ms);
	coop_jsonw_int(w, "timeout_grace_ms", limits->timeout_grace_ms);
	write_limit(w, "idle_timeout_ms", limits->idle_timeout_ms);
	write_limit(w, "max_lifetime_ms", limits->max_lifetime_ms);
	coop_jsonw_int(w, "exit_retention_ms", limits->exit_retention_ms);
	coop_sandbox_limits_write_members(
		process->confine ? &process->confine->policy.limits : &none, w);
	coop_jsonw_end(w);
}

void coop_record_write(const struct coop_process *process, enum coop_record_view view,
		       const struct coop_agent *viewer, struct coop_jsonw *w, const char *name)
{
	coop_jsonw_begin(w, name);
	write_identity(process, w);
	write_owner(process, viewer, w);
	write_state(process, w);
	if (process->confine && process->confine->frozen)
		coop_jsonw_bool(w, "frozen", true);
	coop_jsonw_bool(w, "stdin_open", process->output.input.open);
	coop_jsonw_string(w, "on_exit", coop_choices_on_exit[process->terms.on_exit]);
	coop_jsonw_bool(w, "completion", process->terms.completion);
	coop_jsonw_uint(w, "descendants", process->usage.descendants);
	coop_stats_write(process, w, "stats");
	coop_jsonw_bool(w, "receipt", coop_process_receipt(process));
	if (view != COOP_RECORD_BRIEF) {
		coop_jsonw_raw(w, "env_names", process->labels.env_names);
		coop_record_write_evidence(process, w, "end_evidence");
		write_output(process, w);
		coop_digest_write(&process->output, w, "digest");
		write_known(w, "blocked_on_stdin",
			    view == COOP_RECORD_CACHED ? COOP_NO : coop_blocked_on_stdin(process));
		write_known(w, "echo_off", coop_blocked_echo_off(process));
		write_limits(process, w);
		coop_confine_write(process, w, "sandbox");
		coop_facts_write(process, w, "facts");
		coop_record_write_audit(process->books.audit_seq, w);
	}
	coop_jsonw_end(w);
}

void coop_record_show(struct coop_process *process, enum coop_record_view view,
		      struct coop_conn *conn, struct coop_jsonw *w, const char *name)
{
	if (view != COOP_RECORD_CACHED)
		coop_stats_update(process);
	coop_eviction_tells(conn, process, view != COOP_RECORD_CACHED);
	coop_record_write(process, view, conn->agent, w, name);
}

const char *coop_record_status(const struct coop_process *process)
{
	if (coop_process_live(process))
		return "running";
	if (process->end.cause == COOP_CAUSE_TIMED_OUT)
		return "timed_out";
	return process->end.cause == COOP_CAUSE_SELF_EXIT ? "exited" : "killed";
}
