#include "interface/field_rows.h"
#include "interface/fields.h"

static const struct coop_field digest_fields[] = {
	ALWAYS("bytes", INT),
	ALWAYS("lines", INT),
	ALWAYS("sha256", STRING),
	END,
};

/* What a brief record leaves out is not required. */
const struct coop_field coop_record_fields[] = {
	ALWAYS("id", STRING),
	MAYBE_NULL("tag", STRING),
	ALWAYS("label", STRING),
	MAYBE_NULL("alias", STRING),
	MAYBE_NULL("why", STRING),
	MAYBE_NULL("task", STRING),
	MAYBE_NULL("call_id", STRING),
	ALWAYS("owner", OBJECT),
	ALWAYS("agent", STRING),
	ALWAYS("agent_path", STRING),
	MAYBE_NULL("session", STRING),
	ALWAYS("argv", STRINGS),
	ALWAYS("command", STRING),
	ALWAYS("argv_truncated", BOOL),
	ALWAYS("mode", STRING),
	ALWAYS("cwd", STRING),
	MAYBE_NULL("user", STRING),
	ALWAYS("kind", STRING),
	ALWAYS("lease", STRING),
	ALWAYS("start", STRING),
	ALWAYS("state", STRING),
	SOMETIMES("frozen", BOOL),
	MAYBE_NULL("pid", INT),
	MAYBE_NULL("process_group_id", INT),
	MAYBE_NULL("started_at", STRING),
	MAYBE_NULL("ended_at", STRING),
	ALWAYS("duration_ms", INT),
	MAYBE_NULL("last_output_at", STRING),
	MAYBE_NULL("exit", OBJECT),
	MAYBE_NULL("end_cause", STRING),
	ALWAYS("stdin_open", BOOL),
	ALWAYS("on_exit", STRING),
	ALWAYS("completion", BOOL),
	ALWAYS("descendants", INT),
	ALWAYS("stats", OBJECT),
	ALWAYS("receipt", BOOL),
	SOMETIMES("env_names", STRINGS),
	SOMETIMES("end_evidence", OBJECT),
	SOMETIMES("streams", OBJECT),
	SOMETIMES("stderr_mode", STRING),
	SOMETIMES("events", OBJECT),
	SOMETIMES("terminal", OBJECT),
	SOMETIMES("stdout_path", STRING),
	SOMETIMES("stderr_path", STRING),
	SOMETIMES("output_path", STRING),
	{.name = "digest", .type = COOP_FIELD_OBJECT, .nullable = true, .fields = digest_fields},
	SOMETIMES("blocked_on_stdin", BOOL),
	SOMETIMES("echo_off", BOOL),
	SOMETIMES("limits", OBJECT),
	SOMETIMES("sandbox", OBJECT),
	SOMETIMES("facts", STRINGS),
	SOMETIMES("audit_id", STRING),
	END,
};

const struct coop_field coop_results_process[] = {OF("process", OBJECT, coop_record_fields), END};

static const struct coop_field hold_fields[] = {
	ALWAYS("number", INT),     ALWAYS("cursor", INT),      ALWAYS("idle_ms", INT),
	ALWAYS("step_bytes", INT), ALWAYS("step_events", INT), END,
};

const struct coop_field coop_results_spawn[] = {
	OF("process", OBJECT, coop_record_fields),
	{.name = "hold", .type = COOP_FIELD_OBJECT, .nullable = true, .fields = hold_fields},
	END,
};

const struct coop_field coop_results_note[] = {
	ALWAYS("added", BOOL),
	MAYBE_NULL("cursor", INT),
	END,
};

const struct coop_field coop_results_hold[] = {
	{.name = "hold",
	 .type = COOP_FIELD_OBJECT,
	 .required = true,
	 .nullable = true,
	 .fields = hold_fields},
	END,
};

const struct coop_field coop_results_processes[] = {
	OF("processes", OBJECTS, coop_record_fields),
	ALWAYS("more", BOOL),
	END,
};

static const struct coop_field note_fields[] = {
	ALWAYS("id", STRING),      ALWAYS("bytes", OBJECT), ALWAYS("new_bytes", INT),
	ALWAYS("silence_ms", INT), ALWAYS("at", STRING),    END,
};

const struct coop_field coop_results_completions[] = {
	OF("processes", OBJECTS, coop_record_fields),
	OF("notes", OBJECTS, note_fields),
	ALWAYS("more", BOOL),
	END,
};

const struct coop_field coop_results_status[] = {
	{.name = "process", .type = COOP_FIELD_OBJECT, .fields = coop_record_fields},
	{.name = "processes", .type = COOP_FIELD_OBJECTS, .fields = coop_record_fields},
	END,
};

