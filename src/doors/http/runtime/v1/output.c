#include "doors/http/runtime/v1/output.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "doors/http/net/target.h"
#include "doors/http/runtime/ask.h"
#include "doors/http/runtime/cut.h"
#include "doors/http/runtime/feed_window.h"
#include "doors/http/runtime/v1/process_ask.h"
#include "doors/http/runtime/v1/view.h"

#define CURSOR_MAX ((1ull << 53) - 1)
/* Of one read of the modes that look at everything. */
#define PAGE (256u << 10)

enum mode { FORWARD, TAIL, HEAD_TAIL };

struct output {
	struct coop_ask ask;
	enum mode mode;
	uint64_t since, limit;
	/* the modes that look at everything stop there: a process may write faster than it is
	 * read */
	uint64_t end;
	uint64_t next;   /* the first event not looked at */
	uint64_t before; /* bytes of events before `since`, as far as they are known */
	bool before_known;
	uint64_t first_kept; /* event; only with evicted output */
	bool first_known, probed;
	bool dropped, failed;
	struct coop_runtime_cut cut;
};

static void clear(struct coop_ask *ask)
{
	coop_runtime_cut_clear(&((struct output *)ask)->cut);
}

static uint64_t number(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 ? (uint64_t)value : 0;
}

static void on_data(struct coop_ask *ask, const struct coop_chunk *chunk)
{
	struct output *output = (struct output *)ask;

	if (output->probed) {
		output->first_kept = chunk->cursor;
		output->first_known = true;
	} else if (coop_runtime_cut_add(&output->cut, chunk) < 0) {
		output->failed = true;
	}
}

static const char *type_of(enum coop_stream stream)
{
	return stream == COOP_STDOUT ? "stdout" : stream == COOP_PTY ? "pty" : "stderr";
}

static void write_base64(struct coop_jsonw *w, const struct coop_chunk *chunk)
{
	size_t size = coop_base64_length(chunk->size);
	char *text = coop_mem_alloc(size + 1);

	w->failed = w->failed || !text;
	if (!text)
		return;
	coop_base64_encode(chunk->data, chunk->size, text);
	text[size] = 0;
	coop_jsonw_string(w, "data", text);
	free(text);
}

/* Returns how many bytes they are. */
static uint64_t write_events(struct output *output, struct coop_jsonw *w)
{
	struct coop_chunk chunk;
	uint64_t bytes = 0;

	coop_jsonw_array(w, "events");
	for (size_t at = 0; coop_runtime_cut_next(&output->cut, &at, &chunk);) {
		coop_jsonw_begin(w, NULL);
		coop_jsonw_uint(w, "cursor", chunk.cursor);
		coop_jsonw_string(w, "type", type_of(chunk.stream));
		write_base64(w, &chunk);
		coop_jsonw_end(w);
		bytes += coop_feed_chunk_bytes(&chunk);
	}
	coop_jsonw_array_end(w);
	return bytes;
}

static void write_kept(const struct output *output, const struct coop_process_view *view,
		       struct coop_jsonw *w)
{
	uint64_t end = view->ended ? view->exit_cursor : view->next_event;
	uint64_t first = output->first_known ? output->first_kept : view->first_event;
	/* Without a look nothing is lost, and everything is there. */
	bool any = !view->receipt && first < end &&
		   (output->first_known || !coop_process_view_evicted(view));

	if (any) {
		coop_jsonw_uint(w, "first_retained_cursor", first);
		coop_jsonw_uint(w, "last_retained_cursor", end - 1);
	} else {
		coop_jsonw_null(w, "first_retained_cursor");
		coop_jsonw_null(w, "last_retained_cursor");
	}
}

static uint64_t next_cursor(const struct output *output, const struct coop_process_view *view)
{
	uint64_t next = output->next;

	if (view->ended && next >= view->exit_cursor)
		next = view->exit_cursor + 1;
	return next > output->since ? next : output->since;
}

