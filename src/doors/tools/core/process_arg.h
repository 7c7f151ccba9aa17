/* The process that a tool is about: `pid` takes an OS pid or an id, `session_id` and `handle_id` an
 * id. */
#ifndef COOP_TOOLS_PROCESS_ARG_H
#define COOP_TOOLS_PROCESS_ARG_H

#include "doors/tools/core/call.h"

/* The id that argument `name` of the call means, as a new string of the caller's. An integer is
 * looked for among the records that the caller may see: the live one with that pid, else the latest
 * that had it. Negative: no_such_process in call->error. */
int coop_tool_id(struct coop_tool_call *call, const char *name, char **ret);

/* The same for a value that stands elsewhere. */
int coop_tool_id_of(struct coop_tool_call *call, const char *name, const json_t *value, char **ret);

/* The record of the process that argument `name` means, found likewise; the caller's. */
int coop_tool_process(struct coop_tool_call *call, const char *name, json_t **ret);

/* The record of one whose id is known, now. */
int coop_tool_record(struct coop_tool_call *call, const char *id, json_t **ret);

/* Which no other process will ever have. */
const char *coop_tool_record_id(const json_t *record);

/* Adds pid and id of a record to the result. */
void coop_tool_set_process(struct coop_tool_call *call, const json_t *record);
/* Adds exit_code, signal (name) and end_cause of a record. `none` is the exit_code where there is
 * none: a negative number, or 0 for null. */
void coop_tool_set_end(struct coop_tool_call *call, const json_t *record, int none);
/* synwire's words: "running", "stopped", "exited(0)", "signaled(15)", "unknown" (B-020). */
json_t *coop_tool_status(const json_t *record);
bool coop_tool_is_over(const json_t *record); /* its end has come */
/* Bytes that all of its streams brought so far. */
uint64_t coop_tool_record_bytes(const json_t *record);

#endif
