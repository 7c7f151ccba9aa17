/* The operation `cancel`. */
#ifndef COOP_KEEPER_OP_CANCEL_H
#define COOP_KEEPER_OP_CANCEL_H

struct coop_request;

void coop_op_cancel(struct coop_request *request);

#endif
