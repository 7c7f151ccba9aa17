/* Operations on agents, their ceilings and their tokens. */
#include "interface/bounds.h"
#include "interface/field_rows.h"
#include "interface/fields.h"
#include "interface/operations.h"

#define AGENT_SETTINGS                                                                            \
	INT("max_running", 0, 1000000, "live processes, those of agents below included"),         \
		BYTES("max_buffer_bytes", 0, COOP_POSITION_MAX, "memory for output, likewise"),   \
		INT("max_finished", 1, 1000000, "finished records kept in full"),                 \
		BOOL("persistent", "may start what outlives its session"),                        \
		BOOL("restricted", "may not set variables that change what programs load"),       \
		STRINGS("workspace", COOP_WORKSPACE_MAX,                                          \
			"directories that working directories must lie in", .form = "FOLDER"),    \
		OBJECT("policy", NULL, "what it may run"),                                        \
		OBJECT("sandbox", coop_sandbox_fields,                                            \
		       "the most that its processes and those of agents below may have"),         \
		OBJECT("limits", coop_limits_fields,                                              \
		       "likewise; memory_bytes, cpu_quota and max_pids of all of them together"), \
		ARG_ENV("variables that its processes begin with; never shown",                   \
			.form = "NAME=VALUE"),                                                    \
		MAP("metadata", COOP_AGENT_METADATA_MAX, "words of whoever makes it",             \
		    .form = "KEY=VALUE"),                                                         \
		MS("expires_in_ms", 1, COOP_MS_MAX, "it is removed then; default: never",         \
		   .option = "expires")

OPERATION(login, NONE, "act as a token's agent, or as one below this",
	  ARGS(STRING("token", 256, "its agent; or"),
	       AGENT("this one or one below it, by its path")),
	  RESULT(ALWAYS("principal", STRING), ALWAYS("agent", STRING), ALWAYS("operator", BOOL)));

OPERATION(ceiling, LOOK, "nothing asked for from now on is wider than this",
	  ARGS(OBJECT("sandbox", coop_sandbox_fields, "what a command may do at most"),
	       OBJECT("limits", coop_limits_fields, "how much of the host it may use at most")),
	  RESULT(MAYBE_NULL("sandbox", OBJECT), MAYBE_NULL("limits", OBJECT)));

static const struct coop_field agent_fields[] = {ALWAYS("id", INT),
						 ALWAYS("principal", STRING),
						 ALWAYS("path", STRING),
						 ALWAYS("name", STRING),
						 ALWAYS("created_at", STRING),
						 ALWAYS("settings", OBJECT),
						 ALWAYS("effective", OBJECT),
						 ALWAYS("use", OBJECT),
						 ALWAYS("tokens", INT),
						 ALWAYS("env_names", STRINGS),
						 ALWAYS("metadata", MAP),
						 MAYBE_NULL("expires_at", STRING),
						 MAYBE_NULL("folder", STRING),
						 END};

static const struct coop_field agent_result[] = {OF("agent", OBJECT, agent_fields), END};

OPERATION(agent_add, USE, "make an agent below this one", .waits = true,
	  ARGS(AGENT_NEEDED, PRINCIPAL, AGENT_SETTINGS,
	       BOOL("folder", "it gets a folder of its own to work in, which goes with it")),
	  .result = agent_result);

OPERATION(agent_list, LOOK, "this agent and those below it",
	  ARGS(PRINCIPAL, STRING("after", AGENT_MAX, "go on after this one")),
	  RESULT(OF("agents", OBJECTS, agent_fields), ALWAYS("more", BOOL)));

OPERATION(agent_show, LOOK, "one agent", ARGS(AGENT_NEEDED, PRINCIPAL), .result = agent_result);

OPERATION(agent_set, USE, "change what an agent below this one may", .waits = true,
	  ARGS(AGENT_NEEDED, PRINCIPAL, AGENT_SETTINGS), .result = agent_result);

OPERATION(agent_remove, USE, "end an agent and all that it and those below it own", .waits = true,
	  ARGS(AGENT_NEEDED, PRINCIPAL, ARG_GRACE("between SIGTERM and the kill; default 0")),
	  RESULT(ALWAYS("agents", INT), ALWAYS("ended", INT), ALWAYS("survivors", INT)));

OPERATION(token_new, USE, "a token for an agent", .waits = true,
	  ARGS(AGENT("default: this one"), PRINCIPAL,
	       STRING("label", TEXT_MAX, "for reading", .form = "TEXT"),
	       MS("expires_in_ms", 1, COOP_MS_MAX, "default: never", .option = "expires")),
	  RESULT(ALWAYS("token", STRING), ALWAYS("id", INT), ALWAYS("agent", STRING),
		 MAYBE_NULL("expires_at", STRING)));

static const struct coop_field token_fields[] = {ALWAYS("id", INT),
						 ALWAYS("agent", STRING),
						 MAYBE_NULL("label", STRING),
						 ALWAYS("created_at", STRING),
						 MAYBE_NULL("expires_at", STRING),
						 END};

OPERATION(token_list, LOOK, "tokens, without what they are",
	  ARGS(AGENT("this one and below"), PRINCIPAL),
	  RESULT(OF("tokens", OBJECTS, token_fields)));

OPERATION(token_revoke, USE, "make a token worthless", .waits = true,
	  ARGS(INT("id", 1, COOP_POSITION_MAX, "its number in token_list", .required = true)),
	  RESULT(ALWAYS("revoked", BOOL)));

static const struct coop_field stored_folder[] = {
	STRING("in", TEXT_MAX, "the data folder that it lies in"),
	STRING("mark", COOP_AGENT_FOLDER_MARK, "what proves that it is ours"), END};

/* Not of an operation: what the database keeps of an agent. */
const struct coop_field coop_fields_agent_stored[] = {
	AGENT_SETTINGS,
	INT("expires_at", 1, COOP_POSITION_MAX, "milliseconds since 1970", .unit = COOP_UNIT_TIME),
	OBJECT("folder", stored_folder, NULL), END};
