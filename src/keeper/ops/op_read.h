/* The operation `read`: retained output from a position, by stream or (combined) by event. */
#ifndef COOP_KEEPER_OP_READ_H
#define COOP_KEEPER_OP_READ_H

#include <jansson.h>

#include "interface/err.h"

struct coop_process;
struct coop_request;
struct coop_outlet;

/* The output that the argument `stream` means; NULL for `combined`. 0, or the error filled: the
 * process has no such. */
int coop_read_stream(struct coop_process *process, const json_t *args,
		     struct coop_outlet **ret_stream, struct coop_err *err);

/* Whether it can be a reader's name. 0, or the error filled. */
int coop_read_reader_name(const char *name, struct coop_err *err);

/* Reads with stream `output` (op_read_output.c). The process is held by the request. */
void coop_read_output(struct coop_request *request);
/* Whether the process has it, and nothing is asked for that does not go with it. 0, or the error
 * filled. */
int coop_read_check_output(const struct coop_process *process, const json_t *args,
			   struct coop_err *err);

void coop_op_read(struct coop_request *request);

#endif
