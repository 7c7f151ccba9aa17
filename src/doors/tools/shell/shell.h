/* A shell session: a process with a terminal, and two places in its output that the keeper keeps
 * for the caller: how far it has been shown ("shell"), and where the next search begins ("expect").
 * A door that starts again goes on there. */
#ifndef COOP_TOOLS_SHELL_H
#define COOP_TOOLS_SHELL_H

#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"

#define COOP_SHELL_READ "shell"
#define COOP_SHELL_EXPECT "expect"

#define COOP_SHELL_SECS_MAX 300
#define COOP_SHELL_SECS 30

/* Row of a schema (fields.h). */
#define IN_SESSION IN_STRING_NEEDED("session_id", 512, NULL)

/* The record of the session that the argument session_id means; the caller's, NULL on failure. What
 * has no terminal is invalid_input. */
int coop_shell_find(struct coop_tool_call *call, json_t **ret);

/* One of the two places, as an offset in the stream pty. */
int coop_shell_place(struct coop_tool_call *call, const char *id, const char *name, uint64_t *ret);
int coop_shell_move(struct coop_tool_call *call, const char *id, const char *name, uint64_t to);

/* Types bytes. What the terminal did not take in time is not an error: *ret_written says how much
 * it took. */
int coop_shell_send(struct coop_tool_call *call, const char *id, const char *bytes, size_t size,
		    size_t *ret_written);

/* Sends a signal (name or number; NULL: SIGINT) to what runs in the terminal's foreground. *ret is
 * the keeper's result, the caller's. */
int coop_shell_signal(struct coop_tool_call *call, const char *id, const json_t *signal,
		      json_t **ret);

#endif
