/* The operations `write_stdin`, `close_stdin` and `resize`. */
#ifndef COOP_KEEPER_OP_STDIN_H
#define COOP_KEEPER_OP_STDIN_H

#include <stdbool.h>
#include <stddef.h>

struct coop_request;

void coop_op_write_stdin(struct coop_request *request);
void coop_op_close_stdin(struct coop_request *request);
void coop_op_resize(struct coop_request *request);

#endif
