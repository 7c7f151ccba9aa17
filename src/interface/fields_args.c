#include "interface/bounds.h"
#include "interface/choices.h"
#include "interface/field_rows.h"
#include "interface/fields.h"

#define TEXT_MAX 65536
#define AGENT_MAX 1024

#define ID \
	STRING("id", COOP_ID_MAX, "id, tag, or an unambiguous beginning of an id", .required = true)
#define TIDY BOOL("tidy", "not before its placeholders are gone from the workspace")
#define AGENT(text) STRING("agent", AGENT_MAX, text)
#define AGENT_NEEDED \
	STRING("agent", AGENT_MAX, "its path, from this agent or in full", .required = true)
#define PRINCIPAL STRING("principal", 256, "whose tree of agents; for the operator")

const struct coop_field coop_fields_none[] = {END};

const struct coop_field coop_fields_doctor[] = {
	BOOL("credentials", "also which credentials are in the homes, and whether they are hidden"),
	END};

const struct coop_field coop_fields_id[] = {ID, END};

/* `check` takes all that `spawn` does. */
#define SPAWN_FIELDS                                                                             \
	STRINGS("argv", 131072, "program and arguments (mode argv)"),                            \
		ENUM("mode", coop_choices_mode, "argv (default) or shell"),                      \
		STRING("command", 2 << 20, "the command line (mode shell)"),                     \
		STRING("shell", 4096, "id or path of list_shells (mode shell)"),                 \
		ENUM("helper", coop_choices_helper,                                              \
		     "instead of a command: a program of coop's own, from a descriptor"),        \
		BOOL("login", "as a login shell (mode shell)"),                                  \
		BOOL("interactive", "as an interactive shell (mode shell)"),                     \
		STRING("cwd", 4096, "working directory; default: the user's home"),              \
		MAP("env", COOP_ENV_MAX, "variables to set"),                                    \
		ENUM("env_mode", coop_choices_env_mode, "what env is laid over"),                \
		STRINGS("env_remove", COOP_ENV_MAX, "variables to remove from the base"),        \
		MAP("base_env", COOP_ENV_MAX, "the door's own PATH, HOME, LANG, …"),             \
		ENUM("kind", coop_choices_kind, "pipe (default) or pty"),                        \
		INT("cols", 1, 65535, "width of the terminal; default 80"),                      \
		INT("rows", 1, 65535, "height of the terminal; default 24"),                     \
		ENUM("stdin", coop_choices_stdin,                                                \
		     "none (default), pipe, or data: the bytes of the request"),                 \
		BOOL("keep_stdin_open", "do not close stdin after the bytes"),                   \
		ENUM("stderr", coop_choices_stderr, "separate (default) or merged into stdout"), \
		MS("timeout_ms", 0, COOP_MS_MAX, "run limit; 0: none"),                          \
		MS("timeout_grace_ms", 0, 30000,                                                 \
		   "between SIGTERM and SIGKILL at the run limit; default 0"),                   \
		MS("idle_timeout_ms", 1, COOP_MS_MAX,                                            \
		   "ends after so long without output, input or a call"),                        \
		MS("max_lifetime_ms", 1, COOP_MS_MAX, "ends at that age"),                       \
		MS("exit_retention_ms", 0, COOP_MS_MAX,                                          \
		   "how long the record stays after the end; clamped to 1 min - 1 h"),           \
		BYTES("ring_bytes", 0, COOP_POSITION_MAX,                                        \
		      "output kept per stream; clamped to 4 KiB - 8 MiB; default 1 MiB"),        \
		ENUM("overflow", coop_choices_overflow, "when the ring is full"),                \
		ENUM("on_output_quota", coop_choices_quota, "when the spool is full"),           \
		ENUM("on_exit", coop_choices_on_exit,                                            \
		     "what becomes of descendants; default keep"),                               \
		ENUM("lease", coop_choices_lease,                                                \
		     "ephemeral ends with the connection; default awaited"),                     \
		STRING("session", COOP_ID_MAX,                                                   \
		       "the session it ends with; default: the agent's own"),                    \
		STRING("call_id", 256, "cancel ends what carries it"),                           \
		STRING("tag", TEXT_MAX, "the caller's name for it"),                             \
		STRING("why", TEXT_MAX, "what it is for"),                                       \
		STRING("task", TEXT_MAX, "what it belongs to"),                                  \
		STRING("alias", 256,                                                             \
		       "a name of the caller's, unique among the agent's live processes"),       \
		STRING("user", 256,                                                              \
		       "the keeper's own user, by name or number; there is no other"),           \
		BOOL("digest", "count and hash its output: the record's digest"),                \
		BOOL("completion", "its end goes into its session's queue: completions"),        \
		MS("progress_interval_ms", 100, COOP_MS_MAX,                                     \
		   "notes about it after so long, then twice as long, up to 30 s"),              \
		BOOL("hold", "it waits for the caller rather than lose output: see hold"),       \
		BOOL("record_failure",                                                           \
		     "leave a finished record if the program cannot be executed"),               \
		OBJECT("sandbox", coop_sandbox_fields, "what it may do"),                        \
		STRING("sandbox_profile", 64, "the same, by another's name for a profile"),      \
		OBJECT("limits", coop_limits_fields, "how much of the host it may use"),         \
		OBJECTS("file_injections", coop_injection_fields,                                \
			"read-only files that it gets, and that go with it"),

