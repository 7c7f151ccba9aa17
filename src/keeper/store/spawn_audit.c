#include "keeper/store/spawn_audit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io/log.h"
#include "base/json/jsonw.h"
#include "interface/schema.h"
#include "keeper/conf/env_rules.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/injections.h"
#include "keeper/core/books.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "keeper/process/cause.h"
#include "keeper/process/process.h"
#include "keeper/store/journal.h"
#include "keeper/store/record.h"
#include "records/audit_chain.h"
#include "records/secret.h"

/* Lines are short, so that nobody washes the audit away with long ones. */
#define WORDS_MAX 8192u     /* bytes of argv */
#define NAME_MAX_SHOWN 128u /* of a variable's name; longer ones are left out */
#define TEXT_MAX_SHOWN 2048 /* of a word, a command line, a path */

static void write_cut(struct coop_jsonw *w, const char *name, const char *text)
{
	char shown[TEXT_MAX_SHOWN + 1];

	if (text)
		(void)snprintf(shown, sizeof shown, "%.*s", TEXT_MAX_SHOWN, text);
	coop_jsonw_string(w, name, text ? shown : NULL);
}

/* What was asked, whether or not it makes sense: nothing has checked it yet. */
static void write_argv(const json_t *args, struct coop_jsonw *w)
{
	const json_t *argv = json_object_get(args, "argv");
	size_t written = 0;

	coop_jsonw_array(w, "argv");
	for (size_t i = 0; i < json_array_size(argv) && written < WORDS_MAX; i++) {
		const char *word = json_string_value(json_array_get(argv, i));
		if (!word)
			break;
		write_cut(w, NULL, word);
		written += strlen(word) + 1;
	}
	coop_jsonw_array_end(w);
	if (written >= WORDS_MAX)
		coop_jsonw_bool(w, "argv_truncated", true);
	if (json_string_value(json_object_get(args, "command")))
		write_cut(w, "command", json_string_value(json_object_get(args, "command")));
}

/* With the keeper's key: a plain hash of a short secret could be found by trying. */
static void write_hash(const struct coop_keeper *keeper, const char *name, const void *data,
		       size_t size, struct coop_jsonw *w)
{
	uint8_t hash[COOP_HASH_SIZE];
	char text[COOP_HASH_TEXT];

	if (coop_secret_hash(coop_books_of(keeper)->secret, "audit", data, size, hash) < 0) {
		w->failed = true;
		return;
	}
	coop_hash_format(hash, text);
	coop_jsonw_string(w, name, text);
}

static void write_env(const struct coop_keeper *keeper, const json_t *env, struct coop_jsonw *w)
{
	const char *name;
	json_t *value;

	coop_jsonw_begin(w, "env");
	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		/* What is no name of a variable is not repeated: who knows what it is. */
		if (!json_is_string(value) || !coop_env_valid_name(name) ||
		    strlen(name) > NAME_MAX_SHOWN)
			continue;
		coop_jsonw_begin(w, name);
		coop_jsonw_bool(w, "present", true);
		coop_jsonw_bool(w, "redacted", true);
		write_hash(keeper, "value_sha256", json_string_value(value),
			   json_string_length(value), w);
		coop_jsonw_end(w);
	}
	coop_jsonw_end(w);
}

/* Of files that are given along: names, and hashes of what is in them. Nothing of what is no list
 * of files. */
static void write_files(const struct coop_keeper *keeper, const json_t *args,
			struct coop_injections_data data, struct coop_jsonw *w)
{
	struct coop_injections *files = NULL;
	struct coop_err err = {0};
	size_t written = 0;

	if (coop_injections_read(args, data, false, &files, &err) < 0)
		w->failed |= err.code == COOP_INTERNAL;
	if (!files)
		return;
	coop_jsonw_array(w, "file_injections");
	for (size_t i = 0; i < files->count && written < WORDS_MAX; i++) {
		const char *name = files->names[i] ? files->names[i] : files->paths[i];
		coop_jsonw_begin(w, NULL);
		write_cut(w, files->names[i] ? "name" : "path", name);
		write_hash(keeper, "sha256", files->files[i].bytes, files->files[i].size, w);
		coop_jsonw_end(w);
		written += strlen(name) + 1;
	}
	coop_jsonw_array_end(w);
	coop_injections_free(files);
}

/* `process` may not have come far, or be NULL. */
static void write_attempt(const struct coop_request *request, const struct coop_process *process,
			  const char *decision, struct coop_jsonw *w)
{
	const struct coop_agent *agent = request->conn->agent;
	const struct coop_keeper *keeper = request->keeper;
	const char *cwd = process ? process->labels.cwd : NULL;
	/* All of it is here: nothing is judged before. */
	const struct coop_injections_data data = {request->data, request->data_have},
					  input = coop_injections_rest(request->args, data);

	coop_jsonw_string(w, "kind", "spawn");
	coop_jsonw_string(w, "decision", decision);
	coop_jsonw_string(w, "principal", agent ? agent->principal->name : NULL);
	coop_jsonw_string(w, "agent", agent ? agent->path : NULL);
	write_argv(request->args, w);
	write_cut(w, "cwd", cwd ? cwd : json_string_value(json_object_get(request->args, "cwd")));
	coop_jsonw_string(w, "profile", coop_confine_profile(process));
	write_env(keeper, json_object_get(request->args, "env"), w);
	write_files(keeper, request->args, data, w);
	if (input.size) {
		coop_jsonw_begin(w, "stdin");
		coop_jsonw_uint(w, "size", input.size);
		write_hash(keeper, "sha256", input.bytes, input.size, w);
		coop_jsonw_end(w);
	} else {
		coop_jsonw_null(w, "stdin");
	}
}

