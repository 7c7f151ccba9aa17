#include "keeper/store/archive.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/io/log.h"
#include "base/json/stored.h"
#include "base/mem.h"
#include "interface/choices.h"
#include "interface/schema.h"
#include "keeper/output/digest.h"
#include "keeper/output/stream.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/session.h"
#include "keeper/process/cause.h"
#include "keeper/process/lookup.h"
#include "keeper/process/make.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/store/record.h"

#define MS 1000000u
/* What is known of one that has not ended. */
#define RUNNING                                                                         \
	"{\"state\":\"running\",\"duration_ms\":null,\"exit\":null,\"end_cause\":null," \
	"\"end_evidence\":null,\"bytes\":null,\"events\":null,\"cpu_usage_ns\":null,"   \
	"\"memory_peak_bytes\":null,\"digest\":null}"

static char *text_of(struct coop_buf *out, const struct coop_jsonw *w)
{
	if (!w->failed && coop_buf_append(out, "", 1) == 0)
		return (char *)out->data;
	coop_buf_clear(out);
	return NULL;
}

/* Both texts hold the members of a row of `history` as it is shown, so that nothing has to be
 * parsed to show it. */
char *coop_archive_about(const struct coop_process *process)
{
	const struct coop_labels *labels = &process->labels;
	char session[COOP_SESSION_TEXT];
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	coop_session_format(process->terms.session_n, session);
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "tag", labels->tag);
	coop_jsonw_string(&w, "label", labels->label);
	coop_jsonw_string(&w, "alias", labels->alias);
	coop_jsonw_string(&w, "why", labels->why);
	coop_jsonw_string(&w, "task", labels->task);
	coop_jsonw_string(&w, "call_id", labels->call_id);
	coop_jsonw_string(&w, "session", *session ? session : NULL);
	coop_jsonw_raw(&w, "argv", labels->argv_json);
	coop_jsonw_bool(&w, "argv_truncated", labels->truncated);
	coop_jsonw_string(&w, "command", labels->command);
	coop_jsonw_string(&w, "mode", labels->shell ? "shell" : "argv");
	coop_jsonw_string(&w, "cwd", labels->cwd);
	coop_jsonw_string(&w, "kind", process->terms.pty ? "pty" : "pipe");
	coop_jsonw_string(&w, "stderr_mode", coop_record_stderr_mode(process));
	coop_jsonw_string(&w, "lease", coop_choices_lease[process->terms.lease]);
	coop_jsonw_int(&w, "pid", process->child.pid);
	coop_record_write_audit(process->books.audit_seq, &w);
	coop_jsonw_end(&w);
	return text_of(&out, &w);
}

char *coop_archive_outcome(const struct coop_process *process)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "state", coop_choices_state[coop_process_state(process)]);
	coop_jsonw_uint(&w, "duration_ms", (process->end.ended - process->times.started) / MS);
	coop_record_write_exit(process->end.wait_status, process->end.cause, &w);
	coop_jsonw_string(&w, "end_cause", coop_cause_name(process->end.cause));
	coop_record_write_evidence(process, &w, "end_evidence");
	coop_jsonw_begin(&w, "bytes");
	for (int i = 0; i < process->output.count; i++)
		coop_jsonw_uint(&w, coop_stream_name(process->output.streams[i].number),
				process->output.streams[i].ring.end);
	coop_jsonw_end(&w);
	coop_jsonw_uint(&w, "events", process->output.exit_cursor);
	coop_jsonw_uint(&w, "cpu_usage_ns", process->usage.cpu_ns);
	coop_jsonw_uint(&w, "memory_peak_bytes", process->usage.peak_bytes);
	coop_digest_write(&process->output, &w, "digest");
	coop_jsonw_end(&w);
	return text_of(&out, &w);
}

static int64_t number(const json_t *json, const char *name)
{
	return json_integer_value(json_object_get(json, name));
}

/* NULL stays NULL; false without memory. */
static bool copy(const json_t *json, const char *name, char **ret)
{
	const char *text = json_string_value(json_object_get(json, name));

	*ret = text ? coop_mem_strdup(text) : NULL;
	return !text || *ret;
}

/* The number behind a prefix: "ses-3", "aud-17". 0 if there is none. */
static uint64_t numbered(const json_t *json, const char *name, const char *prefix)
{
	const char *text = json_string_value(json_object_get(json, name));
	size_t size = strlen(prefix);

	return text && !strncmp(text, prefix, size) ? strtoull(text + size, NULL, 10) : 0;
}

static bool says(const json_t *json, const char *name, const char *word)
{
	const char *text = json_string_value(json_object_get(json, name));

	return text && !strcmp(text, word);
}

static bool restore_labels(struct coop_labels *labels, const json_t *about)
{
	const json_t *words = json_object_get(about, "argv");
	char *argv = json_is_array(words) ? json_dumps(words, JSON_COMPACT) : NULL;

	labels->argv_json = argv;
	labels->env_names = coop_mem_strdup("[]");
	labels->shell = says(about, "mode", "shell");
	labels->truncated = json_is_true(json_object_get(about, "argv_truncated"));
	return argv && labels->env_names && copy(about, "tag", &labels->tag) &&
	       copy(about, "label", &labels->label) && copy(about, "alias", &labels->alias) &&
	       copy(about, "why", &labels->why) && copy(about, "task", &labels->task) &&
	       copy(about, "call_id", &labels->call_id) &&
	       copy(about, "command", &labels->command) && copy(about, "cwd", &labels->cwd) &&
	       labels->label && labels->command && labels->cwd;
}