const struct coop_field coop_fields_spawn[] = {SPAWN_FIELDS END};

const struct coop_field coop_fields_check[] = {
	SPAWN_FIELDS AGENT("whose policy; default: this agent's"),
	PRINCIPAL,
	END,
};

const struct coop_field coop_fields_list[] = {
	BOOL("include_finished", "also what has ended"),
	ENUM("state", coop_choices_state, "only that state"),
	STRING("tag", TEXT_MAX, "only that tag"),
	STRING("label", TEXT_MAX, "only labels that contain this"),
	STRING("agent", TEXT_MAX, "only that agent"),
	STRING("session", TEXT_MAX, "only that session"),
	INT("limit", 1, 100000, "at most so many; default 1000"),
	STRING("after", COOP_ID_MAX, "only what was started after this one"),
	BOOL("brief", "fewer fields"),
	END,
};

const struct coop_field coop_fields_status[] = {
	STRING("id", COOP_ID_MAX, "one process"),
	STRINGS("ids", 10000, "several; unknown ones are left out"),
	END,
};

const struct coop_field coop_fields_wait[] = {
	ID,
	MS("timeout_ms", 0, COOP_MS_MAX, "answer then at the latest; default: no limit"),
	BYTES("output_bytes", 0, 1 << 20, "send that much of each stream's retained beginning"),
	TIDY,
	END,
};

const struct coop_field coop_fields_wait_port[] = {
	ID,
	INT("port", 1, 65535, NULL, .required = true),
	MS("timeout_ms", 0, COOP_MS_MAX, "answer then at the latest; default: no limit"),
	END,
};

const struct coop_field coop_fields_read[] = {
	ID,
	ENUM("stream", coop_choices_read_stream, "default stdout, of a terminal pty"),
	INT("cursor", 0, COOP_POSITION_MAX,
	    "position in the stream, or number of the event (combined)"),
	BYTES("max", 0, 4 << 20, "at most so many bytes; default 65536"),
	BYTES("tail", 0, COOP_POSITION_MAX, "instead of cursor: so many bytes before the end"),
	BOOL("drain", "release everything before next"),
	BOOL("times", "when each event was read (combined)"),
	BOOL("notes", "also what coop itself says of the process (combined)"),
	STRING("reader", COOP_READER_NAME_MAX, "instead of cursor: where that reader is"),
	END,
};

const struct coop_field coop_fields_reader[] = {
	ID,
	STRING("reader", COOP_READER_NAME_MAX,
	       "its name; the caller's own, of this process and stream", .required = true),
	ENUM("stream", coop_choices_read_stream, "default stdout, of a terminal pty"),
	INT("cursor", 0, COOP_POSITION_MAX, "where it is from now on; default: where it was"),
	END,
};

