/* The operation `read`: retained output from a position, by stream or (combined) by event. */
#ifndef COOP_KEEPER_OP_READ_H
#define COOP_KEEPER_OP_READ_H

struct coop_request;

void coop_op_read(struct coop_request *request);

#endif
