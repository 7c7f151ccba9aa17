#include "doors/tools/harn/harn_result.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "client/text.h"
#include "doors/tools/core/read.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/waiting.h"
#include "interface/schema.h"

/* Bytes that one answer of the keeper brings. */
#define WAIT_MAX (1u << 20)

const struct coop_field coop_fields_harn_result[] = {HARN_RESULT_ROWS, FIELDS_END};

/* An object in the making; what failed once is told at the end. */
struct form {
	json_t *object;
	bool lost;
};

static void put(struct form *form, const char *name, json_t *value)
{
	if (json_object_set_new(form->object, name, value) < 0)
		form->lost = true;
}

static void copy(struct form *form, const char *name, const json_t *from, const char *member)
{
	put(form, name, coop_tool_member(from, member));
}

static json_t *finish(struct form *form)
{
	if (!form->lost)
		return form->object;
	json_decref(form->object);
	return NULL;
}

int coop_harn_answer(struct coop_tool_call *call, json_t *object)
{
	if (!object)
		return coop_tool_no_memory(call);
	json_decref(call->result);
	call->result = object;
	return 0;
}

const char *coop_harn_status(const json_t *record)
{
	const char *cause = json_string_value(json_object_get(record, "end_cause"));

	if (!cause)
		return "running";
	if (strcmp(cause, "self_exit") == 0)
		return "completed";
	if (strcmp(cause, "timed_out") == 0 || strcmp(cause, "spawn_failed") == 0)
		return cause;
	return "killed";
}

static size_t least(int64_t a, size_t b)
{
	return (uint64_t)a < b ? (size_t)a : b;
}

struct coop_harn_show coop_harn_show(const struct coop_tool_call *call)
{
	const json_t *capture = coop_arg(call->args, "capture");
	size_t most = coop_tool_inline(call);
	struct coop_harn_show show = {.hidden = {true, false, false, false}};

	if (most > WAIT_MAX)
		most = WAIT_MAX;
	most = least(coop_arg_int(capture, "max_inline_bytes", (int64_t)most), most);
	show.most[COOP_STDOUT] =
		least(coop_arg_int(capture, "max_stdout_bytes", (int64_t)most), most);
	show.most[COOP_STDERR] =
		least(coop_arg_int(capture, "max_stderr_bytes", (int64_t)most), most);
	show.most[COOP_PTY] = least(coop_arg_int(capture, "max_pty_bytes", (int64_t)most), most);
	show.hidden[COOP_STDOUT] = !coop_arg_bool(capture, "stdout", true);
	show.hidden[COOP_STDERR] = !coop_arg_bool(capture, "stderr", true);
	return show;
}

static size_t shown(const struct coop_harn_show *show, int stream)
{
	return show->hidden[stream] ? 0 : show->most[stream];
}

/* The ring has lost the beginning, which is what is shown: the disk has it. */
static int fetch_front(struct coop_tool_call *call, const char *id, int stream, size_t most,
		       struct coop_tool_answer *answer)
{
	struct coop_tool_piece front;
	int r = coop_tool_read(call, id, coop_tool_streams[stream],
			       json_pack("{s:I}", "max", (json_int_t)most), &front);

	if (r < 0)
		return r;
	coop_buf_clear(&answer->data[stream]);
	answer->data[stream] = front.answer.data[stream];
	answer->at[stream] = front.answer.at[stream];
	front.answer.data[stream] = (struct coop_buf){0};
	coop_tool_piece_clear(&front);
	return 0;
}

int coop_harn_wait(struct coop_tool_call *call, const char *id, int64_t wanted_ms,
		   const struct coop_harn_show *show, struct coop_tool_answer *ret)
{
	int64_t limit = coop_tool_patience(call, wanted_ms);
	size_t most = 0;

	for (int i = COOP_STDOUT; i <= COOP_PTY; i++)
		most = shown(show, i) > most ? shown(show, i) : most;
	int r = coop_tool_wait_once(call, id, limit, most, false, ret);
	for (int i = COOP_STDOUT; r == 0 && i <= COOP_PTY; i++)
		if (ret->at[i] && shown(show, i))
			r = fetch_front(call, id, i, shown(show, i), ret);
	if (r < 0)
		coop_tool_answer_clear(ret);
	return r;
}

/* The longest beginning whose text keeps to the bound: a byte that is no UTF-8 takes three. */
static int view_of(const struct coop_buf *data, size_t most, uint64_t total, struct coop_text *ret)
{
	size_t size = coop_buf_size(data) < most ? coop_buf_size(data) : most;
	int r = coop_text_view(coop_buf_front(data), size, size < total, ret);

	if (r < 0 || ret->size <= most)
		return r;
	coop_text_clear(ret);
	return coop_text_view(coop_buf_front(data), most / 3, true, ret);
}

/* Text, number of bytes and whether something is missing, of one stream. Returns how many bytes are
 * shown. */
