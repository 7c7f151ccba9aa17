/* read_process_output: a range, what is new for a reader, head and tail, or only the lines that
 * match. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/output.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/read.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/native/grep.h"
#include "interface/choices.h"
#include "interface/schema.h"

#define READ_DEFAULT 65536
#define READ_MAX (1 << 20)

static const char *const encodings[] = {"text", "raw", "base64", NULL};

static const struct coop_field input[] = {
	IN_PID,
	IN_ENUM("stream", coop_choices_stream, NULL),
	IN_INT("offset", 0, COOP_JSON_INT_MAX, "next_offset goes on (0)"),
	IN_INT("length", 1, READ_MAX, "bytes (65536)"),
	IN_BOOL("head_tail", "both ends within length"),
	ARG_READER("a name of yours: only what is new since its last read"),
	IN_STRING("grep", 4096, "regex: only lines that match"),
	IN_INT("context", 0, 50, "lines around each (2)"),
	IN_ENUM("encoding", encodings, "text: without escape codes"),
	FIELDS_END,
};
static const struct coop_field output[] = {
	OUT_STRING("content"),  OUT_STRING("stream"),     OUT_INT("offset"), OUT_INT("next_offset"),
	OUT_INT("total_bytes"), OUT_INT("bytes_dropped"), OUT_BOOL("eof"),   FIELDS_END,
};

struct reading {
	const char *id, *stream, *reader, *encoding;
	json_t *record;
	struct coop_tool_piece piece;
};

static int choose_stream(struct coop_tool_call *call, struct reading *reading)
{
	const char *asked = coop_arg_string(call->args, "stream", NULL);
	const char *usual = coop_tool_streams[coop_tool_main_stream(reading->record)];

	reading->stream = asked ? asked : usual;
	if (coop_tool_stream(reading->record, reading->stream))
		return 0;
	/* Right to ask, and the answer is no. */
	call->failed = true;
	return coop_tool_fail(call, "invalid_input", "stream",
			      "its %s is part of %s: read stream %s", reading->stream, usual,
			      usual);
}

static int fetch(struct coop_tool_call *call, struct reading *reading, int64_t length)
{
	json_int_t offset = coop_arg_int(call->args, "offset", 0);

	return coop_tool_read(call, reading->id, reading->stream,
			      reading->reader ? json_pack("{s:I, s:s}", "max", (json_int_t)length,
							  "reader", reading->reader)
					      : json_pack("{s:I, s:I}", "max", (json_int_t)length,
							  "cursor", offset),
			      &reading->piece);
}

static int set_base64(struct coop_tool_call *call, const struct reading *reading)
{
	size_t size = coop_base64_length(reading->piece.size);
	char *text = coop_mem_alloc(size + 1);

	if (!text)
		return coop_tool_no_memory(call);
	coop_base64_encode((const uint8_t *)reading->piece.bytes, reading->piece.size, text);
	coop_tool_set(call, "content", json_string(""));
	coop_tool_set(call, "content_base64", json_stringn_nocheck(text, size));
	free(text);
	return 0;
}

static void set_mangled(struct coop_tool_call *call)
{
	coop_tool_set(call, "utf8_valid", json_false());
	coop_tool_set(call, "hint",
		      json_string("It has bytes that are no text: encoding \"base64\" gives "
				  "them exactly."));
}

/* Nothing follows what has come. */
static bool is_last(const struct coop_tool_piece *piece)
{
	return piece->next >= piece->total && piece->eof;
}

/* What has come as text. A length that does not reach to the end of a character or an escape code
 * would show nothing, for ever: more is taken then. */
static int fetch_text(struct coop_tool_call *call, struct reading *reading,
		      struct coop_rendered *ret)
{
	int64_t length = coop_arg_int(call->args, "length", READ_DEFAULT);
	struct coop_tool_piece *piece = &reading->piece;

