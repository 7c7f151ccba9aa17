/* The operation `wait`. */
#ifndef COOP_KEEPER_OP_WAIT_H
#define COOP_KEEPER_OP_WAIT_H

struct coop_observer;
struct coop_request;

void coop_op_wait(struct coop_request *request);

/* The end has been told, or what was left then is gone: everybody who waits for no more than that
 * is answered. */
extern const struct coop_observer coop_wait_observer;

#endif
