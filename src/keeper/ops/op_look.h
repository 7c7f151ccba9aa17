/* The operations that only look: list, status, info, list_shells, describe. */
#ifndef COOP_KEEPER_OP_LOOK_H
#define COOP_KEEPER_OP_LOOK_H

struct coop_request;

void coop_op_list(struct coop_request *request);
void coop_op_status(struct coop_request *request);
void coop_op_info(struct coop_request *request);
void coop_op_list_shells(struct coop_request *request);
void coop_op_describe(struct coop_request *request);
void coop_op_metrics(struct coop_request *request);

#endif