const struct coop_field coop_results_wait[] = {
	ALWAYS("timed_out", BOOL),
	ALWAYS("running", BOOL),
	ALWAYS("status", STRING),
	MAYBE_NULL("exit_code", INT),
	MAYBE_NULL("signal", STRING),
	OF("process", OBJECT, coop_record_fields),
	END,
};

const struct coop_field coop_results_wait_port[] = {
	ALWAYS("listening", BOOL),
	ALWAYS("timed_out", BOOL),
	MAYBE_NULL("address", STRING),
	MAYBE_NULL("pid", INT),
	OF("process", OBJECT, coop_record_fields),
	END,
};

static const struct coop_field event_fields[] = {
	ALWAYS("cursor", INT), ALWAYS("stream", STRING), ALWAYS("offset", INT),
	ALWAYS("bytes", INT),  ALWAYS("at", STRING),     END,
};

static const struct coop_field gap_fields[] = {
	ALWAYS("from_cursor", INT),
	ALWAYS("to_cursor", INT),
	ALWAYS("bytes", INT),
	END,
};

const struct coop_field coop_results_read[] = {
	ALWAYS("stream", STRING),
	ALWAYS("cursor", INT),
	ALWAYS("next", INT),
	ALWAYS("bytes", INT),
	ALWAYS("bytes_dropped", INT),
	SOMETIMES("bytes_before", INT),
	SOMETIMES("first", INT),
	SOMETIMES("events_dropped", INT),
	{.name = "gaps", .type = COOP_FIELD_OBJECTS, .fields = gap_fields},
	ALWAYS("total", INT),
	ALWAYS("eof", BOOL),
	ALWAYS("drained_eof", BOOL),
	ALWAYS("state", STRING),
	{.name = "events", .type = COOP_FIELD_OBJECTS, .fields = event_fields},
	END,
};

const struct coop_field coop_results_reader[] = {
	ALWAYS("reader", STRING),
	ALWAYS("stream", STRING),
	ALWAYS("cursor", INT),
	ALWAYS("previous", INT),
	END,
};

const struct coop_field coop_results_follow[] = {
	ALWAYS("reason", STRING),
	MAYBE_NULL("cursor", INT),
	OF("process", OBJECT, coop_record_fields),
	END,
};

const struct coop_field coop_results_write_stdin[] = {
	ALWAYS("success", BOOL),
	ALWAYS("timed_out", BOOL),
	ALWAYS("bytes_written", INT),
	END,
};

const struct coop_field coop_results_close_stdin[] = {ALWAYS("closed", BOOL),
						      ALWAYS("was_open", BOOL), END};

const struct coop_field coop_results_resize[] = {ALWAYS("cols", INT), ALWAYS("rows", INT), END};

const struct coop_field coop_results_signal[] = {
	ALWAYS("sent", BOOL),     ALWAYS("signal", INT),   ALWAYS("signal_name", STRING),
	MAYBE_NULL("group", INT), ALWAYS("state", STRING), END,
};

/* Pids are integers; a table has no type for a list of those, so the lists are told as any. */
static const struct coop_field proof_fields[] = {
	ALWAYS("success", BOOL),
	{.name = "signalled", .type = COOP_FIELD_OBJECTS, .required = true, .doc = "pids"},
	{.name = "killed", .type = COOP_FIELD_OBJECTS, .required = true, .doc = "pids"},
	ALWAYS("survivors", INT),
	ALWAYS("strays", INT),
	ALWAYS("ms", INT),
	END,
};

const struct coop_field coop_results_receipt[] = {
	ALWAYS("success", BOOL),
	{.name = "signalled", .type = COOP_FIELD_OBJECTS, .required = true, .doc = "pids"},
	{.name = "killed", .type = COOP_FIELD_OBJECTS, .required = true, .doc = "pids"},
	ALWAYS("survivors", INT),
	ALWAYS("strays", INT),
	ALWAYS("ms", INT),
	ALWAYS("status", STRING),
	OF("process", OBJECT, coop_record_fields),
	END,
};

const struct coop_field coop_results_frozen[] = {
	ALWAYS("id", STRING),
	ALWAYS("frozen", BOOL),
	END,
};

const struct coop_field coop_results_release[] = {
	ALWAYS("released", BOOL),
	{.name = "kill",
	 .type = COOP_FIELD_OBJECT,
	 .required = true,
	 .nullable = true,
	 .fields = proof_fields},
	END,
};

const struct coop_field coop_results_gc[] = {ALWAYS("released", INT), END};

static const struct coop_field histogram_fields[] = {
	{.name = "buckets", .type = COOP_FIELD_OBJECTS, .required = true},
	ALWAYS("count", INT),
	ALWAYS("sum", NUMBER),
	END,
};

