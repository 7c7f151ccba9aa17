/* A call of a tool while it is carried out: what handlers use. Handlers read from top to bottom: a
 * function here that waits suspends the handler's fiber until there is an answer, and the loop goes
 * on with others.
 *
 * When the caller gives up, whatever waits (or is asked afterwards) returns -ECANCELED; the handler
 * frees what it has and returns that. A handler's stack is COOP_FIBER_STACK bytes: large things go
 * to the heap. */
#ifndef COOP_TOOLS_CALL_H
#define COOP_TOOLS_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "coop.h"
#include "doors/tools/core/tool.h"

/* How the door that offers the tools has been set up. Lives longer than every call. NULL and 0: not
 * said. */
struct coop_tool_setup {
	const char *profile;      /* sandbox.profile of what is started */
	const char *workspace;    /* sandbox.workspace */
	const char *cwd;          /* where commands start */
	const char *session;      /* whose they are */
	json_t *base_env;         /* what the door offers as base environment */
	int64_t max_wait_ms;      /* every call answers before; 0: no bound (the command line) */
	int64_t max_inline_bytes; /* of one stream in a result; 0: COOP_TOOL_INLINE */
};

#define COOP_TOOL_INLINE 50000

struct coop_tool_call {
	const struct coop_tool *tool;
	const struct coop_tool_setup *setup;
	json_t *args;   /* an object, checked */
	json_t *result; /* an empty object at first */
	bool failed;    /* carried out, and the answer is no (exit code not 0, no match, …) */
	struct coop_error error;
};

/* What an operation of the keeper brought. */
struct coop_tool_answer {
	json_t *json; /* the result, an object */
	/* Bytes by enum coop_stream. `at` is the offset of the first, where there is one. */
	struct coop_buf data[4];
	uint64_t at[4];
	struct coop_buf order; /* all of them, in order of arrival */
};

void coop_tool_answer_clear(struct coop_tool_answer *answer);

/* Asks the keeper (docs/PROTOCOL.md) and waits for the answer. `args` is taken over; NULL means
 * that there was no memory for it, and is an error. 0 with *ret (may be NULL) the caller's, to be
 * ended with coop_tool_answer_clear(); it is zeroed on failure. Negative with call->error filled:
 * -EREMOTEIO for a refusal of the keeper. */
int coop_tool_ask(struct coop_tool_call *call, const char *op, json_t *args,
		  struct coop_tool_answer *ret);
/* The same with bytes for it. */
int coop_tool_ask_data(struct coop_tool_call *call, const char *op, json_t *args, const void *data,
		       size_t size, struct coop_tool_answer *ret);

/* Starts a process with `args` of the operation spawn, to which the setup's profile, workspace,
 * session, folder and environment are added where they say nothing of it. With lease "ephemeral"
 * the process is the call's own: it is ended (cause cancelled) when the caller gives up, until
 * coop_tool_keep() lets it go on. *ret_record is the record, the caller's. */
int coop_tool_spawn(struct coop_tool_call *call, json_t *args, const void *input, size_t input_size,
		    json_t **ret_record);
/* Writes to the process's stdin, or types into its terminal. A program that does not read is waited
 * for a while; that not all was taken by then is no error: *ret_written says how much was.
 * `secret`: doors do not show it. */
int coop_tool_write(struct coop_tool_call *call, const char *id, const void *bytes, size_t size,
		    bool secret, size_t *ret_written);
/* It outlives the call and its connection from now on. */
int coop_tool_keep(struct coop_tool_call *call, const char *id);
/* The call's own process has ended: there is nothing to be cancelled any more. */
void coop_tool_let_go(struct coop_tool_call *call);

/* An operation that tells more than its answer (follow), or one of several that are waited for at a
 * time. Its functions run on the loop, not in the fiber: they only take down what came and call
 * coop_tool_wake(). Any may be NULL. */
struct coop_tool_listener {
	void (*data)(void *context, const struct coop_chunk *chunk);
	void (*event)(void *context, const char *json);
	/* As of struct coop_handler. The watch is over then, and must still be closed. */
	void (*done)(void *context, int status, const char *json, const struct coop_error *error);
	void *context;
};

struct coop_tool_watch;
/* `args` is taken over. 0 with *ret the caller's. Every one is closed before the handler
 * returns. */
int coop_tool_open(struct coop_tool_call *call, const char *op, json_t *args,
		   const struct coop_tool_listener *listener, struct coop_tool_watch **ret);
void coop_tool_close(struct coop_tool_watch *watch); /* NULL is fine */

/* Monotonic milliseconds. */
int64_t coop_tool_now(void);
/* Suspends until coop_tool_wake() is called (0; also if that happened since the last pause), until
 * the time `until` (-ETIME; negative: no limit), or until the caller gives up (-ECANCELED). */
int coop_tool_pause(struct coop_tool_call *call, int64_t until);
void coop_tool_wake(struct coop_tool_call *call);

/* When a wait of `wanted_ms` (negative: as long as it takes) must end such that the call still
 * answers in time: a value for coop_tool_pause(); negative: no limit. */
int64_t coop_tool_until(const struct coop_tool_call *call, int64_t wanted_ms);
/* The same as a number of milliseconds from now, for timeout_ms of an operation; negative: no
 * limit. */
int64_t coop_tool_patience(const struct coop_tool_call *call, int64_t wanted_ms);
/* Bytes of one stream that fit into the result. */
size_t coop_tool_inline(const struct coop_tool_call *call);

/* Tells the caller, if it wants to know, how things are ("12 s, 3 KiB of output"). */
void coop_tool_progress(struct coop_tool_call *call, const char *message);
/* Whether it wants to know. */
bool coop_tool_wants_progress(const struct coop_tool_call *call);

/* Fills call->error and returns -EINVAL, so that failing is one statement. `field` NULL: none. The
 * text says what is wrong and what would be right; what to call next is added from the code
 * (advice.h). */
int coop_tool_fail(struct coop_tool_call *call, const char *code, const char *field,
		   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Checks the objects of a list argument, as those of `input` are: 0, or the error names the
 * element. */
int coop_tool_check_list(struct coop_tool_call *call, const char *name,
			 const struct coop_field *fields);
/* -ENOMEM, with the error filled. */
int coop_tool_no_memory(struct coop_tool_call *call);

/* Adds to call->result; takes over `value` (NULL: there was no memory, which is remembered and
 * makes the call fail). */
void coop_tool_set(struct coop_tool_call *call, const char *name, json_t *value);
/* Text of any bytes: what is not UTF-8 becomes U+FFFD. */
json_t *coop_tool_text(const void *bytes, size_t size);

#endif