	for (;;) {
		int r = fetch(call, reading, length);
		if (r < 0)
			return r;
		if (coop_tool_render(piece->bytes, piece->size, piece->at,
				     strcmp(reading->encoding, "raw") == 0, is_last(piece),
				     ret) < 0)
			return coop_tool_no_memory(call);
		if (ret->next > piece->at || piece->next >= piece->total)
			return 0;
		free(ret->text);
		coop_tool_piece_clear(piece);
		length = length * 2 + 16;
	}
}

/* What has come, as it was asked for. *ret_next: where to go on. */
static int set_content(struct coop_tool_call *call, struct reading *reading, uint64_t *ret_next)
{
	struct coop_rendered text = {0};
	int r;

	if (strcmp(reading->encoding, "base64") == 0) {
		r = fetch(call, reading, coop_arg_int(call->args, "length", READ_DEFAULT));
		*ret_next = reading->piece.next;
		return r == 0 ? set_base64(call, reading) : r;
	}
	r = fetch_text(call, reading, &text);
	if (r < 0)
		return r;
	/* Nothing but the beginning of a character: the reader comes again when the rest is there.
	 * A whole piece of escape codes has no text but an end. */
	*ret_next = is_last(&reading->piece) ? reading->piece.next : text.next;
	coop_tool_set(call, "content", json_stringn_nocheck(text.text, text.size));
	if (!text.utf8_valid)
		set_mangled(call);
	free(text.text);
	return 0;
}

/* Errors mostly stand on the other stream, where nobody looks who is not told. */
static void set_other(struct coop_tool_call *call, const struct reading *reading)
{
	uint64_t bytes = coop_tool_stream_end(reading->record, "stderr");

	if (bytes && strcmp(reading->stream, "stdout") == 0)
		coop_tool_set(call, "stderr_bytes", json_integer((json_int_t)bytes));
}

static int read_range(struct coop_tool_call *call, struct reading *reading)
{
	uint64_t next = 0;
	int r = set_content(call, reading, &next);

	if (r == 0 && reading->reader)
		r = coop_tool_ask(call, "reader",
				  json_pack("{s:s, s:s, s:s, s:I}", "id", reading->id, "reader",
					    reading->reader, "stream", reading->stream, "cursor",
					    (json_int_t)next),
				  NULL);
	if (r < 0)
		return r;
	const struct coop_tool_piece *piece = &reading->piece;
	coop_tool_set(call, "stream", json_string(reading->stream));
	coop_tool_set(call, "offset", json_integer((json_int_t)piece->at));
	coop_tool_set(call, "next_offset", json_integer((json_int_t)next));
	coop_tool_set(call, "total_bytes", json_integer((json_int_t)piece->total));
	coop_tool_set(call, "bytes_dropped", json_integer((json_int_t)piece->dropped));
	coop_tool_set(call, "eof", json_boolean(next >= piece->total && piece->eof));
	return 0;
}

