/* Ending a process, or sending it a signal, and waiting for what comes of it. */
#ifndef COOP_HTTP_STOP_H
#define COOP_HTTP_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "doors/http/runtime/ask.h"

#define COOP_STOP_GRACE_MOST_MS 86400000

/* To be filled in up to and with `stopped`. */
struct coop_stop {
	struct coop_ask ask; /* first; its `id` is set */
	int signal;
	bool group;       /* the whole tree */
	int64_t grace_ms; /* -1: it is not killed afterwards */
	/* It has ended, or its time is over: the keeper's result has its record, and after a kill
	 * (`killing`) what is left of the tree. */
	void (*stopped)(struct coop_stop *stop, const json_t *result);
	bool killing;
};

/* Begins, with a process that has not ended. */
void coop_stop_begin(struct coop_stop *stop);

#endif