static void write_counts(const struct output *output, const struct coop_process_view *view,
			 uint64_t returned, struct coop_jsonw *w)
{
	uint64_t total = coop_process_view_total(view);
	uint64_t shown = output->before + returned;
	uint64_t omitted = total > shown ? total - shown : 0;

	coop_jsonw_uint(w, "total_bytes_observed", total);
	coop_jsonw_uint(w, "total_bytes", total);
	coop_jsonw_uint(w, "returned_bytes", returned);
	coop_jsonw_uint(w, "retained_bytes", returned);
	coop_jsonw_uint(w, "omitted_bytes", omitted);
	coop_jsonw_bool(w, "truncated", omitted > 0);
	coop_jsonw_begin(w, "stream_totals");
	coop_jsonw_uint(w, "stdout", coop_process_view_stream(view, "stdout", "end"));
	coop_jsonw_uint(w, "stderr", coop_process_view_stream(view, "stderr", "end"));
	coop_jsonw_uint(w, "pty", coop_process_view_stream(view, "pty", "end"));
	coop_jsonw_end(w);
}

static void probe(struct output *output);

static void answer(struct coop_ask *ask, const json_t *result)
{
	struct output *output = (struct output *)ask;
	struct coop_process_view view;
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	if (!coop_v1_ask_view(ask, result, &view))
		return;
	if (coop_process_view_evicted(&view) && !output->probed) {
		probe(output);
		return;
	}
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "pid", view.name);
	coop_process_view_write_end(&view, &w);
	coop_jsonw_string(&w, "finished_at",
			  view.ended ? json_string_value(json_object_get(view.record, "ended_at"))
				     : NULL);
	uint64_t returned = write_events(output, &w);
	coop_jsonw_uint(&w, "next_cursor", next_cursor(output, &view));
	coop_jsonw_bool(&w, "truncated_before_cursor", output->dropped);
	coop_jsonw_bool(&w, "truncated_by_retention", coop_process_view_evicted(&view));
	write_counts(output, &view, returned, &w);
	write_kept(output, &view, &w);
	coop_jsonw_end(&w);
	coop_ask_answer(ask, &text, &w);
}

static void ask_status(struct output *output)
{
	coop_ask(&output->ask, "status", json_pack("{s:s}", "id", output->ask.id), answer);
}

static void on_probed(struct coop_ask *ask, const json_t *result)
{
	ask_status((struct output *)ask);
}

/* Where something is lost only a look says what the first is that is not. */
static void probe(struct output *output)
{
	output->probed = true;
	coop_ask(&output->ask, "read",
		 json_pack("{s:s,s:s,s:i,s:i,s:b}", "id", output->ask.id, "stream", "combined",
			   "cursor", 0, "max", 1, "notes", 1),
		 on_probed);
}

/* What the first read says of the bytes before `since`: those before its first event, less those
 * that were lost on the way there. Of events that the keeper has forgotten nobody knows the bytes,
 * but from the beginning on they are all. */
static void note_before(struct output *output, const json_t *result)
{
	const json_t *gaps = json_object_get(result, "gaps");
	uint64_t dropped = number(result, "bytes_dropped");

	if (output->before_known)
		return;
	for (size_t i = 0; i < json_array_size(gaps); i++)
		dropped -= number(json_array_get(gaps, i), "bytes");
	output->before = output->since ? number(result, "bytes_before") - dropped : 0;
	output->before_known = true;
}

static void read_more(struct output *output);

static void on_read(struct coop_ask *ask, const json_t *result)
{
	struct output *output = (struct output *)ask;
	uint64_t before = output->next;

	note_before(output, result);
	output->next = number(result, "next");
	output->dropped = output->dropped || number(result, "events_dropped") > 0;
	if (output->failed)
		coop_ask_no_memory(ask);
	else if (output->mode != FORWARD && output->next < output->end && output->next > before)
		read_more(output);
	else
		ask_status(output);
}