const struct coop_field coop_fields_follow[] = {
	ID,
	ENUM("mode", coop_choices_follow_mode, "bytes (default) or events"),
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
	TIDY,
	BOOL("hold", "the process waits for this follow rather than lose output"),
	BOOL("notes", "also what coop itself says of the process (mode events)"),
	END,
};

const struct coop_field coop_fields_note[] = {
	ID,
	STRING("text", COOP_NOTE_MAX - sizeof "coop: \n",
	       "one line, shown among its output as coop's", .required = true),
	BOOL("once", "only if there is none with this text yet"),
	END,
};

const struct coop_field coop_fields_hold[] = {
	ID,
	INT("hold", 1, COOP_POSITION_MAX, "its number; default: a new one"),
	INT("cursor", 0, COOP_POSITION_MAX, "events before this one are not needed any more"),
	BOOL("end", "give it up"),
	END,
};

const struct coop_field coop_fields_write_stdin[] = {
	ID,
	MS("timeout_ms", -1, COOP_MS_MAX, "give up then; default 10000, -1: never"),
	BOOL("secret", "for doors that would show it"),
	END,
};

const struct coop_field coop_fields_resize[] = {
	ID,
	INT("cols", 1, 65535, NULL, .required = true),
	INT("rows", 1, 65535, NULL, .required = true),
	END,
};

const struct coop_field coop_fields_keep[] = {
	ID,
	ENUM("overflow", coop_choices_keep_overflow,
	     "from now on, unless it spools; default: as it is"),
	BOOL("completion", "its end goes into its session's queue, as of spawn"),
	END,
};

const struct coop_field coop_fields_signal[] = {
	ID,
	{.name = "signal",
	 .type = COOP_FIELD_SIGNAL,
	 .required = true,
	 .doc = "name (SIGTERM, term) or number"},
	ENUM("target", coop_choices_target,
	     "group (default), process, tree, or foreground: what runs in its terminal"),
	END,
};

const struct coop_field coop_fields_stop[] = {
	ID,
	MS("grace_ms", 0, 30000, "between SIGTERM and the kill; default 5000"),
	END,
};

const struct coop_field coop_fields_release[] = {
	ID,
	ENUM("if_running", coop_choices_if_running, "kill (default) or refuse"),
	END,
};

const struct coop_field coop_fields_shutdown[] = {
	MS("grace_ms", 0, 30000, "for the processes; default 5000"),
	END,
};

const struct coop_field coop_fields_cancel[] = {
	STRINGS("call_ids", 1000, "all that carries one of them ends"),
	STRINGS("ids", 1000, "these end; unknown ones are left out"),
	END,
};

const struct coop_field coop_fields_session_new[] = {
	STRING("label", TEXT_MAX, "for reading"),
	MS("max_lifetime_ms", 1, COOP_MS_MAX, "ends by itself then; default: never"),
	END,
};

const struct coop_field coop_fields_session_end[] = {
	STRING("id", COOP_ID_MAX, NULL, .required = true),
	MS("grace_ms", 0, 30000, "between SIGTERM and the kill; default 5000"),
	END,
};

const struct coop_field coop_fields_login[] = {
	STRING("token", 256, "its agent; or"),
	AGENT("this one or one below it, by its path"),
	END,
};

const struct coop_field coop_fields_ceiling[] = {
	OBJECT("sandbox", coop_sandbox_fields, "what a command may do at most"),
	OBJECT("limits", coop_limits_fields, "how much of the host it may use at most"),
	END,
};

const struct coop_field coop_fields_agents[] = {AGENT("this one and below"), PRINCIPAL, END};

const struct coop_field coop_fields_agent_list[] = {
	PRINCIPAL, STRING("after", AGENT_MAX, "go on after this one"), END};

const struct coop_field coop_fields_agent_show[] = {AGENT_NEEDED, PRINCIPAL, END};