const struct coop_field coop_results_metrics[] = {
	ALWAYS("started_at", STRING),
	ALWAYS("processes", OBJECT),
	ALWAYS("starts", INT),
	ALWAYS("start_failures", INT),
	ALWAYS("ends", OBJECT),
	OF("spawn_seconds", OBJECT, histogram_fields),
	OF("exit_seconds", OBJECT, histogram_fields),
	ALWAYS("bytes", OBJECT),
	ALWAYS("subscribers", INT),
	ALWAYS("gaps", INT),
	ALWAYS("protections", OBJECT),
	ALWAYS("memory", OBJECT),
	ALWAYS("fds", OBJECT),
	ALWAYS("connections", INT),
	ALWAYS("connections_waiting", INT),
	ALWAYS("connections_refused", INT),
	ALWAYS("connections_cut", INT),
	END,
};

static const struct coop_field left_out_fields[] = {
	ALWAYS("principal", STRING), ALWAYS("path", STRING), ALWAYS("reason", STRING), END};

const struct coop_field coop_results_info[] = {
	ALWAYS("version", STRING),
	ALWAYS("protocol", INT),
	ALWAYS("pid", INT),
	ALWAYS("guard_pid", INT),
	MAYBE_NULL("launcher", OBJECT),
	MAYBE_NULL("sandbox", OBJECT),
	ALWAYS("started_at", STRING),
	MAYBE_NULL("socket", STRING),
	MAYBE_NULL("gate", STRING),
	MAYBE_NULL("state_dir", STRING),
	ALWAYS("processes", OBJECT),
	MAYBE_NULL("connections", INT),
	MAYBE_NULL("subscribers", INT),
	MAYBE_NULL("memory", OBJECT),
	MAYBE_NULL("fds", OBJECT),
	MAYBE_NULL("wakeups", INT),
	ALWAYS("private", BOOL),
	ALWAYS("settings", OBJECT),
	ALWAYS("you", OBJECT),
	MAYBE_NULL("records", OBJECT),
	MAYBE_NULL("audit", OBJECT),
	MAYBE_NULL("configuration", OBJECT),
	{.name = "left_out",
	 .type = COOP_FIELD_OBJECTS,
	 .required = true,
	 .nullable = true,
	 .fields = left_out_fields,
	 .doc = "agents that could not be read"},
	END,
};

static const struct coop_field identity_fields[] = {ALWAYS("uid", INT), ALWAYS("gid", INT),
						    ALWAYS("how", STRING), END};

static const struct coop_field slots_fields[] = {
	ALWAYS("enabled", BOOL), ALWAYS("idle", INT),
	ALWAYS("kinds", INT),    ALWAYS("memory_bytes", INT),
	ALWAYS("filled", INT),   ALWAYS("taken", INT),
	ALWAYS("failed", INT),   END,
};

static const struct coop_field ceiling_fields[] = {
	MAYBE_NULL("profile", STRING),
	MAYBE_NULL("network", STRING),
	MAYBE_NULL("home", STRING),
	MAYBE_NULL("root", STRING),
	MAYBE_NULL("limits", OBJECT),
	ALWAYS("always_require", STRINGS),
	END,
};

static const struct coop_field credential_fields[] = {
	ALWAYS("path", STRING), ALWAYS("hidden", BOOL), ALWAYS("reason", STRING),
	ALWAYS("hard_links", INT), END};

const struct coop_field coop_results_doctor[] = {
	ALWAYS("protections", OBJECT),
	ALWAYS("host", OBJECT),
	ALWAYS("landlock_abi", INT),
	ALWAYS("cgroup", OBJECT),
	OF("identity", OBJECT, identity_fields),
	OF("slots", OBJECT, slots_fields),
	OF("at_most", OBJECT, ceiling_fields),
	ALWAYS("keeper", STRING),
	{.name = "credentials", .type = COOP_FIELD_OBJECTS, .fields = credential_fields},
	END,
};

const struct coop_field coop_results_shutdown[] = {ALWAYS("ended", INT), ALWAYS("survivors", INT),
						   END};

static const struct coop_field shell_fields[] = {
	ALWAYS("id", STRING),
	ALWAYS("label", STRING),
	ALWAYS("path", STRING),
	ALWAYS("available", BOOL),
	ALWAYS("supports_login", BOOL),
	ALWAYS("supports_interactive", BOOL),
	ALWAYS("default_args", STRINGS),
	ALWAYS("login_args", STRINGS),
	END,
};

const struct coop_field coop_results_shells[] = {
	OF("shells", OBJECTS, shell_fields),
	MAYBE_NULL("default", STRING),
	END,
};

static const struct coop_field op_fields[] = {
	ALWAYS("name", STRING),   ALWAYS("summary", STRING),
	ALWAYS("right", STRING),  ALWAYS("waits", BOOL),
	ALWAYS("data", INT),      ALWAYS("args", OBJECT),
	ALWAYS("result", OBJECT), END,
};

const struct coop_field coop_results_describe[] = {OF("operations", OBJECTS, op_fields), END};
