/* Output that the keeper has, and records, page after page. */
#ifndef COOP_TOOLS_READ_H
#define COOP_TOOLS_READ_H

#include "doors/tools/core/call.h"

/* What one question for output brought. */
struct coop_tool_piece {
	const char *bytes; /* not NULL, but of size 0 where nothing came */
	size_t size;
	uint64_t at, next;       /* offset of the first byte; where to go on */
	uint64_t total, dropped; /* bytes so far; those lost between what was asked for and `at` */
	bool eof, drained;       /* the stream has ended; and nothing follows what came */
	struct coop_tool_answer answer;
};

/* Asks for bytes of a stream ("output": of all in order of arrival). `args` says which (cursor,
 * tail or reader, and max), and is taken over; NULL: there was no memory for it. 0 with *ret, to be
 * ended with coop_tool_piece_clear(); it is zeroed on failure. */
int coop_tool_read(struct coop_tool_call *call, const char *id, const char *stream, json_t *args,
		   struct coop_tool_piece *ret);
void coop_tool_piece_clear(struct coop_tool_piece *piece);

/* Calls `take` with each record of the operation list, page after page, until it says other than 0:
 * that is the result. `args` choose them, and are taken over. */
int coop_tool_each_record(struct coop_tool_call *call, json_t *args,
			  int (*take)(void *user, const json_t *record), void *user);

#endif
