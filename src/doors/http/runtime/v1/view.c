#include "doors/http/runtime/v1/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/signame.h"
#include "doors/http/runtime/v1/refusal.h"

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static uint64_t number_of(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 ? (uint64_t)value : 0;
}

static bool is(const char *text, const char *word)
{
	return text && !strcmp(text, word);
}

bool coop_process_is_id(const char *name)
{
	size_t hex, digits;

	if (strncmp(name, "psh-", 4) != 0)
		return false;
	name += 4;
	hex = strspn(name, "0123456789abcdef");
	if (!hex || name[hex] != '-')
		return false;
	name += hex + 1;
	digits = strspn(name, "0123456789");
	return digits && !name[digits];
}

char *coop_process_address(const char *name, bool *ret_none)
{
	size_t size = strlen(name);

	*ret_none = !*name || *name == '#';
	if (*ret_none)
		return NULL;
	if (coop_process_is_id(name))
		return coop_mem_strdup(name);
	char *address = coop_mem_alloc(sizeof "alias:" + size);
	if (address)
		memcpy(mempcpy(address, "alias:", 6), name, size + 1);
	return address;
}

int coop_process_signal(const json_t *value)
{
	char digits[24];

	if (json_is_string(value))
		return coop_signame_parse(json_string_value(value));
	if (!json_is_integer(value))
		return -EINVAL;
	(void)snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return coop_signame_parse(digits);
}

void coop_process_view_explain(struct coop_process_view *view, const char *text)
{
	(void)snprintf(view->error, sizeof view->error, "%s", text);
	coop_refusal_text(view->error);
}

static const char *program_of(const json_t *record)
{
	const char *program = json_string_value(json_array_get(json_object_get(record, "argv"), 0));

	return program ? program : "the program";
}

/* Of a start that failed an old record has nothing but the code. */
static void explain_failed_start(struct coop_process_view *view)
{
	const char *cwd = text_of(view->record, "cwd");
	const char *told = text_of(json_object_get(view->record, "end_evidence"), "message");

	if (told)
		(void)snprintf(view->error, sizeof view->error, "%s", told);
	else if (view->exit_code == 127)
		(void)snprintf(view->error, sizeof view->error, "cannot execute %.400s: %s",
			       program_of(view->record), strerror(ENOENT));
	else
		(void)snprintf(view->error, sizeof view->error,
			       "%.300s could not be started in %.200s", program_of(view->record),
			       cwd ? cwd : "its directory");
}

static void read_end(struct coop_process_view *view)
{
	const json_t *exit = json_object_get(view->record, "exit");
	const char *cause = text_of(view->record, "end_cause");
	const char *signal = text_of(exit, "signal_name");
	const json_t *code = json_object_get(exit, "code");

	view->exit_code = (int)json_integer_value(code);
	view->status = "failed";
	if (is(cause, "timed_out")) {
		const json_t *evidence = json_object_get(view->record, "end_evidence");
		uint64_t limit = number_of(json_object_get(view->record, "limits"), "timeout_ms");
		view->status = "timed_out";
		view->exit_code = 124;
		(void)snprintf(view->error, sizeof view->error, "timed out after %llu ms",
			       (unsigned long long)(limit ? limit : number_of(evidence, "value")));
	} else if (json_is_integer(json_object_get(exit, "signal"))) {
		view->status = "killed";
		view->exit_code = -(int)json_integer_value(json_object_get(exit, "signal"));
		(void)snprintf(view->error, sizeof view->error, "killed by %s",
			       signal ? signal : "a signal");
	} else if (is(cause, "spawn_failed")) {
		explain_failed_start(view);
	} else if (!json_is_integer(code)) {
		view->exit_code = COOP_VIEW_LOST_CODE;
		(void)snprintf(view->error, sizeof view->error,
			       "how it ended is not known: its keeper was interrupted");
	} else if (view->exit_code == 0) {
		view->status = "succeeded";
	}
	coop_refusal_text(view->error);
}

