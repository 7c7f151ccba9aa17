/* Output of a process as text, by position. */
#ifndef COOP_TOOLS_HARN_OUTPUT_H
#define COOP_TOOLS_HARN_OUTPUT_H

#include "client/text.h"
#include "doors/tools/core/call.h"

/* What can be read: "combined" (all in order of arrival), "stdout", "stderr", "pty". */
extern const char *const coop_harn_sources[];

struct coop_harn_piece {
	struct coop_text text;
	uint64_t offset;  /* of its first byte: later than asked for if bytes are lost */
	uint64_t next;    /* where to read on */
	uint64_t total;   /* bytes so far */
	uint64_t dropped; /* lost ones between what was asked for and `offset` */
	bool eof;         /* nothing follows, ever */
};

/* Reads up to `length` bytes (1 at least) from `offset` on. A character is never split, and a whole
 * one is given even if it is longer than `length`. 0 with *ret, to be ended with
 * coop_harn_piece_clear(). */
int coop_harn_read(struct coop_tool_call *call, const char *id, const char *source, uint64_t offset,
		   size_t length, struct coop_harn_piece *ret);
void coop_harn_piece_clear(struct coop_harn_piece *piece);

#endif
