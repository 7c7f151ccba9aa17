/* Operations that start commands and forget them: with sessions, which end what is in them. */
#include "interface/bounds.h"
#include "interface/choices.h"
#include "interface/field_rows.h"
#include "interface/fields.h"
#include "interface/operations.h"

/* `check` takes all that `spawn` does. */
/* Of the arguments of `follow` those that mean something for a process that is yet to begin. */
static const struct coop_field follow_fields[] = {
	ENUM("mode", coop_choices_follow_mode, "bytes (default) or events"),
	BOOL("drain", "release what has been sent (mode bytes)"),
	ENUM("until", coop_choices_until,
	     "exit (default), or eof: while descendants hold the pipes"),
	BOOL("tidy", "wait for the end of placeholders, too"),
	BOOL("hold", "the process waits for this follow rather than lose output"),
	BOOL("notes", "also what coop itself says of the process (mode events)"),
	END};

#define SPAWN_FIELDS                                                                             \
	ARG_ARGV("program and arguments (mode argv)"),                                           \
		ENUM("mode", coop_choices_mode, "argv (default) or shell"),                      \
		ARG_COMMAND("the command line (mode shell)", .letter = 'c', .form = "CMDLINE"),  \
		ARG_SHELL("id or path of list_shells (mode shell)", .option = "use-shell",       \
			  .form = "SHELL"),                                                      \
		ENUM("helper", coop_choices_helper,                                              \
		     "instead of a command: a program of coop's own, from a descriptor"),        \
		ARG_LOGIN("as a login shell (mode shell)"),                                      \
		ARG_INTERACTIVE("as an interactive shell (mode shell)"),                         \
		ARG_CWD("working directory; default: the user's home", .letter = 'C',            \
			.form = "FOLDER"),                                                       \
		ARG_ENV("variables to set", .letter = 'e', .form = "NAME[=VALUE]"),              \
		ENUM("env_mode", coop_choices_env_mode, "what env is laid over"),                \
		ARG_ENV_REMOVE("variables to remove from the base", .form = "NAME"),             \
		MAP("base_env", COOP_ENV_MAX, "the door's own PATH, HOME, LANG, …"),             \
		ENUM("kind", coop_choices_kind, "pipe (default) or pty"),                        \
		ARG_COLS("width of the terminal; default 80"),                                   \
		ARG_ROWS("height of the terminal; default 24"),                                  \
		ENUM("stdin", coop_choices_stdin,                                                \
		     "none (default), pipe, or data: the bytes of the request"),                 \
		BOOL("keep_stdin_open", "do not close stdin after the bytes"),                   \
		ENUM("stderr", coop_choices_stderr, "separate (default) or merged into stdout"), \
		ARG_TIMEOUT("run limit; 0: none"),                                               \
		MS("timeout_grace_ms", 0, 30000,                                                 \
		   "between SIGTERM and SIGKILL at the run limit; default 0"),                   \
		MS("idle_timeout_ms", 1, COOP_MS_MAX,                                            \
		   "ends after so long without output, input or a call"),                        \
		MS("max_lifetime_ms", 1, COOP_MS_MAX, "ends at that age", .option = "lifetime"), \
		MS("exit_retention_ms", 0, COOP_MS_MAX,                                          \
		   "how long the record stays after the end; clamped to 1 min - 1 h",            \
		   .option = "retention"),                                                       \
		BYTES("ring_bytes", 0, COOP_POSITION_MAX,                                        \
		      "output kept per stream; clamped to 4 KiB - 8 MiB; default 1 MiB"),        \
		ENUM("overflow", coop_choices_overflow, "when the ring is full"),                \
		ENUM("on_output_quota", coop_choices_quota, "when the spool is full"),           \
		ENUM("on_exit", coop_choices_on_exit,                                            \
		     "what becomes of descendants; default keep"),                               \
		ENUM("lease", coop_choices_lease,                                                \
		     "ephemeral ends with the connection; default awaited"),                     \
		STRING("session", COOP_ID_MAX,                                                   \
		       "the session it ends with; default: the agent's own", .form = "ID"),      \
		STRING("call_id", 256, "cancel ends what carries it", .form = "TEXT"),           \
		STRING("tag", TEXT_MAX, "the caller's name for it", .form = "TAG"),              \
		STRING("why", TEXT_MAX, "what it is for", .form = "TEXT"),                       \
		STRING("task", TEXT_MAX, "what it belongs to", .form = "TEXT"),                  \
		STRING("alias", 256,                                                             \
		       "a name of the caller's, unique among the agent's live processes"),       \
		STRING("user", 256,                                                              \
		       "the keeper's own user, by name or number; there is no other"),           \
		BOOL("digest", "count and hash its output: the record's digest"),                \
		BOOL("completion", "its end goes into its session's queue: completions"),        \
		MS("progress_interval_ms", 100, COOP_MS_MAX,                                     \
		   "notes about it after so long, then twice as long, up to 30 s"),              \
		BOOL("hold", "it waits for the caller rather than lose output: see hold"),       \
		OBJECT("follow", follow_fields,                                                  \
		       "answer with events and output as they come, and in the end as follow"),  \
		BOOL("record_failure",                                                           \
		     "leave a finished record if the program cannot be executed"),               \
		OBJECT("sandbox", coop_sandbox_fields, "what it may do"),                        \
		STRING("sandbox_profile", 64, "the same, by another's name for a profile"),      \
		OBJECT("limits", coop_limits_fields, "how much of the host it may use"),         \
		OBJECTS("file_injections", coop_injection_fields,                                \
			"read-only files that it gets, and that go with it", .option = "inject", \
			.form = "NAME=FILE|/PATH=FILE")

