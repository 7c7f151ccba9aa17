/* One condition of wait_any while it is waited for. */
#ifndef COOP_TOOLS_CONDITION_H
#define COOP_TOOLS_CONDITION_H

#include "doors/tools/core/hunt.h"

enum coop_condition_kind {
	COOP_CONDITION_EXIT,
	COOP_CONDITION_OUTPUT,
	COOP_CONDITION_SILENT,
	COOP_CONDITION_BYTES,
	COOP_CONDITION_PORT,
};

struct coop_condition {
	struct coop_tool_call *call;
	enum coop_condition_kind kind;
	char *id;
	json_t *record; /* as it was at the start */
	const char *stream;
	int64_t amount;      /* of the kind: ms, bytes, port */
	int64_t last_output; /* silent: monotonic ms */
	bool held, dead;     /* dead: it cannot hold any more */
	bool looked;         /* what was there at the start has been looked at */
	uint64_t present;    /* bytes of the stream at the start */
	int status;          /* negative: it cannot be waited for; call->error says why */
	struct coop_tool_watch *watch;
	struct coop_hunt hunt; /* output */
};

/* Which kind an element of `conditions` is; negative: none or several. */
int coop_condition_kind(const json_t *item);
const char *coop_condition_name(enum coop_condition_kind kind);

/* Begins to wait. Negative with call->error filled; it must be ended in any case. */
int coop_condition_begin(struct coop_tool_call *call, struct coop_condition *ret,
			 const json_t *item);
void coop_condition_end(struct coop_condition *condition);

/* Takes in what came, and what time alone makes true: silence, and a match that could only grow.
 * `last`: there is no later look. */
void coop_condition_look(struct coop_condition *condition, bool last);
/* When the next such look is due; negative: never. */
int64_t coop_condition_due(const struct coop_condition *condition);

/* Fills the error of one whose status is negative. */
int coop_condition_fail(struct coop_tool_call *call, const struct coop_condition *condition,
			size_t index);
/* How much its stream has now; null where that is not known. */
json_t *coop_condition_offset(const struct coop_condition *condition, const json_t *record);
/* Adds next_offset, and what was found. */
void coop_condition_result(struct coop_tool_call *call, const struct coop_condition *condition,
			   const json_t *record);

#endif
