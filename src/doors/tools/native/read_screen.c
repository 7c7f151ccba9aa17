/* read_screen: what a person would see now on a process's terminal. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/views/screen.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/read.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"

/* Read at a time; other calls run between two of these. */
#define PIECE (64 << 10)
/* So much of the end is played: programs draw the whole screen sooner or later. */
#define PLAYED_MAX (512 << 10)
#define PLAYED_MIN 2048

static const struct coop_field input[] = {IN_PID, FIELDS_END};
static const struct coop_field output[] = {
	OUT_STRINGS("lines"),  OUT_INT("cols"),     OUT_INT("rows"), OUT_INT("cursor_col"),
	OUT_INT("cursor_row"), OUT_STRING("state"), FIELDS_END,
};

/* What has come when this is called counts: a program may never stop drawing. */
static int play(struct coop_tool_call *call, const char *id, uint64_t end, uint64_t most,
		struct coop_screen *screen)
{
	uint64_t at = end > most ? end - most : 0;

	while (at < end) {
		struct coop_tool_piece piece;
		int r = coop_tool_read(
			call, id, "pty",
			json_pack("{s:I, s:i}", "cursor", (json_int_t)at, "max", PIECE), &piece);
		if (r < 0)
			return r;
		uint64_t next = piece.next;
		coop_screen_feed(screen, piece.bytes, piece.size);
		coop_tool_piece_clear(&piece);
		if (next == at)
			break;
		at = next;
	}
	return 0;
}

/* A new screen that shows the end of the output. What scrolls very much wears a screen out, and
 * less of it is enough then. */
static int draw(struct coop_tool_call *call, const json_t *record, unsigned cols, unsigned rows,
		struct coop_screen **ret)
{
	uint64_t end = coop_tool_stream_end(record, "pty");

	for (uint64_t most = PLAYED_MAX;; most /= 8) {
		*ret = coop_screen_new(cols, rows);
		int r = *ret ? play(call, coop_tool_record_id(record), end, most, *ret)
			     : coop_tool_no_memory(call);
		if (r < 0 || !coop_screen_is_worn_out(*ret) || most < PLAYED_MIN)
			return r;
		coop_screen_free(*ret);
	}
}

static int set_lines(struct coop_tool_call *call, const struct coop_screen *screen, unsigned rows)
{
	json_t *lines = json_array();
	int r = lines ? 0 : -ENOMEM;

	for (unsigned row = 0; r == 0 && row < rows; row++) {
		char *text = NULL;
		r = coop_screen_line(screen, row, &text);
		if (r == 0 && json_array_append_new(lines, json_string(text)) < 0)
			r = -ENOMEM;
		free(text);
	}
	if (r < 0) {
		json_decref(lines);
		return coop_tool_no_memory(call);
	}
	coop_tool_set(call, "lines", lines);
	return 0;
}

static int show(struct coop_tool_call *call, const json_t *record)
{
	const json_t *terminal = json_object_get(record, "terminal");
	unsigned cols = (unsigned)json_integer_value(json_object_get(terminal, "cols"));
	unsigned rows = (unsigned)json_integer_value(json_object_get(terminal, "rows"));
	cols = cols > COOP_SCREEN_COLS_MAX ? COOP_SCREEN_COLS_MAX : cols;
	rows = rows > COOP_SCREEN_ROWS_MAX ? COOP_SCREEN_ROWS_MAX : rows;
	struct coop_screen *screen = NULL;
	int r = draw(call, record, cols, rows, &screen);

	if (r == 0)
		r = set_lines(call, screen, rows);
	if (r == 0) {
		struct coop_screen_cursor cursor = coop_screen_cursor(screen);
		coop_tool_set_process(call, record);
		coop_tool_set(call, "cols", json_integer(cols));
		coop_tool_set(call, "rows", json_integer(rows));
		coop_tool_set(call, "cursor_col", json_integer(cursor.col));
		coop_tool_set(call, "cursor_row", json_integer(cursor.row));
		coop_tool_set(call, "cursor_visible", json_boolean(cursor.visible));
		coop_tool_set(call, "full_screen", json_boolean(coop_screen_is_alternate(screen)));
		if (*coop_screen_title(screen))
			coop_tool_set(call, "title", json_string(coop_screen_title(screen)));
		coop_tool_set(call, "state", json_incref(json_object_get(record, "state")));
	}
	coop_screen_free(screen);
	return r;
}

static int run(struct coop_tool_call *call)
{
	json_t *record;
	int r = coop_tool_process(call, "pid", &record);

	if (r == 0 && !json_is_object(json_object_get(record, "terminal"))) {
		call->failed = true;
		r = coop_tool_fail(call, "invalid_input", "pid",
				   "it has no terminal: read its output with read_process_output; "
				   "open_shell gives a terminal");
	}
	if (r == 0)
		r = show(call, record);
	json_decref(record);
	return r;
}

const struct coop_tool coop_tool_read_screen = {
	.name = "read_screen",
	.title = "Read the screen",
	.description =
		"What a person would see now on a shell's terminal (pid: its session_id): for "
		"full-screen programs, as editors, pagers, menus. Cursor counts from 0.",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_DEFAULT,
	.input = input,
	.output = output,
	.run = run,
};