const struct coop_field coop_hold_fields[] = {ALWAYS("number", INT),      ALWAYS("cursor", INT),
					      ALWAYS("idle_ms", INT),     ALWAYS("step_bytes", INT),
					      ALWAYS("step_events", INT), END};

OPERATION(spawn, USE, "start a command", .waits = true, .data_max = COOP_SPAWN_BYTES_MAX,
	  ARGS(SPAWN_FIELDS),
	  RESULT(OF("process", OBJECT, coop_record_fields), {.name = "hold",
							     .type = COOP_FIELD_OBJECT,
							     .nullable = true,
							     .fields = coop_hold_fields}));

OPERATION(check, LOOK, "what policy says of a command", .data_max = COOP_SPAWN_BYTES_MAX,
	  ARGS(SPAWN_FIELDS, AGENT("whose policy; default: this agent's"), PRINCIPAL),
	  RESULT(ALWAYS("status", STRING), MAYBE_NULL("exit_code", INT), MAYBE_NULL("pid", INT),
		 ALWAYS("stderr", STRING), MAYBE_NULL("error", STRING), ALWAYS("request", OBJECT),
		 ALWAYS("command_policy", OBJECT)));

OPERATION(keep, USE, "let an ephemeral process outlive its connection",
	  ARGS(ID,
	       ENUM("overflow", coop_choices_keep_overflow,
		    "from now on, unless it spools; default: as it is"),
	       BOOL("completion", "its end goes into its session's queue, as of spawn")),
	  RESULT(OF("process", OBJECT, coop_record_fields)));

OPERATION(gc, USE, "forget everything that has finished", .args = NOTHING,
	  RESULT(ALWAYS("released", INT)));

static const struct coop_field proof_fields[] = {KILL_PROOF, END};

OPERATION(release, USE, "forget a process, ending it if it runs", .waits = true,
	  ARGS(ID, ENUM("if_running", coop_choices_if_running, "kill (default) or refuse")),
	  RESULT(ALWAYS("released", BOOL), {.name = "kill",
					    .type = COOP_FIELD_OBJECT,
					    .required = true,
					    .nullable = true,
					    .fields = proof_fields}));

OPERATION(cancel, USE, "end what carries a call id, or is named", .waits = true,
	  ARGS(STRINGS("call_ids", 1000, "all that carries one of them ends"),
	       STRINGS("ids", 1000, "these end; unknown ones are left out")),
	  RESULT(ALWAYS("cancelled", STRINGS), ALWAYS("survivors", INT)));

static const struct coop_field note_fields[] = {ALWAYS("id", STRING),     ALWAYS("bytes", OBJECT),
						ALWAYS("new_bytes", INT), ALWAYS("silence_ms", INT),
						ALWAYS("at", STRING),     END};

OPERATION(completions, USE, "take what has ended from a session's queue", .waits = true,
	  ARGS(STRING("session", COOP_ID_MAX, "whose queue; default: the agent's own"),
	       BOOL("take", "they leave the queue; default true"),
	       INT("limit", 1, 100, "at most so many of each; default 10"),
	       ARG_TIMEOUT("wait for something so long; default 0")),
	  RESULT(OF("processes", OBJECTS, coop_record_fields), OF("notes", OBJECTS, note_fields),
		 ALWAYS("more", BOOL)));

static const struct coop_field session_fields[] = {
	ALWAYS("id", STRING),         MAYBE_NULL("label", STRING),
	ALWAYS("agent", STRING),      ALWAYS("agent_path", STRING),
	ALWAYS("created_at", STRING), MAYBE_NULL("expires_at", STRING),
	ALWAYS("processes", INT),     END};

OPERATION(session_new, USE, "begin a group of processes that end together",
	  ARGS(STRING("label", TEXT_MAX, "for reading", .form = "TEXT"),
	       MS("max_lifetime_ms", 1, COOP_MS_MAX, "ends by itself then; default: never",
		  .option = "lifetime")),
	  RESULT(OF("session", OBJECT, session_fields)));

OPERATION(session_end, USE, "end one, and what is in it", .waits = true,
	  ARGS(STRING("id", COOP_ID_MAX, NULL, .required = true),
	       ARG_GRACE("between SIGTERM and the kill; default 5000")),
	  RESULT(ALWAYS("ended", INT), ALWAYS("survivors", INT)));

OPERATION(session_list, LOOK, "those that have not ended", .args = NOTHING,
	  RESULT(OF("sessions", OBJECTS, session_fields)));
