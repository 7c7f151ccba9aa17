/* What is typed into a shell, what it has said, and signals for what runs in it. */
#include <string.h>

#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/read.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/shell/shell.h"
#include "doors/tools/shell/transcript.h"
#include "interface/schema.h"

#define PIECE (256u << 10)
/* More than this between two reads is not looked through: its beginning and its end are. */
#define WHOLE_MAX (1u << 20)

int coop_shell_find(struct coop_tool_call *call, json_t **ret)
{
	json_t *record;
	int r = coop_tool_process(call, "session_id", &record);

	*ret = NULL;
	if (r < 0)
		return r;
	const char *kind = json_string_value(json_object_get(record, "kind"));
	if (!kind || strcmp(kind, "pty") != 0) {
		json_decref(record);
		return coop_tool_fail(
			call, "invalid_input", "session_id",
			"this process has no terminal, so it is no shell session: use "
			"write_stdin, read_process_output and stop_process for it, or "
			"open_shell for a shell");
	}
	*ret = record;
	return 0;
}

int coop_shell_place(struct coop_tool_call *call, const char *id, const char *name, uint64_t *ret)
{
	struct coop_tool_answer answer;
	int r = coop_tool_ask(
		call, "reader",
		json_pack("{s:s, s:s, s:s}", "id", id, "reader", name, "stream", "pty"), &answer);

	if (r < 0)
		return r;
	*ret = coop_tool_number(answer.json, "cursor");
	coop_tool_answer_clear(&answer);
	return 0;
}

int coop_shell_move(struct coop_tool_call *call, const char *id, const char *name, uint64_t to)
{
	return coop_tool_ask(call, "reader",
			     json_pack("{s:s, s:s, s:s, s:I}", "id", id, "reader", name, "stream",
				       "pty", "cursor", (json_int_t)to),
			     NULL);
}

int coop_shell_send(struct coop_tool_call *call, const char *id, const char *bytes, size_t size,
		    size_t *ret_written)
{
	*ret_written = 0;
	return size ? coop_tool_write(call, id, bytes, size, false, ret_written) : 0;
}

static const struct coop_field write_input[] = {
	IN_SESSION,
	IN_STRING_NEEDED("input", COOP_WRITE_STDIN_MAX, "sent as is: end a command with \\n"),
	IN_BOOL("secret", "a password: kept out of logs and records"),
	FIELDS_END,
};
static const struct coop_field write_output[] = {
	OUT_STRING("session_id"),
	OUT_INT("bytes"),
	FIELDS_END,
};

static int run_write(struct coop_tool_call *call)
{
	const json_t *input = coop_arg(call->args, "input");
	size_t size = json_string_length(input), written = 0;
	json_t *record;
	int r = coop_shell_find(call, &record);

	if (r < 0)
		return r;
	const char *id = coop_tool_record_id(record);
	r = coop_shell_send(call, id, json_string_value(input), size, &written);
	coop_tool_set(call, "session_id", json_string(id));
	coop_tool_set(call, "bytes", json_integer((json_int_t)written));
	if (r == 0 && written < size) {
		call->failed = true;
		coop_tool_set(
			call, "hint",
			json_string("The program does not read: only so many bytes were taken. "
				    "Look with shell_read, then send the rest."));
	}
	json_decref(record);
	return r;
}

const struct coop_tool coop_tool_shell_write = {
	.name = "shell_write",
	.title = "Type into a shell",
	.description =
		"Types into a shell; then call shell_expect or shell_read. \\u0003 is Ctrl-C.",
	.kind = COOP_TOOL_START,
	.sets = COOP_TOOLS_DEFAULT,
	.input = write_input,
	.output = write_output,
	.run = run_write,
};

static const struct coop_field read_input[] = {IN_SESSION, FIELDS_END};
static const struct coop_field read_output[] = {
	OUT_STRING("output"), OUT_INT("next_offset"), OUT_INT("bytes_dropped"), OUT_BOOL("eof"),
	FIELDS_END,
};

struct reading {
	struct coop_transcript *transcript;
	uint64_t next, total, dropped;
	bool eof;
};

/* Reads from `next` on; from the reader's place the first time. */
static int read_piece(struct coop_tool_call *call, const char *id, struct reading *reading)
{
	struct coop_tool_piece piece;
	bool first = !reading->transcript;
	int r = coop_tool_read(
		call, id, "pty",
		first ? json_pack("{s:i, s:s}", "max", (int)PIECE, "reader", COOP_SHELL_READ)
		      : json_pack("{s:i, s:I}", "max", (int)PIECE, "cursor",
				  (json_int_t)reading->next),
		&piece);

	if (r < 0)
		return r;
	if (first)
		reading->transcript = coop_transcript_new(coop_tool_inline(call), piece.at);
	if (!reading->transcript ||
	    (!first && piece.at != reading->next &&
	     coop_transcript_skip(reading->transcript, piece.at) < 0) ||
	    coop_transcript_feed(reading->transcript, piece.bytes, piece.size) < 0)
		r = coop_tool_no_memory(call);
	/* What arrives while it is read is left for the next time: a busy program must not keep the
	 * call from ending. */
	if (first)
		reading->total = piece.total;
	reading->next = piece.next;
	reading->dropped += piece.dropped;
	reading->eof = piece.drained;
	coop_tool_piece_clear(&piece);
	return r;
}

