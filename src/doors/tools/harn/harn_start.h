/* How the harn operations start something: arguments that process.spawn, process.exec and
 * run_command have in common. */
#ifndef COOP_TOOLS_HARN_START_H
#define COOP_TOOLS_HARN_START_H

#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "interface/choices.h"

/* Rows of all of them; `command` has its own words in each. */
#define HARN_START_ROWS                                                                         \
	IN_ENUM("mode", coop_choices_mode, "argv: no shell; shell: command is a shell's line"), \
		ARG_ARGV("program and arguments"),                                              \
		ARG_CWD("where it runs; default: the workspace"), ARG_ENV("variables to set"),  \
		IN_ENUM("env_mode", coop_choices_env_mode, "what env is laid over (patch)"),    \
		ARG_ENV_REMOVE("variables to take away first"),                                 \
		ARG_TIMEOUT("it is killed then; 0 or none: no limit"),                          \
		IN_INT("timeout", 0, TOOL_MS_MAX, "the same as timeout_ms"),                    \
		IN_STRING("sandbox_profile", 128, "worktree, os_hardened or unrestricted")

/* And of those that run a command to its end. */
#define HARN_RUN_ROWS                                                                             \
	HARN_START_ROWS, ARG_SHELL("which shell; id or path"),                                    \
		IN_STRING("shell_id", 4096, "the same as shell"), ARG_LOGIN("as a login shell"),  \
		ARG_INTERACTIVE("as an interactive shell"),                                       \
		IN_STRING("stdin", COOP_SPAWN_STDIN_MAX, "its whole input"),                      \
		IN_ENUM("kind", coop_choices_kind, "pipe (default), or pty: on a terminal"),      \
	{                                                                                         \
		.name = "capture", .type = COOP_FIELD_OBJECT, .fields = coop_fields_harn_capture, \
		.doc = "what the result shows"                                                    \
	}

extern const struct coop_field coop_fields_harn_capture[];

/* What the operation itself decides. */
struct coop_harn_plan {
	const char *mode;  /* where the arguments name none */
	const char *lease; /* likewise */
	bool completion;   /* its end is told in the session's queue */
};

/* Starts what the call's arguments ask for, with its output on disk and its digest. 0 with the
 * record in *ret, the caller's; negative with call->error. -EPERM: policy does not let it start,
 * and *ret, the caller's too, is what policy says (docs/PROTOCOL.md, section 12). */
int coop_harn_start(struct coop_tool_call *call, const struct coop_harn_plan *plan, json_t **ret);

#endif
