/* Lines of a stream that match a pattern: how a failure is found in long output without reading
 * it. */
#ifndef COOP_TOOLS_GREP_H
#define COOP_TOOLS_GREP_H

#include "doors/tools/core/call.h"

/* Arguments `grep`, `context`, `offset` and `length` (of the text that is shown) of the call. Fills
 * the result of read_process_output: `content` has the lines with those around them, groups apart
 * by a line "--"; `match_offsets` says where the lines are, `next_offset` where to go on if not all
 * fitted. */
int coop_tool_grep(struct coop_tool_call *call, const char *id, const json_t *record,
		   const char *stream);

#endif
