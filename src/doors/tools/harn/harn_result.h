/* What a command came to, as the harn operations tell it. All fields are there in every status,
 * null where one does not apply (B-148). */
#ifndef COOP_TOOLS_HARN_RESULT_H
#define COOP_TOOLS_HARN_RESULT_H

#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"

#define HARN_STREAM_ROWS(n)                                                     \
	OUT_STRING_NULL(n), OUT_INT_NULL(n "_bytes"), OUT_BOOL(n "_truncated"), \
		OUT_BOOL(n "_utf8_valid")

#define HARN_RESULT_ROWS                                                                         \
	OUT_STRING_NULL("command_id"), OUT_STRING("status"), OUT_BOOL("running"),                \
		OUT_INT_NULL("pid"), OUT_INT_NULL("process_group_id"),                           \
		OUT_STRING_NULL("handle_id"), OUT_STRING_NULL("started_at"),                     \
		OUT_STRING_NULL("ended_at"), OUT_INT_NULL("duration_ms"),                        \
		OUT_INT_NULL("exit_code"), OUT_STRING_NULL("signal"),                            \
		OUT_STRING_NULL("end_cause"), OUT_BOOL("timed_out"), HARN_STREAM_ROWS("stdout"), \
		HARN_STREAM_ROWS("stderr"), OUT_STRING_NULL("output_path"),                      \
		OUT_STRING_NULL("stdout_path"), OUT_STRING_NULL("stderr_path"),                  \
		OUT_INT_NULL("line_count"), OUT_INT_NULL("byte_count"),                          \
		OUT_STRING_NULL("output_sha256"),                                                \
		{.name = "sandbox", .type = COOP_FIELD_OBJECT, .nullable = true},                \
		OUT_STRING_NULL("audit_id"), OUT_STRING("hint")

extern const struct coop_field coop_fields_harn_result[];

/* How much of each stream is shown, by enum coop_stream. */
struct coop_harn_show {
	size_t most[4];
	bool hidden[4]; /* null instead of text */
};

/* What fits into the call's result, and what its `capture` says, if it has one. */
struct coop_harn_show coop_harn_show(const struct coop_tool_call *call);

/* Waits for the end of a process for up to `wanted_ms` (negative: as long as it takes), at most
 * until the call must answer, with the beginning of its output as far as it is shown. ret->json is
 * the answer of the operation wait; ret->data begin at offset 0, unless the beginning is lost. */
int coop_harn_wait(struct coop_tool_call *call, const char *id, int64_t wanted_ms,
		   const struct coop_harn_show *show, struct coop_tool_answer *ret);

/* The same for a process of the call's own, of which the result is told. One that has ended is let
 * go; another goes on in the background, with `completion` such that next_completions tells its
 * end. */
int coop_harn_see_off(struct coop_tool_call *call, const char *id, int64_t wanted_ms,
		      bool completion, const struct coop_harn_show *show,
		      struct coop_tool_answer *ret);

/* The result as an object of the caller's; NULL without memory. `answer` NULL: nothing is known of
 * its output yet. */
json_t *coop_harn_result(const json_t *record, const struct coop_tool_answer *answer,
			 const struct coop_harn_show *show);
/* The same as it is polled (B-147): fewer fields, B-020's words for the status. */
json_t *coop_harn_poll(const json_t *record, const struct coop_tool_answer *answer,
		       const struct coop_harn_show *show);

/* A start that came to nothing, with what coop_harn_start() gave (taken over). What policy blocked,
 * or what could not be executed, is a result too (B-100): it becomes call->result, and 0 is
 * returned. Everything else stays the error that it is: `status` again. */
int coop_harn_refused(struct coop_tool_call *call, int status, json_t *verdict);

/* "completed", "running", "timed_out", "killed" or "spawn_failed". */
const char *coop_harn_status(const json_t *record);

/* Makes an object the call's result. NULL: there was no memory. */
int coop_harn_answer(struct coop_tool_call *call, json_t *object);

#endif
