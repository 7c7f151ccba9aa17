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

#endif
