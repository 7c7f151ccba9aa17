/* Waiting for the end of a process, with word to the caller meanwhile. */
#ifndef COOP_TOOLS_WAITING_H
#define COOP_TOOLS_WAITING_H

#include "doors/tools/core/call.h"

/* Waits for up to `wanted_ms` (negative: as long as it takes), but no longer than the call may.
 * *ret is the answer of the operation wait with up to `output_bytes` of each stream; its `running`
 * says whether it has ended. */
int coop_tool_wait_end(struct coop_tool_call *call, const char *id, int64_t wanted_ms,
		       size_t output_bytes, struct coop_tool_answer *ret);

/* The same once, without a word meanwhile: for up to `ms` (negative: no limit). `tidy`: what it
 * left behind has been cleared up, too. */
int coop_tool_wait_once(struct coop_tool_call *call, const char *id, int64_t ms,
			size_t output_bytes, bool tidy, struct coop_tool_answer *ret);

#endif
