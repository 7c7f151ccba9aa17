/* Operations on the keeper itself. */
#include "interface/field_rows.h"
#include "interface/fields.h"
#include "interface/operations.h"

OPERATION(audit_tail, MANAGE, "the last lines of the audit", .waits = true,
	  ARGS(INT("count", 1, 10000, "so many lines; default 50", .letter = 'n')),
	  RESULT({.name = "lines", .type = COOP_FIELD_OBJECTS, .required = true}));

OPERATION(audit_verify, MANAGE, "whether the audit is whole", .waits = true,
	  ARGS(BOOL("acknowledge",
		    "forget what was missing when a keeper started, with a line that says so")),
	  RESULT(ALWAYS("good", BOOL), ALWAYS("lines", INT), ALWAYS("files", INT),
		 ALWAYS("first", INT), ALWAYS("last", INT), MAYBE_NULL("file", STRING),
		 MAYBE_NULL("line", INT), MAYBE_NULL("fault", STRING)));

OPERATION(reload, MANAGE, "read coop.conf again", .args = NOTHING,
	  RESULT(MAYBE_NULL("path", STRING)));

static const struct coop_field identity_fields[] = {ALWAYS("uid", INT), ALWAYS("gid", INT),
						    ALWAYS("how", STRING), END};

static const struct coop_field slots_fields[] = {
	ALWAYS("enabled", BOOL), ALWAYS("idle", INT),
	ALWAYS("kinds", INT),    ALWAYS("memory_bytes", INT),
	ALWAYS("filled", INT),   ALWAYS("taken", INT),
	ALWAYS("failed", INT),   END};

static const struct coop_field ceiling_fields[] = {MAYBE_NULL("profile", STRING),
						   MAYBE_NULL("network", STRING),
						   MAYBE_NULL("home", STRING),
						   MAYBE_NULL("root", STRING),
						   MAYBE_NULL("limits", OBJECT),
						   ALWAYS("always_require", STRINGS),
						   END};

static const struct coop_field credential_fields[] = {
	ALWAYS("path", STRING), ALWAYS("hidden", BOOL), ALWAYS("reason", STRING),
	ALWAYS("hard_links", INT), END};

OPERATION(doctor, LOOK, "what the sandbox can hold on this host",
	  ARGS(BOOL("credentials",
		    "also which credentials are in the homes, and whether they are hidden")),
	  RESULT(ALWAYS("protections", OBJECT), ALWAYS("host", OBJECT), ALWAYS("landlock_abi", INT),
		 ALWAYS("cgroup", OBJECT), OF("identity", OBJECT, identity_fields),
		 OF("slots", OBJECT, slots_fields), OF("at_most", OBJECT, ceiling_fields),
		 ALWAYS("keeper", STRING),
		 {.name = "credentials", .type = COOP_FIELD_OBJECTS, .fields = credential_fields}));

static const struct coop_field histogram_fields[] = {
	{.name = "buckets", .type = COOP_FIELD_OBJECTS, .required = true},
	ALWAYS("count", INT),
	ALWAYS("sum", NUMBER),
	END};

OPERATION(metrics, LOOK, "what happened since the keeper started", .args = NOTHING,
	  RESULT(ALWAYS("started_at", STRING), ALWAYS("processes", OBJECT), ALWAYS("starts", INT),
		 ALWAYS("start_failures", INT), ALWAYS("ends", OBJECT),
		 OF("spawn_seconds", OBJECT, histogram_fields),
		 OF("exit_seconds", OBJECT, histogram_fields), ALWAYS("bytes", OBJECT),
		 ALWAYS("subscribers", INT), ALWAYS("gaps", INT), ALWAYS("protections", OBJECT),
		 ALWAYS("memory", OBJECT), ALWAYS("fds", OBJECT), ALWAYS("connections", INT),
		 ALWAYS("connections_waiting", INT), ALWAYS("connections_refused", INT),
		 ALWAYS("connections_cut", INT)));

static const struct coop_field left_out_fields[] = {
	ALWAYS("principal", STRING), ALWAYS("path", STRING), ALWAYS("reason", STRING), END};

OPERATION(info, LOOK, "the keeper itself", .args = NOTHING,
	  RESULT(ALWAYS("version", STRING), ALWAYS("protocol", INT), ALWAYS("pid", INT),
		 ALWAYS("guard_pid", INT), MAYBE_NULL("launcher", OBJECT),
		 MAYBE_NULL("sandbox", OBJECT), ALWAYS("started_at", STRING),
		 MAYBE_NULL("socket", STRING), MAYBE_NULL("gate", STRING),
		 MAYBE_NULL("state_dir", STRING), ALWAYS("processes", OBJECT),
		 MAYBE_NULL("connections", INT), MAYBE_NULL("subscribers", INT),
		 MAYBE_NULL("memory", OBJECT), MAYBE_NULL("fds", OBJECT),
		 MAYBE_NULL("wakeups", INT), ALWAYS("private", BOOL), ALWAYS("settings", OBJECT),
		 ALWAYS("you", OBJECT), MAYBE_NULL("records", OBJECT), MAYBE_NULL("audit", OBJECT),
		 MAYBE_NULL("configuration", OBJECT),
		 {.name = "left_out",
		  .type = COOP_FIELD_OBJECTS,
		  .required = true,
		  .nullable = true,
		  .fields = left_out_fields,
		  .doc = "agents that could not be read"}));

OPERATION(shutdown, MANAGE, "end everything and leave", .waits = true,
	  ARGS(ARG_GRACE("for the processes; default 5000")),
	  RESULT(ALWAYS("ended", INT), ALWAYS("survivors", INT)));

static const struct coop_field shell_fields[] = {ALWAYS("id", STRING),
						 ALWAYS("label", STRING),
						 ALWAYS("path", STRING),
						 ALWAYS("available", BOOL),
						 ALWAYS("supports_login", BOOL),
						 ALWAYS("supports_interactive", BOOL),
						 ALWAYS("default_args", STRINGS),
						 ALWAYS("login_args", STRINGS),
						 END};

OPERATION(list_shells, LOOK, "shells for mode shell", .args = NOTHING,
	  RESULT(OF("shells", OBJECTS, shell_fields), MAYBE_NULL("default", STRING)));

static const struct coop_field op_fields[] = {ALWAYS("name", STRING),   ALWAYS("summary", STRING),
					      ALWAYS("right", STRING),  ALWAYS("waits", BOOL),
					      ALWAYS("data", INT),      ALWAYS("args", OBJECT),
					      ALWAYS("result", OBJECT), END};

OPERATION(describe, NONE, "this table", .args = NOTHING,
	  RESULT(OF("operations", OBJECTS, op_fields)));
