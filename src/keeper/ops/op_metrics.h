/* The operation `metrics`. */
#ifndef COOP_KEEPER_OP_METRICS_H
#define COOP_KEEPER_OP_METRICS_H

struct coop_request;

void coop_op_metrics(struct coop_request *request);

#endif