static int read_all(struct coop_tool_call *call, const char *id, struct reading *reading)
{
	int r = read_piece(call, id, reading);

	if (r == 0 && reading->total - reading->next > WHOLE_MAX) {
		reading->next = reading->total - WHOLE_MAX / 2;
		if (coop_transcript_skip(reading->transcript, reading->next) < 0)
			return coop_tool_no_memory(call);
	}
	while (r == 0 && reading->next < reading->total) {
		uint64_t before = reading->next;
		r = read_piece(call, id, reading);
		if (r == 0 && reading->next <= before)
			break;
	}
	if (r == 0 && reading->eof && coop_transcript_finish(reading->transcript) < 0)
		return coop_tool_no_memory(call);
	return r;
}

static int tell_reading(struct coop_tool_call *call, const char *id, const struct reading *reading)
{
	struct coop_mark end = coop_transcript_end(reading->transcript);
	json_t *text = NULL, *omitted = NULL;

	/* An incomplete character or sequence is for the next time, unless there is none. */
	if (reading->eof)
		end.raw = reading->next;
	if (coop_transcript_show(reading->transcript, end.raw, &text, &omitted) < 0)
		return coop_tool_no_memory(call);
	coop_tool_set(call, "output", text);
	if (omitted)
		coop_tool_set(call, "omitted", omitted);
	coop_tool_set(call, "next_offset", json_integer((json_int_t)end.raw));
	coop_tool_set(call, "bytes_dropped", json_integer((json_int_t)reading->dropped));
	coop_tool_set(call, "eof", json_boolean(reading->eof));
	if (omitted)
		coop_tool_set(call, "hint",
			      json_string("Read what is omitted with read_process_output, "
					  "offset omitted.from."));
	else if (reading->eof)
		coop_tool_set(call, "hint", json_string("The shell has ended: call close_shell."));
	return coop_shell_move(call, id, COOP_SHELL_READ, end.raw);
}

static int run_read(struct coop_tool_call *call)
{
	struct reading reading = {0};
	json_t *record;
	int r = coop_shell_find(call, &record);

	if (r < 0)
		return r;
	const char *id = coop_tool_record_id(record);
	r = read_all(call, id, &reading);
	if (r == 0)
		r = tell_reading(call, id, &reading);
	coop_transcript_free(reading.transcript);
	json_decref(record);
	return r;
}

const struct coop_tool coop_tool_shell_read = {
	.name = "shell_read",
	.title = "Read a shell",
	.description =
		"New output since the last shell_read or match, at once. To wait use shell_expect.",
	.kind = COOP_TOOL_MOVE,
	.sets = COOP_TOOLS_DEFAULT,
	.input = read_input,
	.output = read_output,
	.run = run_read,
};

int coop_shell_signal(struct coop_tool_call *call, const char *id, const json_t *signal,
		      json_t **ret)
{
	struct coop_tool_answer answer;
	json_t *args =
		json_pack("{s:s, s:s, s:s}", "id", id, "signal", "SIGINT", "target", "foreground");

	if (signal && json_object_set(args, "signal", (json_t *)(uintptr_t)signal) < 0) {
		json_decref(args);
		return coop_tool_no_memory(call);
	}
	int r = coop_tool_ask(call, "signal", args, &answer);
	if (r < 0)
		return r;
	if (!json_is_true(json_object_get(answer.json, "sent"))) {
		coop_tool_answer_clear(&answer);
		return coop_tool_fail(
			call, "not_running", NULL,
			"nothing was sent: the shell has ended, or nothing runs in its "
			"foreground");
	}
	*ret = json_incref(answer.json);
	coop_tool_answer_clear(&answer);
	return 0;
}

static const struct coop_field signal_input[] = {IN_SESSION, IN_SIGNAL("default SIGINT"),
						 FIELDS_END};
static const struct coop_field signal_output[] = {
	OUT_STRING("session_id"),
	OUT_STRING("signal"),
	OUT_INT_NULL("pid"),
	FIELDS_END,
};

static int run_signal(struct coop_tool_call *call)
{
	json_t *record, *sent = NULL;
	int r = coop_shell_find(call, &record);

	if (r < 0)
		return r;
	const char *id = coop_tool_record_id(record);
	r = coop_shell_signal(call, id, coop_arg(call->args, "signal"), &sent);
	if (r == 0) {
		coop_tool_set(call, "session_id", json_string(id));
		coop_tool_set(call, "signal", json_incref(json_object_get(sent, "signal_name")));
		coop_tool_set(call, "pid", coop_tool_member(sent, "group"));
	}
	json_decref(sent);
	json_decref(record);
	return r;
}

const struct coop_tool coop_tool_shell_signal = {
	.name = "shell_signal",
	.title = "Signal in a shell",
	.description = "Signals the program in the shell's foreground; the shell lives on.",
	.kind = COOP_TOOL_END,
	.sets = COOP_TOOLS_DEFAULT,
	.input = signal_input,
	.output = signal_output,
	.run = run_signal,
};
