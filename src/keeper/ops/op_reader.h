/* The operation `reader`. */
#ifndef COOP_KEEPER_OP_READER_H
#define COOP_KEEPER_OP_READER_H

struct coop_request;

void coop_op_reader(struct coop_request *request);

#endif
