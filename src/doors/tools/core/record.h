/* What the record of a process says (docs/PROTOCOL.md, section 6), and results that tell it. */
#ifndef COOP_TOOLS_RECORD_H
#define COOP_TOOLS_RECORD_H

#include "doors/tools/core/call.h"

/* A member that is a number; 0 where there is none, or a negative one. */
uint64_t coop_tool_number(const json_t *object, const char *name);
/* A member as a value of the caller's; null where there is none. */
json_t *coop_tool_member(const json_t *object, const char *name);

/* Which no other process will ever have. */
const char *coop_tool_record_id(const json_t *record);
/* Whether it belongs to the caller itself, not to an agent below it. */
bool coop_tool_is_own(const json_t *record);
bool coop_tool_is_over(const json_t *record); /* its end has come */

/* How a stream is; NULL: it has none of that name. */
const json_t *coop_tool_stream(const json_t *record, const char *name);
/* Bytes that a stream brought so far. */
uint64_t coop_tool_stream_end(const json_t *record, const char *name);
/* The same of all of them. */
uint64_t coop_tool_record_bytes(const json_t *record);

/* Names of streams on the wire, by enum coop_stream. */
extern const char *const coop_tool_streams[];
/* The stream that is meant where none is named: of a terminal pty, else stdout. */
enum coop_stream coop_tool_main_stream(const json_t *record);

/* Adds pid and id of a record to the result. */
void coop_tool_set_process(struct coop_tool_call *call, const json_t *record);
/* Adds exit_code, signal (name) and end_cause of a record. `none` is the exit_code where there is
 * none: a negative number, or 0 for null. */
void coop_tool_set_end(struct coop_tool_call *call, const json_t *record, int none);
/* synwire's words: "running", "stopped", "exited(0)", "signaled(15)", "unknown" (B-020). */
json_t *coop_tool_status(const json_t *record);

#endif