#define AGENT_SETTINGS                                                                            \
	INT("max_running", 0, 1000000, "live processes, those of agents below included"),         \
		BYTES("max_buffer_bytes", 0, COOP_POSITION_MAX, "memory for output, likewise"),   \
		INT("max_finished", 1, 1000000, "finished records kept in full"),                 \
		BOOL("persistent", "may start what outlives its session"),                        \
		BOOL("restricted", "may not set variables that change what programs load"),       \
		STRINGS("workspace", COOP_WORKSPACE_MAX,                                          \
			"directories that working directories must lie in"),                      \
		OBJECT("policy", NULL, "what it may run"),                                        \
		OBJECT("sandbox", coop_sandbox_fields,                                            \
		       "the most that its processes and those of agents below may have"),         \
		OBJECT("limits", coop_limits_fields,                                              \
		       "likewise; memory_bytes, cpu_quota and max_pids of all of them together"), \
		MAP("env", COOP_ENV_MAX, "variables that its processes begin with; never shown"), \
		MAP("metadata", COOP_AGENT_METADATA_MAX, "words of whoever makes it"),            \
		MS("expires_in_ms", 1, COOP_MS_MAX, "it is removed then; default: never"),

const struct coop_field coop_fields_agent_add[] = {
	AGENT_NEEDED,
	PRINCIPAL,
	AGENT_SETTINGS BOOL("folder", "it gets a folder of its own to work in, which goes with it"),
	END,
};

const struct coop_field coop_fields_agent_set[] = {AGENT_NEEDED, PRINCIPAL, AGENT_SETTINGS END};

static const struct coop_field stored_folder[] = {
	STRING("in", TEXT_MAX, "the data folder that it lies in"),
	STRING("mark", COOP_AGENT_FOLDER_MARK, "what proves that it is ours"),
	END,
};

const struct coop_field coop_fields_agent_stored[] = {
	AGENT_SETTINGS INT("expires_at", 1, COOP_POSITION_MAX, "milliseconds since 1970",
			   .unit = COOP_UNIT_TIME),
	OBJECT("folder", stored_folder, NULL),
	END,
};

const struct coop_field coop_fields_agent_remove[] = {
	AGENT_NEEDED,
	PRINCIPAL,
	MS("grace_ms", 0, 30000, "between SIGTERM and the kill; default 0"),
	END,
};

const struct coop_field coop_fields_token_new[] = {
	AGENT("default: this one"),
	PRINCIPAL,
	STRING("label", TEXT_MAX, "for reading"),
	MS("expires_in_ms", 1, COOP_MS_MAX, "default: never"),
	END,
};

const struct coop_field coop_fields_token_revoke[] = {
	INT("id", 1, COOP_POSITION_MAX, "its number in token_list", .required = true),
	END,
};

const struct coop_field coop_fields_history[] = {
	AGENT("self, or a path; default: all that may be seen"),
	INT("since", 0, COOP_POSITION_MAX, "started then or later; milliseconds since 1970",
	    .unit = COOP_UNIT_TIME),
	INT("until", 0, COOP_POSITION_MAX, "started before", .unit = COOP_UNIT_TIME),
	STRING("before", COOP_ID_MAX, "go on with what is older than this one"),
	INT("limit", 1, 10000, "at most so many; default 100"),
	END,
};

const struct coop_field coop_fields_follow_events[] = {
	STRING("agent", TEXT_MAX, "only that agent"),
	STRING("session", TEXT_MAX, "only that session"),
	BOOL("replay", "first the ends of what has ended already; default true"),
	END,
};

const struct coop_field coop_fields_completions[] = {
	STRING("session", COOP_ID_MAX, "whose queue; default: the agent's own"),
	BOOL("take", "they leave the queue; default true"),
	INT("limit", 1, 100, "at most so many of each; default 10"),
	MS("timeout_ms", 0, COOP_MS_MAX, "wait for something so long; default 0"),
	END,
};

const struct coop_field coop_fields_audit_verify[] = {
	BOOL("acknowledge",
	     "forget what was missing when a keeper started, with a line that says so"),
	END,
};

const struct coop_field coop_fields_audit_tail[] = {
	INT("count", 1, 10000, "so many lines; default 50"),
	END,
};