static uint64_t put_stream(struct form *form, const json_t *record, int stream,
			   const struct coop_tool_answer *answer, const struct coop_harn_show *show)
{
	static const struct coop_buf nothing;
	uint64_t total = coop_tool_stream_end(record, coop_tool_streams[stream]);
	bool front = answer && answer->at[stream] == 0;
	struct coop_text text = {0};
	char name[32];

	if (view_of(front ? &answer->data[stream] : &nothing, show->most[stream], total, &text) <
	    0) {
		form->lost = true;
		return 0;
	}
	put(form, coop_tool_streams[stream],
	    show->hidden[stream] ? json_null() : json_stringn_nocheck(text.text, text.size));
	(void)snprintf(name, sizeof name, "%s_bytes", coop_tool_streams[stream]);
	put(form, name, json_integer((json_int_t)total));
	(void)snprintf(name, sizeof name, "%s_truncated", coop_tool_streams[stream]);
	put(form, name, json_boolean(!show->hidden[stream] && text.consumed < total));
	(void)snprintf(name, sizeof name, "%s_utf8_valid", coop_tool_streams[stream]);
	put(form, name, json_boolean(text.utf8_valid));
	uint64_t seen = show->hidden[stream] ? total : text.consumed;
	coop_text_clear(&text);
	return seen;
}

