/* The operations about how things end: signal, kill, stop, release, keep, gc, shutdown. */
#ifndef COOP_KEEPER_OP_END_H
#define COOP_KEEPER_OP_END_H

struct coop_request;

void coop_op_signal(struct coop_request *request);
void coop_op_kill(struct coop_request *request);
void coop_op_stop(struct coop_request *request);
void coop_op_release(struct coop_request *request);
void coop_op_keep(struct coop_request *request);
void coop_op_gc(struct coop_request *request);
void coop_op_shutdown(struct coop_request *request);

#endif
