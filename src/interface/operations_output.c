/* Operations on what processes print and read. */
#include "interface/bounds.h"
#include "interface/choices.h"
#include "interface/field_rows.h"
#include "interface/fields.h"
#include "interface/operations.h"

static const struct coop_field gap_fields[] = {ALWAYS("from_cursor", INT), ALWAYS("to_cursor", INT),
					       ALWAYS("bytes", INT), END};

static const struct coop_field event_fields[] = {ALWAYS("cursor", INT), ALWAYS("stream", STRING),
						 ALWAYS("offset", INT), ALWAYS("bytes", INT),
						 ALWAYS("at", STRING),  END};

OPERATION(read, LOOK, "retained output from a position",
	  ARGS(ID, ENUM("stream", coop_choices_read_stream, "default stdout, of a terminal pty"),
	       INT("cursor", 0, COOP_POSITION_MAX,
		   "position in the stream, or number of the event (combined)"),
	       BYTES("max", 0, 4 << 20, "at most so many bytes; default 65536"),
	       BYTES("tail", 0, COOP_POSITION_MAX,
		     "instead of cursor: so many bytes before the end"),
	       BOOL("drain", "release everything before next"),
	       BOOL("times", "when each event was read (combined)"),
	       BOOL("notes", "also what coop itself says of the process (combined)"),
	       ARG_READER("instead of cursor: where that reader is")),
	  RESULT(ALWAYS("stream", STRING), ALWAYS("cursor", INT), ALWAYS("next", INT),
		 ALWAYS("bytes", INT), ALWAYS("bytes_dropped", INT), SOMETIMES("bytes_before", INT),
		 SOMETIMES("first", INT), SOMETIMES("events_dropped", INT),
		 {.name = "gaps", .type = COOP_FIELD_OBJECTS, .fields = gap_fields},
		 ALWAYS("total", INT), ALWAYS("eof", BOOL), ALWAYS("drained_eof", BOOL),
		 ALWAYS("state", STRING),
		 {.name = "events", .type = COOP_FIELD_OBJECTS, .fields = event_fields}));

OPERATION(
	reader, LOOK, "where a named reader is, or is from now on",
	ARGS(ID,
	     ARG_READER("its name; the caller's own, of this process and stream", .required = true),
	     ENUM("stream", coop_choices_read_stream, "default stdout, of a terminal pty"),
	     INT("cursor", 0, COOP_POSITION_MAX, "where it is from now on; default: where it was")),
	RESULT(ALWAYS("reader", STRING), ALWAYS("stream", STRING), ALWAYS("cursor", INT),
	       ALWAYS("previous", INT)));

OPERATION(follow, LOOK, "output as it comes, until the end", .waits = true,
	  ARGS(ID, ENUM("mode", coop_choices_follow_mode, "bytes (default) or events"),
	       {.name = "streams",
		.type = COOP_FIELD_ENUMS,
		.choices = coop_choices_stream,
		.max = 3,
		.doc = "default: all"},
	       {.name = "from",
		.type = COOP_FIELD_OFFSETS,
		.choices = coop_choices_stream,
		.doc = "positions; default 0"},
	       BYTES("tail", 0, COOP_POSITION_MAX, "begin so many bytes before each stream's end"),
	       INT("since", 0, COOP_POSITION_MAX, "first event (mode events)"),
	       BOOL("drain", "release what has been sent (mode bytes)"),
	       ENUM("until", coop_choices_until,
		    "exit (default), or eof: while descendants hold the pipes"),
	       TIDY, BOOL("hold", "the process waits for this follow rather than lose output"),
	       BOOL("notes", "also what coop itself says of the process (mode events)")),
	  RESULT(ALWAYS("reason", STRING), MAYBE_NULL("cursor", INT),
		 OF("process", OBJECT, coop_record_fields)));

OPERATION(hold, USE, "let a process wait for a reader rather than lose output",
	  ARGS(ID, INT("hold", 1, COOP_POSITION_MAX, "its number; default: a new one"),
	       INT("cursor", 0, COOP_POSITION_MAX,
		   "events before this one are not needed any more"),
	       BOOL("end", "give it up")),
	  RESULT({.name = "hold",
		  .type = COOP_FIELD_OBJECT,
		  .required = true,
		  .nullable = true,
		  .fields = coop_hold_fields}));

OPERATION(note, USE, "say something among a process's output",
	  ARGS(ID,
	       STRING("text", COOP_NOTE_MAX - sizeof "coop: \n",
		      "one line, shown among its output as coop's", .required = true),
	       BOOL("once", "only if there is none with this text yet")),
	  RESULT(ALWAYS("added", BOOL), MAYBE_NULL("cursor", INT)));

OPERATION(write_stdin, USE, "send input", .waits = true, .data_max = COOP_STDIN_WRITE_MAX,
	  ARGS(ID, MS("timeout_ms", -1, COOP_MS_MAX, "give up then; default 10000, -1: never"),
	       BOOL("secret", "for doors that would show it")),
	  RESULT(ALWAYS("success", BOOL), ALWAYS("timed_out", BOOL), ALWAYS("bytes_written", INT)));

OPERATION(close_stdin, USE, "send end of file", .waits = true, ARGS(ID),
	  RESULT(ALWAYS("closed", BOOL), ALWAYS("was_open", BOOL)));

OPERATION(resize, USE, "change the size of a terminal",
	  ARGS(ID, ARG_COLS(NULL, .required = true), ARG_ROWS(NULL, .required = true)),
	  RESULT(ALWAYS("cols", INT), ALWAYS("rows", INT)));