/* Adds the line; coop_journal_line() has it carried to the disk. 0 or -errno. */
static int append(struct coop_keeper *keeper, enum coop_audit_kind kind, struct coop_buf *out,
		  const struct coop_jsonw *w, uint64_t *ret_seq)
{
	int r = w->failed || coop_buf_append(out, "", 1) < 0
			? -ENOMEM
			: coop_audit_chain_add(&coop_journal_of(keeper)->chain, kind,
					       coop_clock_wall_ms(),
					       (const char *)coop_buf_front(out), ret_seq);

	coop_buf_clear(out);
	return r;
}

/* The same, with an error for whoever needs the line. Where the disk has refused the last ones it
 * is tried again, and nobody is told meanwhile that his has been written. */
static int append_or_fail(struct coop_keeper *keeper, struct coop_buf *out,
			  const struct coop_jsonw *w, uint64_t *ret_seq, struct coop_err *err)
{
	const char *why = coop_books_of(keeper)->audit_error;
	int r = -EIO;

	if (*why) {
		coop_journal_retry(keeper);
		coop_buf_clear(out);
	} else {
		r = append(keeper, COOP_AUDIT_START, out, w, ret_seq);
		why = r == -ENOBUFS ? "the disk does not take it" : strerror(-r);
	}
	if (r == -ENOMEM)
		return coop_err_no_memory(err);
	return r == 0 ? 0
		      : coop_err_set(err, COOP_UNAVAILABLE, "the audit cannot be written: %s", why);
}

/* Nobody waits for the line. */
static void append_or_lose(struct coop_keeper *keeper, enum coop_audit_kind kind,
			   struct coop_buf *out, const struct coop_jsonw *w)
{
	uint64_t seq;
	int r = append(keeper, kind, out, w, &seq);

	if (r == 0)
		coop_journal_line(keeper);
	else if (coop_books_of(keeper)->audit_lost++ == 0)
		coop_log(COOP_LOG_ERROR, "lines of the audit are lost error=%s",
			 coop_err_errno_name(-r));
}

/* An allowed line needs an end, or the next keeper would call the start lost. */
void coop_spawn_audit_not_started(struct coop_process *process)
{
	process->end.cause = COOP_CAUSE_SPAWN_FAILED;
	process->end.wait_status = 126 << 8;
	process->times.started = process->end.ended = coop_clock_now();
	coop_spawn_audit_end(process);
}

int coop_spawn_audit_allowed(struct coop_request *request, struct coop_process *process,
			     struct coop_err *err)
{
	struct coop_keeper *keeper = request->keeper;
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	if (!coop_books_of(keeper)->audit)
		return 0;
	write_attempt(request, process, "allowed", &w);
	int r = append_or_fail(keeper, &out, &w, &process->books.audit_seq, err);
	if (r < 0)
		return r;
	if (coop_journal_allowed(process) < 0) {
		/* It will not be started: the line has its end now. */
		coop_spawn_audit_not_started(process);
		return coop_err_no_memory(err);
	}
	return 0;
}

/* Refused by a rule, and not for want of something: the two are told apart in the audit. */
static bool is_denial(enum coop_code code)
{
	return code == COOP_QUOTA || code == COOP_REGISTRY_FULL || code == COOP_PERMISSION_DENIED ||
	       code == COOP_CAPABILITY_DENIED || code == COOP_BOUNDARY_ESCAPE ||
	       code == COOP_PERSIST_UNSUPPORTED;
}

void coop_spawn_audit_refused(struct coop_request *request, const struct coop_process *process,
			      const struct coop_err *why)
{
	struct coop_keeper *keeper = request->keeper;
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	if (!coop_books_of(keeper)->audit)
		return;
	write_attempt(request, process, is_denial(why->code) ? "denied" : "failed", &w);
	coop_jsonw_string(&w, "code", coop_err_name(why->code));
	/* Words about wrong arguments may hold what was taken for the name of a variable. */
	if (why->code != COOP_INVALID_INPUT && why->code != COOP_TOO_LARGE)
		coop_jsonw_string(&w, "reason", why->message);
	append_or_lose(keeper, COOP_AUDIT_REFUSAL, &out, &w);
}

void coop_spawn_audit_end(struct coop_process *process)
{
	struct coop_keeper *keeper = process->keeper;
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	if (!coop_books_of(keeper)->audit || !process->books.audit_seq)
		return;
	coop_jsonw_string(&w, "kind", "end");
	coop_jsonw_uint(&w, "spawn", process->books.audit_seq);
	coop_jsonw_string(&w, "principal", process->agent->principal->name);
	coop_jsonw_string(&w, "agent", process->agent->path);
	coop_record_write_exit(process->end.wait_status, process->end.cause, &w);
	coop_jsonw_string(&w, "end_cause", coop_cause_name(process->end.cause));
	coop_jsonw_uint(&w, "duration_ms",
			(process->end.ended - process->times.started) / 1000000u);
	append_or_lose(keeper, COOP_AUDIT_END, &out, &w);
	coop_journal_closed(process);
}

int coop_spawn_audit_acknowledged(struct coop_keeper *keeper, struct coop_err *err)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};
	uint64_t seq;

	coop_jsonw_string(&w, "kind", "acknowledged");
	coop_jsonw_string(&w, "fault", coop_books_of(keeper)->audit_fault);
	int r = append_or_fail(keeper, &out, &w, &seq, err);
	if (r == 0)
		coop_journal_line(keeper);
	return r;
}