static void read_more(struct output *output)
{
	uint64_t most = output->mode == FORWARD ? output->limit : PAGE;

	coop_ask(&output->ask, "read",
		 json_pack("{s:s,s:s,s:I,s:I,s:b}", "id", output->ask.id, "stream", "combined",
			   "cursor", (json_int_t)output->next, "max", (json_int_t)most, "notes", 1),
		 on_read);
}

static void on_status(struct coop_ask *ask, const json_t *result)
{
	struct output *output = (struct output *)ask;
	struct coop_process_view view;

	if (!coop_v1_ask_view(ask, result, &view))
		return;
	output->end = view.ended ? view.exit_cursor : view.next_event;
	output->next = output->since;
	read_more(output);
}

/* Budgets of head and tail, if they are asked for. False: *ret_wrong is not valid. */
static bool read_budgets(struct output *output, const char *query, const char **ret_wrong)
{
	uint64_t head = 0, tail = 0, num = 3, den = 10;
	int has_head = coop_query_uint(query, "head_bytes", CURSOR_MAX, &head);
	int has_tail = coop_query_uint(query, "tail_bytes", CURSOR_MAX, &tail);
	int has_num = coop_query_uint(query, "head_ratio_num", CURSOR_MAX, &num);
	int has_den = coop_query_uint(query, "head_ratio_den", CURSOR_MAX, &den);

	*ret_wrong = has_head < 0   ? "head_bytes"
		     : has_tail < 0 ? "tail_bytes"
		     : has_num < 0  ? "head_ratio_num"
		     : has_den < 0  ? "head_ratio_den"
				    : NULL;
	if (*ret_wrong || output->mode != HEAD_TAIL)
		return !*ret_wrong;
	if (!has_head && !has_tail) {
		den = den ? den : 1;
		num = num < den ? num : den;
		head = (uint64_t)((unsigned __int128)output->limit * num / den);
		tail = output->limit - head;
	}
	/* Together no more than any answer may have. */
	head = head < COOP_OUTPUT_LIMIT ? head : COOP_OUTPUT_LIMIT;
	tail = tail < COOP_OUTPUT_LIMIT - head ? tail : COOP_OUTPUT_LIMIT - head;
	output->cut.head_budget = (size_t)head;
	output->cut.tail_budget = (size_t)tail;
	return true;
}

static bool read_mode(struct output *output, const char *query, const char **ret_wrong)
{
	int status;
	COOP_AUTO_FREE char *mode = coop_query_get(query, "mode", &status);

	*ret_wrong = "mode";
	if (status < 0)
		return false;
	if (!mode || !strcmp(mode, "forward")) {
		output->mode = FORWARD;
		output->cut.head_budget = SIZE_MAX; /* the keeper holds the limit */
	} else if (!strcmp(mode, "tail")) {
		output->mode = TAIL;
		output->cut.tail_budget = (size_t)output->limit;
	} else if (!strcmp(mode, "head_tail")) {
		output->mode = HEAD_TAIL;
	} else {
		return false;
	}
	return read_budgets(output, query, ret_wrong);
}

void coop_runtime_output(struct coop_http_exchange *exchange)
{
	struct output *output = coop_ask_new(exchange, sizeof *output);
	const char *wrong;

	if (!output)
		return;
	output->ask.clear = clear;
	output->ask.data = on_data;
	output->limit = COOP_OUTPUT_LIMIT;
	if (coop_query_uint(exchange->query, "since", CURSOR_MAX, &output->since) < 0) {
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "since must be the number of an event, 0 or more");
		return;
	}
	if (coop_query_uint(exchange->query, "limit_bytes", CURSOR_MAX, &output->limit) < 0) {
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "limit_bytes must be a number of bytes, 0 or more");
		return;
	}
	if (output->limit > COOP_OUTPUT_LIMIT)
		output->limit = COOP_OUTPUT_LIMIT;
	if (!read_mode(output, exchange->query, &wrong)) {
		coop_http_refuse(exchange, 400, "invalid_argument", "%s is not valid", wrong);
		return;
	}
	coop_v1_ask_process(&output->ask, on_status);
}