/* Appends a sentence to the hint. */
static void say(char *hint, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(char *hint, size_t size, const char *format, ...)
{
	size_t used = strlen(hint);
	va_list list;

	if (used && used + 1 < size) {
		hint[used++] = ' ';
		hint[used] = 0;
	}
	va_start(list, format);
	(void)vsnprintf(hint + used, size - used, format, list);
	va_end(list);
}

static void say_missing(char *hint, size_t size, const json_t *record, const char *id,
			const uint64_t seen[4])
{
	for (int i = COOP_STDOUT; i <= COOP_PTY; i++) {
		uint64_t total = coop_tool_stream_end(record, coop_tool_streams[i]);
		if (seen[i] < total)
			say(hint, size,
			    "%s has %llu bytes and %llu are shown: call read_command_output with "
			    "{\"handle_id\":\"%s\",\"source\":\"%s\",\"offset\":%llu}.",
			    coop_tool_streams[i], (unsigned long long)total,
			    (unsigned long long)seen[i], id, coop_tool_streams[i],
			    (unsigned long long)seen[i]);
	}
}

/* What to call next, where there is something to do. */
static void put_hint(struct form *form, const json_t *record, const uint64_t seen[4])
{
	const char *id = json_string_value(json_object_get(record, "id"));
	json_int_t left = json_integer_value(json_object_get(record, "descendants"));
	bool over = coop_tool_is_over(record);
	char hint[1500] = "";

	if (!id)
		return;
	if (!over)
		say(hint, sizeof hint,
		    "It runs: call wait_command with {\"handle_id\":\"%s\",\"timeout_ms\":30000}.",
		    id);
	if (json_is_true(json_object_get(record, "receipt")))
		say(hint, sizeof hint, "Its output is not kept any more.");
	else
		say_missing(hint, sizeof hint, record, id, seen);
	if (over && left > 0)
		say(hint, sizeof hint,
		    "%lld processes that it started still run: call process.kill with "
		    "{\"handle_id\":\"%s\"} to end them.",
		    (long long)left, id);
	if (*hint)
		put(form, "hint", json_string(hint));
}

static void put_streams(struct form *form, const json_t *record,
			const struct coop_tool_answer *answer, const struct coop_harn_show *given)
{
	bool pty = json_object_get(json_object_get(record, "streams"), "pty") != NULL;
	struct coop_harn_show show = *given;
	uint64_t seen[4] = {0};

	/* A terminal is one stream, and neither of the two. */
	if (pty)
		show.hidden[COOP_STDOUT] = show.hidden[COOP_STDERR] = true;
	seen[COOP_STDOUT] = put_stream(form, record, COOP_STDOUT, answer, &show);
	seen[COOP_STDERR] = put_stream(form, record, COOP_STDERR, answer, &show);
	if (pty)
		seen[COOP_PTY] = put_stream(form, record, COOP_PTY, answer, &show);
	put_hint(form, record, seen);
}

static void put_end(struct form *form, const json_t *record)
{
	const json_t *end = json_object_get(record, "exit");

	copy(form, "started_at", record, "started_at");
	copy(form, "ended_at", record, "ended_at");
	copy(form, "exit_code", end, "code");
	copy(form, "signal", end, "signal_name");
	copy(form, "end_cause", record, "end_cause");
	if (json_object_get(record, "facts"))
		copy(form, "facts", record, "facts");
}

static void put_digest(struct form *form, const json_t *record)
{
	const json_t *digest = json_object_get(record, "digest");

	copy(form, "line_count", digest, "lines");
	put(form, "byte_count",
	    record ? json_integer((json_int_t)coop_tool_record_bytes(record)) : json_null());
	copy(form, "output_sha256", digest, "sha256");
}

static void put_sandbox(struct form *form, const json_t *record)
{
	const json_t *sandbox = json_object_get(record, "sandbox");
	struct form inner = {.object = sandbox ? json_object() : json_null()};

	if (sandbox) {
		copy(&inner, "kind", sandbox, "kind");
		copy(&inner, "enforced", sandbox, "enforced");
	}
	form->lost = form->lost || inner.lost;
	put(form, "sandbox", inner.object);
}

/* `record` NULL: nothing was started. */
static void put_rest(struct form *form, const json_t *record)
{
	copy(form, "command_id", record, "id");
	copy(form, "handle_id", record, "id");
	put(form, "running", json_boolean(record && !coop_tool_is_over(record)));
	copy(form, "pid", record, "pid");
	copy(form, "process_group_id", record, "process_group_id");
	put_end(form, record);
	copy(form, "duration_ms", record, "duration_ms");
	copy(form, "output_path", record, "output_path");
	copy(form, "stdout_path", record, "stdout_path");
	copy(form, "stderr_path", record, "stderr_path");
	put_digest(form, record);
	put_sandbox(form, record);
	copy(form, "audit_id", record, "audit_id");
}

json_t *coop_harn_result(const json_t *record, const struct coop_tool_answer *answer,
			 const struct coop_harn_show *show)
{
	struct form form = {.object = json_object()};
	const char *status = coop_harn_status(record);

	put(&form, "status", json_string(status));
	put(&form, "timed_out", json_boolean(strcmp(status, "timed_out") == 0));
	put_rest(&form, record);
	put_streams(&form, record, answer, show);
	return finish(&form);
}

json_t *coop_harn_poll(const json_t *record, const struct coop_tool_answer *answer,
		       const struct coop_harn_show *show)
{
	struct form form = {.object = json_object()};

	copy(&form, "handle_id", record, "id");
	copy(&form, "status", answer->json, "status");
	copy(&form, "running", answer->json, "running");
	copy(&form, "command", record, "command");
	copy(&form, "pid", record, "pid");
	put_end(&form, record);
	put_streams(&form, record, answer, show);
	return finish(&form);
}

int coop_harn_see_off(struct coop_tool_call *call, const char *id, int64_t wanted_ms,
		      bool completion, const struct coop_harn_show *show,
		      struct coop_tool_answer *ret)
{
	int r = coop_harn_wait(call, id, wanted_ms, show, ret);

	if (r < 0)
		return r;
	const json_t *record = json_object_get(ret->json, "process");
	if (coop_tool_is_over(record))
		coop_tool_let_go(call);
	else
		r = coop_tool_keep(call, id);
	if (r == 0 && completion && !coop_tool_is_over(record))
		r = coop_tool_ask(call, "keep", json_pack("{s:s, s:b}", "id", id, "completion", 1),
				  NULL);
	if (r == 0)
		r = coop_harn_answer(call, coop_harn_result(record, ret, show));
	if (r < 0)
		coop_tool_answer_clear(ret);
	return r;
}

static void put_nothing(struct form *form)
{
	for (int i = COOP_STDOUT; i <= COOP_STDERR; i++) {
		char name[32];
		put(form, coop_tool_streams[i], json_string(""));
		(void)snprintf(name, sizeof name, "%s_bytes", coop_tool_streams[i]);
		put(form, name, json_integer(0));
		(void)snprintf(name, sizeof name, "%s_truncated", coop_tool_streams[i]);
		put(form, name, json_false());
		(void)snprintf(name, sizeof name, "%s_utf8_valid", coop_tool_streams[i]);
		put(form, name, json_true());
	}
}

/* Nothing was started. What policy says has members of the same names, which count. */
static json_t *refusal(const struct coop_error *error, json_t *verdict, const json_t *context)
{
	struct form form = {.object = json_object()};

	put_rest(&form, NULL);
	put_nothing(&form);
	put(&form, "status", json_string("spawn_failed"));
	put(&form, "timed_out", json_false());
	put(&form, "stderr", json_string(error->message));
	put(&form, "error", json_string(error->code));
	put(&form, "hint",
	    json_string(
		    verdict ? "Nothing was started, and trying the same again does not help: do "
			      "it another way, or tell the user."
			    : "Nothing was started: check the program's name and path."));
	if (verdict && json_object_update(form.object, verdict) < 0)
		form.lost = true;
	if (verdict && context)
		put(&form, "policy_context", json_incref((json_t *)(uintptr_t)context));
	if (!verdict)
		put(&form, "details", json_loads(error->details, 0, NULL));
	return finish(&form);
}

int coop_harn_refused(struct coop_tool_call *call, int status, json_t *verdict)
{
	if (verdict || (status == -EREMOTEIO && strcmp(call->error.code, "spawn_failed") == 0)) {
		call->failed = true;
		status = coop_harn_answer(call, refusal(&call->error, verdict,
							coop_arg(call->args, "policy_context")));
	}
	json_decref(verdict);
	return status;
}