/* Nothing is retained, but positions go on counting: a reader that comes back is told how much is
 * gone. */
static void restore_streams(struct coop_process *process, const json_t *bytes)
{
	process->output.count = process->terms.pty || process->terms.merged ? 1 : 2;
	for (int i = 0; i < process->output.count; i++) {
		struct coop_outlet *stream = &process->output.streams[i];
		stream->number = (uint8_t)(process->terms.pty ? 3 : i + 1);
		stream->eof = true;
		stream->ring.start = stream->ring.end =
			(uint64_t)number(bytes, coop_stream_name(stream->number));
	}
}

static void restore_end(struct coop_process *process, const json_t *outcome, int64_t ended_at)
{
	struct coop_ending *end = &process->end;

	const json_t *evidence = json_object_get(outcome, "end_evidence");

	end->wait_status = (int)number(evidence, "wait_status");
	end->cause = coop_cause_parse(json_string_value(json_object_get(outcome, "end_cause")));
	end->ended_at = ended_at;
	process->times.started = 1;
	end->ended = 1 + (uint64_t)number(outcome, "duration_ms") * MS;
	process->books.archived_evidence = json_dumps(evidence, JSON_COMPACT | JSON_ENCODE_ANY);
	process->output.exit_cursor = (uint64_t)number(outcome, "events");
	process->output.index.first = process->output.index.next = process->output.exit_cursor;
	for (int i = 0; i < process->output.count; i++)
		process->output.index.bytes += process->output.streams[i].ring.end;
	process->output.index.forgotten_bytes = process->output.index.bytes;
	process->usage.cpu_ns = (uint64_t)number(outcome, "cpu_usage_ns");
	process->usage.peak_bytes = (uint64_t)number(outcome, "memory_peak_bytes");
	process->course.emptied = end->ended;
	process->times.owner_told_at = ended_at;
	coop_phase_restore(process);
}

/* The id of the row must be the one of its number: a row that names another process would answer
 * for that. */
static bool restore(struct coop_process *process, const struct coop_store_process *row,
		    const json_t *about, const json_t *outcome)
{
	process->n = row->n;
	process->child.pid = (pid_t)number(about, "pid");
	process->times.started_at = row->started_at;
	process->terms.session_n = numbered(about, "session", "ses-");
	process->books.audit_seq = numbered(about, "audit_id", "aud-");
	process->terms.pty = says(about, "kind", "pty");
	process->terms.merged = says(about, "stderr_mode", "merged");
	for (int lease = 0; coop_choices_lease[lease]; lease++) {
		if (says(about, "lease", coop_choices_lease[lease]))
			process->terms.lease = (enum coop_term)lease;
	}
	if (strlen(row->id) >= sizeof process->id || coop_lookup_number(row->id) != row->n)
		return false;
	memcpy(process->id, row->id, strlen(row->id) + 1);
	restore_streams(process, json_object_get(outcome, "bytes"));
	restore_end(process, outcome, row->ended_at);
	const json_t *digest = json_object_get(outcome, "digest");
	if (json_is_object(digest) && !(process->output.digest = coop_digest_restore(digest)))
		return false;
	return restore_labels(&process->labels, about);
}

int coop_archive_restore(struct coop_agent *owner, const struct coop_store_process *row)
{
	json_t *about = coop_stored_object(row->about), *outcome = coop_stored_object(row->outcome);
	struct coop_process *process = coop_process_new(owner);
	bool good = process && about && outcome && restore(process, row, about, outcome);
	int r = good ? coop_registry_add_receipt(process) : 0;

	if (!good)
		coop_log(COOP_LOG_WARN, "a row of the database cannot be read n=%llu",
			 (unsigned long long)row->n);
	if (process)
		coop_process_unref(process);
	json_decref(about);
	json_decref(outcome);
	return r;
}

/* The members of an object's text go into the object that is being written. A text that is none
 * must not spoil what stands around it: false, and nothing is written. */
static bool write_members(struct coop_jsonw *w, const char *text)
{
	json_t *object = coop_stored_object(text);
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value) coop_jsonw_value(w, name, value);
	bool good = object != NULL;
	json_decref(object);
	return good;
}

void coop_archive_write(const struct coop_store_process *row, int64_t viewer_id,
			struct coop_jsonw *w)
{
	const char *slash = strrchr(row->agent_path, '/');

	coop_jsonw_begin(w, NULL);
	coop_jsonw_string(w, "id", row->id);
	coop_jsonw_begin(w, "owner");
	coop_jsonw_string(w, "principal", row->principal);
	coop_jsonw_string(w, "agent", row->agent_path);
	coop_jsonw_end(w);
	coop_jsonw_string(w, "agent",
			  row->agent == viewer_id ? "self"
			  : slash                 ? slash + 1
						  : row->agent_path);
	coop_jsonw_string(w, "agent_path", row->agent_path);
	coop_jsonw_time(w, "started_at", row->started_at);
	coop_jsonw_time(w, "ended_at", row->ended_at);
	coop_jsonw_bool(w, "released", row->released);
	bool good = write_members(w, row->about);
	if (!write_members(w, row->outcome ? row->outcome : RUNNING) || !good)
		coop_jsonw_bool(w, "damaged", true);
	coop_jsonw_end(w);
}