/* The excerpt has the stream's name; here it is `content`. */
static int read_ends(struct coop_tool_call *call, struct reading *reading)
{
	const struct coop_buf none = {0};
	const json_t *state = coop_tool_stream(reading->record, reading->stream);
	enum coop_stream stream = COOP_STDOUT;
	char name[32];

	while (strcmp(coop_tool_streams[stream], reading->stream) != 0)
		stream++;
	int64_t length = coop_arg_int(call->args, "length", READ_DEFAULT);
	int r = fetch(call, reading, length);
	if (r == 0)
		r = coop_tool_add_excerpt(call, reading->record, stream,
					  reading->piece.size ? &reading->piece.answer.data[stream]
							      : &none,
					  reading->piece.at, (size_t)length);
	if (r < 0)
		return r;
	coop_tool_set(call, "content", json_incref(json_object_get(call->result, reading->stream)));
	(void)json_object_del(call->result, reading->stream);
	(void)snprintf(name, sizeof name, "%s_omitted", reading->stream);
	json_t *omitted = json_object_get(call->result, name);
	if (omitted)
		coop_tool_set(call, "omitted", json_incref(omitted));
	(void)json_object_del(call->result, name);
	(void)snprintf(name, sizeof name, "%s_truncated", reading->stream);
	(void)json_object_del(call->result, name);
	(void)snprintf(name, sizeof name, "%s_utf8_valid", reading->stream);
	if (json_object_del(call->result, name) == 0)
		set_mangled(call);
	(void)snprintf(name, sizeof name, "%s_bytes", reading->stream);
	(void)json_object_del(call->result, name);
	coop_tool_set(call, "stream", json_string(reading->stream));
	coop_tool_set(call, "offset", json_integer(0));
	coop_tool_set(call, "next_offset", json_incref(json_object_get(state, "end")));
	coop_tool_set(call, "total_bytes", json_incref(json_object_get(state, "end")));
	coop_tool_set(call, "bytes_dropped", json_incref(json_object_get(state, "bytes_dropped")));
	coop_tool_set(call, "eof", json_incref(json_object_get(state, "eof")));
	return 0;
}

/* Old ones are let go to make room; how it ended is kept for longer. */
static void tell_of_receipt(struct coop_tool_call *call, const json_t *record)
{
	if (!json_is_true(json_object_get(record, "receipt")))
		return;
	call->failed = true;
	coop_tool_set(call, "hint",
		      json_string("Its output is not kept any more; wait_for_process still tells "
				  "how it ended. Run it again to see the output."));
}

static int check(struct coop_tool_call *call)
{
	bool ends = coop_arg_bool(call->args, "head_tail", false);
	bool grep = coop_arg(call->args, "grep") != NULL;
	bool reader = coop_arg(call->args, "reader") != NULL;
	const char *encoding = coop_arg_string(call->args, "encoding", "text");

	if (reader && coop_arg(call->args, "offset"))
		return coop_tool_fail(call, "invalid_input", "reader",
				      "reader begins where its last read ended: leave offset out");
	if (ends && (grep || reader || coop_arg(call->args, "offset")))
		return coop_tool_fail(
			call, "invalid_input", "head_tail",
			"head_tail shows the whole stream: leave grep, reader and offset out");
	if ((ends || grep) && strcmp(encoding, "text") != 0)
		return coop_tool_fail(call, "invalid_input", "encoding",
				      "encoding %s is for ranges: %s gives text", encoding,
				      ends ? "head_tail" : "grep");
	if (grep && reader)
		return coop_tool_fail(call, "invalid_input", "grep",
				      "grep goes with offset, not with reader");
	return 0;
}

static int run(struct coop_tool_call *call)
{
	struct reading reading = {.reader = coop_arg_string(call->args, "reader", NULL),
				  .encoding = coop_arg_string(call->args, "encoding", "text")};
	int r = check(call);

	if (r == 0)
		r = coop_tool_process(call, "pid", &reading.record);
	reading.id = coop_tool_record_id(reading.record);
	if (r == 0)
		r = choose_stream(call, &reading);
	if (r == 0) {
		if (coop_arg(call->args, "grep"))
			r = coop_tool_grep(call, reading.id, reading.record, reading.stream);
		else if (coop_arg_bool(call->args, "head_tail", false))
			r = read_ends(call, &reading);
		else
			r = read_range(call, &reading);
	}
	if (r == 0) {
		set_other(call, &reading);
		tell_of_receipt(call, reading.record);
	}
	coop_tool_piece_clear(&reading.piece);
	json_decref(reading.record);
	return r;
}

const struct coop_tool coop_tool_read_process_output = {
	.name = "read_process_output",
	.title = "Read output",
	.description = "Reads captured output, running or ended. grep finds lines in long output; "
		       "reader gives only what is new.",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_DEFAULT,
	.input = input,
	.output = output,
	.run = run,
};
