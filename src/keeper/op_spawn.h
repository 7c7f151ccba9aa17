/* The operation `spawn`: checks everything, then starts. */
#ifndef COOP_KEEPER_OP_SPAWN_H
#define COOP_KEEPER_OP_SPAWN_H

struct coop_process;
struct coop_request;

void coop_op_spawn(struct coop_request *request);

/* Answers the request with the record of the started process. */
void coop_spawn_reply(struct coop_request *request, struct coop_process *process);

#endif
