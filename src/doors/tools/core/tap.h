/* Output of a process while it is written: a follow that knows where it is. Its functions run on
 * the loop, not in the fiber of the call: they take down what came, and say whether the fiber is to
 * be woken for it. */
#ifndef COOP_TOOLS_TAP_H
#define COOP_TOOLS_TAP_H

#include "doors/tools/core/call.h"

/* As a stream: all of them, in the order of arrival; offsets count the bytes of all. */
#define COOP_TAP_COMBINED "combined"

/* Embedded, and zeroed but for the first part. */
struct coop_tap {
	const char *stream;
	bool until_eof; /* goes on while descendants of a process that has ended hold the stream */
	bool hold;      /* the process waits rather than overwrite what has not been seen */
	/* Bytes from `at` on; and bytes that are lost, which is told before those behind them. */
	bool (*bytes)(struct coop_tap *tap, uint64_t at, const void *bytes, size_t size);
	bool (*gap)(struct coop_tap *tap, uint64_t from, uint64_t to);
	/* Nothing follows; may be NULL. */
	void (*ended)(struct coop_tap *tap);

	struct coop_tool_call *call;
	struct coop_tool_watch *watch;
	uint64_t next;    /* offset of the next byte */
	uint64_t present; /* where the output ended when the follow began */
	bool attached;    /* that is known */
	bool eof;         /* it had ended already */
	bool over;        /* nothing follows */
	int status;       /* negative: why, and call->error says it */
};

/* Begins to follow at `from` (all streams: at their beginning), anew if it does so already.
 * Negative with call->error filled. */
int coop_tap_open(struct coop_tap *tap, struct coop_tool_call *call, const char *id, uint64_t from);
/* Also one that was never opened. */
void coop_tap_close(struct coop_tap *tap);

/* All that had been written when it began has come. */
bool coop_tap_is_current(const struct coop_tap *tap);

#endif
