/* One open request of a connection: from its frame to its one answer. */
#ifndef COOP_KEEPER_REQUEST_H
#define COOP_KEEPER_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/list.h"
#include "interface/err.h"

struct coop_conn;
struct coop_keeper;
struct coop_op;
struct coop_process;
struct coop_kill_receipt;

struct coop_request {
	struct coop_keeper *keeper;
	struct coop_conn *conn; /* a request never outlives its connection */
	struct coop_link in_conn;
	uint64_t id;
	const struct coop_op *op;
	json_t *args; /* checked; NULL: none */
	uint8_t *data;
	size_t data_size, data_have;

	/* A request that waits: */
	struct coop_process *process;                  /* a reference, or NULL */
	void (*release)(struct coop_process *process); /* gives that back */
	struct coop_link in_process;                   /* in the list of whatever it waits for */
	/* There is room for a large answer. The callback answers. */
	void (*on_room)(struct coop_request *request);
	/* Time is up. The callback answers. */
	void (*on_timeout)(struct coop_request *request);
	/* The request goes unanswered by its operation (cancelled, connection lost): undo what
	 * hangs on it. */
	void (*on_drop)(struct coop_request *request);
	/* The kill that it awaits is over. The callback answers. */
	void (*on_killed)(struct coop_request *request, const struct coop_kill_receipt *receipt);
	void *state; /* the operation's own */
	uv_timer_t *timer;
	size_t mark; /* while an answer is being written */
	bool relief; /* likewise: whether the reserve of memory was in use before */
	/* By a thread, for this attempt to carry it out: see scouts.h. */
	bool looked_up, sockets_looked_up;
	bool sockets_missed;       /* they do not answer: it goes on without */
	bool programs_lost;        /* for want of memory */
	struct coop_buf programs;  /* paths that policies ask about, each with its NUL … */
	size_t programs_looked_up; /* … and how many bytes of them have been */
};

/* Starts an answer: the caller writes the members of the result, then calls coop_request_end(),
 * which frees the request. */
void coop_request_result(struct coop_request *request, struct coop_jsonw *ret_writer);
void coop_request_end(struct coop_request *request, struct coop_jsonw *writer);

/* Whether the answer that is being written is so large that what follows should go into another. */
bool coop_request_is_full(const struct coop_request *request);

/* Answers with an error and frees the request. */
void coop_request_fail(struct coop_request *request, const struct coop_err *err);

/* The same with further details: members as text with its NUL, without braces; may be empty. */
void coop_request_fail_details(struct coop_request *request, const struct coop_err *err,
			       const struct coop_buf *members);

/* The same, for want of memory. */
void coop_request_no_memory(struct coop_request *request);

/* Sends an event of this request: begin, write members, end. The request stays open. */
void coop_request_event(struct coop_request *request, const char *event,
			struct coop_jsonw *ret_writer);
void coop_request_event_end(struct coop_request *request, struct coop_jsonw *writer);

/* Sends bytes of a process, up to 1 MiB; `views` as of coop_ring_view. 0, or -ENOMEM with nothing
 * sent. */
struct iovec;
int coop_request_data(struct coop_request *request, unsigned stream, uint64_t offset,
		      uint64_t cursor, const struct iovec *views, int count);

/* on_timeout is called after `ms`, unless the request was answered before. 0 or -ENOMEM. */
int coop_request_timer(struct coop_request *request, uint64_t ms);

/* It is not called any more; a new one may be set. */
void coop_request_timer_stop(struct coop_request *request);

/* Frees it without an answer; on_drop is called first. */
void coop_request_drop(struct coop_request *request);

/* Arguments and bytes are not needed any more, though the answer is yet to come. */
void coop_request_forget_args(struct coop_request *request);

#endif