bool coop_process_view_read(struct coop_process_view *view, const json_t *record)
{
	const json_t *events = json_object_get(record, "events");
	const char *alias = text_of(record, "alias");
	const char *state = text_of(record, "state");

	*view = (struct coop_process_view){.record = record, .status = "running"};
	view->id = text_of(record, "id");
	if (!view->id || !state)
		return false;
	view->hidden = alias && *alias == '#';
	/* An alias that looks like an id would be taken for that one in a path. */
	view->name = alias && *alias && !coop_process_is_id(alias) ? alias : view->id;
	view->receipt = json_is_true(json_object_get(record, "receipt"));
	view->first_event = number_of(events, "first");
	view->next_event = number_of(events, "next");
	view->exit_cursor = number_of(events, "exit");
	/* Between the leader's end and the last of its output it still counts as running. */
	view->ended = events ? json_is_integer(json_object_get(events, "exit"))
			     : is(state, "exited") || is(state, "signaled");
	if (view->ended)
		read_end(view);
	return true;
}

void coop_process_view_write_end(const struct coop_process_view *view, struct coop_jsonw *w)
{
	coop_jsonw_string(w, "status", view->status);
	if (view->ended)
		coop_jsonw_int(w, "exit_code", view->exit_code);
	else
		coop_jsonw_null(w, "exit_code");
	coop_jsonw_string(w, "error", *view->error ? view->error : NULL);
}

void coop_process_view_write_exit(const struct coop_process_view *view, struct coop_jsonw *w,
				  const char *name, uint64_t cursor)
{
	coop_jsonw_string(w, "type", "exit");
	coop_jsonw_string(w, "pid", name);
	coop_jsonw_uint(w, "cursor", cursor);
	coop_process_view_write_end(view, w);
}

static void write_arguments(const struct coop_process_view *view, struct coop_jsonw *w)
{
	const json_t *argv = json_object_get(view->record, "argv");

	coop_jsonw_string(w, "cmd", program_of(view->record));
	coop_jsonw_string(w, "command", program_of(view->record));
	coop_jsonw_array(w, "args");
	for (size_t i = 1; i < json_array_size(argv); i++)
		coop_jsonw_string(w, NULL, json_string_value(json_array_get(argv, i)));
	coop_jsonw_array_end(w);
}

static void write_integer(struct coop_jsonw *w, const char *name, const json_t *value)
{
	if (json_is_integer(value))
		coop_jsonw_int(w, name, json_integer_value(value));
	else
		coop_jsonw_null(w, name);
}

void coop_process_view_write(const struct coop_process_view *view, struct coop_jsonw *w,
			     const char *name)
{
	const json_t *record = view->record;

	coop_jsonw_begin(w, name);
	coop_jsonw_string(w, "id", view->name);
	coop_jsonw_string(w, "pid", view->name);
	write_integer(w, "os_pid", json_object_get(record, "pid"));
	write_arguments(view, w);
	coop_jsonw_string(w, "cwd", text_of(record, "cwd"));
	coop_jsonw_raw(w, "envs", "{}"); /* values may be secrets */
	coop_jsonw_string(w, "tag", text_of(record, "tag"));
	coop_jsonw_string(w, "user", text_of(record, "user"));
	coop_jsonw_bool(w, "pty", is(text_of(record, "kind"), "pty"));
	coop_process_view_write_end(view, w);
	coop_jsonw_string(w, "started_at", text_of(record, "started_at"));
	coop_jsonw_string(w, "finished_at", view->ended ? text_of(record, "ended_at") : NULL);
	coop_jsonw_string(w, "cause", view->ended ? text_of(record, "end_cause") : NULL);
	coop_jsonw_string(w, "term_signal",
			  view->ended ? text_of(json_object_get(record, "exit"), "signal_name")
				      : NULL);
	coop_jsonw_uint(w, "next_cursor", view->next_event);
	coop_jsonw_bool(w, "receipt", view->receipt);
	coop_jsonw_end(w);
}

uint64_t coop_process_view_stream(const struct coop_process_view *view, const char *stream,
				  const char *member)
{
	return number_of(json_object_get(json_object_get(view->record, "streams"), stream), member);
}

uint64_t coop_process_view_total(const struct coop_process_view *view)
{
	return coop_process_view_stream(view, "stdout", "end") +
	       coop_process_view_stream(view, "stderr", "end") +
	       coop_process_view_stream(view, "pty", "end");
}

bool coop_process_view_evicted(const struct coop_process_view *view)
{
	if (view->receipt)
		return coop_process_view_total(view) > 0;
	return view->first_event || coop_process_view_stream(view, "stdout", "start") ||
	       coop_process_view_stream(view, "stderr", "start") ||
	       coop_process_view_stream(view, "pty", "start");
}
