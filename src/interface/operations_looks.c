/* Operations that tell how processes are, and what became of them. */
#include "interface/bounds.h"
#include "interface/choices.h"
#include "interface/field_rows.h"
#include "interface/fields.h"
#include "interface/operations.h"

OPERATION(list, LOOK, "processes in the order of their start",
	  ARGS(BOOL("include_finished", "also what has ended", .option = "all", .letter = 'a'),
	       ENUM("state", coop_choices_state, "only that state"),
	       STRING("tag", TEXT_MAX, "only that tag", .form = "TAG"),
	       STRING("label", TEXT_MAX, "only labels that contain this", .form = "TEXT"),
	       STRING("agent", TEXT_MAX, "only that agent", .form = "AGENT"),
	       STRING("session", TEXT_MAX, "only that session", .form = "ID"),
	       INT("limit", 1, 100000, "at most so many; default 1000", .letter = 'n'),
	       STRING("after", COOP_ID_MAX, "only what was started after this one"),
	       BOOL("brief", "fewer fields")),
	  RESULT(OF("processes", OBJECTS, coop_record_fields), ALWAYS("more", BOOL)));

OPERATION(status, LOOK, "one or several records",
	  ARGS(STRING("id", COOP_ID_MAX, "one process"),
	       STRINGS("ids", 10000, "several; unknown ones are left out")),
	  RESULT({.name = "process", .type = COOP_FIELD_OBJECT, .fields = coop_record_fields},
		 {.name = "processes", .type = COOP_FIELD_OBJECTS, .fields = coop_record_fields}));

OPERATION(wait, LOOK, "answer when a process has ended", .waits = true,
	  ARGS(ID, ARG_TIMEOUT("answer then at the latest; default: no limit"),
	       BYTES("output_bytes", 0, 1 << 20,
		     "send that much of each stream's retained beginning"),
	       TIDY),
	  RESULT(ALWAYS("timed_out", BOOL), ALWAYS("running", BOOL), ALWAYS("status", STRING),
		 MAYBE_NULL("exit_code", INT), MAYBE_NULL("signal", STRING),
		 OF("process", OBJECT, coop_record_fields)));

OPERATION(wait_port, LOOK, "answer when a process listens on a port", .waits = true,
	  ARGS(ID, INT("port", 1, 65535, NULL, .required = true),
	       ARG_TIMEOUT("answer then at the latest; default: no limit")),
	  RESULT(ALWAYS("listening", BOOL), ALWAYS("timed_out", BOOL),
		 MAYBE_NULL("address", STRING), MAYBE_NULL("pid", INT),
		 OF("process", OBJECT, coop_record_fields)));

OPERATION(history, LOOK, "processes of the past", .waits = true,
	  ARGS(AGENT("self, or a path; default: all that may be seen"),
	       INT("since", 0, COOP_POSITION_MAX, "started then or later; milliseconds since 1970",
		   .unit = COOP_UNIT_TIME),
	       INT("until", 0, COOP_POSITION_MAX, "started before", .unit = COOP_UNIT_TIME),
	       STRING("before", COOP_ID_MAX, "go on with what is older than this one"),
	       INT("limit", 1, 10000, "at most so many; default 100", .letter = 'n')),
	  RESULT({.name = "processes", .type = COOP_FIELD_OBJECTS, .required = true},
		 ALWAYS("more", BOOL)));

OPERATION(follow_events, LOOK, "what happens to processes, as it happens", .waits = true,
	  ARGS(STRING("agent", TEXT_MAX, "only that agent", .form = "AGENT"),
	       STRING("session", TEXT_MAX, "only that session", .form = "ID"),
	       BOOL("replay", "first the ends of what has ended already; default true")),
	  .result = NOTHING);
