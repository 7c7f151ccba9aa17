/* The operations that end things: signal, kill, stop, release, gc, shutdown. */
#ifndef COOP_KEEPER_OP_END_H
#define COOP_KEEPER_OP_END_H

struct coop_request;

void coop_op_signal(struct coop_request *request);
void coop_op_kill(struct coop_request *request);
void coop_op_stop(struct coop_request *request);
void coop_op_release(struct coop_request *request);
void coop_op_gc(struct coop_request *request);
void coop_op_shutdown(struct coop_request *request);

#endif
