/* Output of processes as models get it: text without escape sequences and overwritten lines, within
 * a budget, with what is left out named. */
#ifndef COOP_TOOLS_OUTPUT_H
#define COOP_TOOLS_OUTPUT_H

#include "doors/tools/core/call.h"

/* Most rows of a list. */
#define COOP_TOOL_ROWS 500

/* A piece of a stream as text. */
struct coop_rendered {
	char *text; /* valid UTF-8 */
	size_t size;
	uint64_t next;   /* where the rest of the stream begins: behind what the text shows */
	bool utf8_valid; /* nothing had to be replaced */
};

/* Renders bytes that begin at `offset`. `raw`: only made valid UTF-8. Not `last`: what is not
 * complete at the end is held back. 0 or -ENOMEM. */
int coop_tool_render(const void *bytes, size_t size, uint64_t offset, bool raw, bool last,
		     struct coop_rendered *ret);

/* The last line that is not empty, cut to `max` bytes. NULL without memory. */
json_t *coop_tool_last_line(const char *bytes, size_t size, size_t max);

/* Head and tail of a stream within `budget` bytes, as members of the result: NAME (the text),
 * NAME_bytes (all that was printed), NAME_truncated, and where something is missing NAME_omitted
 * {"from", "to"}: read_process_output with that offset gives it. NAME_utf8_valid false where bytes
 * are no text. `head` are bytes of the stream from offset `at` on that have come already; more is
 * read where they do not suffice. Streams that the record has not are left out. */
int coop_tool_add_excerpt(struct coop_tool_call *call, const json_t *record,
			  enum coop_stream stream, const struct coop_buf *head, uint64_t at,
			  size_t budget);
/* The same for all streams of the record, from the answer to a wait with output_bytes. */
int coop_tool_add_output(struct coop_tool_call *call, const json_t *record,
			 const struct coop_tool_answer *answer, size_t budget);

#endif
