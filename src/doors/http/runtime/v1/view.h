/* The keeper's record of a process as /runtime/v1 shows it: the names, numbers and words of that
 * view, in one place. */
#ifndef COOP_HTTP_V1_VIEW_H
#define COOP_HTTP_V1_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json/jsonw.h"

#define COOP_VIEW_ERROR_MAX 640
/* How a process ended of which nobody knows how. */
#define COOP_VIEW_LOST_CODE 255

struct coop_process_view {
	const json_t *record; /* everything below lies in it */
	const char *id;       /* the keeper's */
	/* what clients call it: its alias if that can be an address, else the id */
	const char *name;
	bool hidden; /* the gateway's own: for clients it is not there */
	bool ended;  /* and all its output is known */
	bool receipt;
	uint64_t first_event, next_event; /* next_event counts the exit */
	uint64_t exit_cursor;             /* once it has ended */
	/* Once it has ended; before that "running". */
	const char *status;
	int exit_code;
	char error[COOP_VIEW_ERROR_MAX]; /* "": none */
};

/* Looks at a record; false if it is none. The record must outlive the view. */
bool coop_process_view_read(struct coop_process_view *view, const json_t *record);

/* The record as P. */
void coop_process_view_write(const struct coop_process_view *view, struct coop_jsonw *w,
			     const char *name);
/* Members `status`, `exit_code`, `error`; the latter two are null while it runs. */
void coop_process_view_write_end(const struct coop_process_view *view, struct coop_jsonw *w);

/* The members of the message `exit`, about a process that clients call `name`. */
void coop_process_view_write_exit(const struct coop_process_view *view, struct coop_jsonw *w,
				  const char *name, uint64_t cursor);

/* Sum of the bytes that its streams have brought, and that of one ("stdout"). */
uint64_t coop_process_view_total(const struct coop_process_view *view);
uint64_t coop_process_view_stream(const struct coop_process_view *view, const char *stream,
				  const char *member);
/* Whether any output is not kept any more. */
bool coop_process_view_evicted(const struct coop_process_view *view);

/* Replaces the error's text, which is made fit for clients. */
void coop_process_view_explain(struct coop_process_view *view, const char *text);

/* Whether a name has the form of the keeper's ids (psh-1a2f-17). */
bool coop_process_is_id(const char *name);

/* What the keeper calls a process that a client calls `name`: "psh-1a2f-17", "alias:web". A new
 * string. NULL without memory, or (`*ret_none`) when there can be no such process. */
char *coop_process_address(const char *name, bool *ret_none);

/* The number of a signal that a client names, by name or number; -EINVAL. */
int coop_process_signal(const json_t *value);

#endif
