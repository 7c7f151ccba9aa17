/* The operation `spawn`: checks everything, then starts. */
#ifndef COOP_KEEPER_OP_SPAWN_H
#define COOP_KEEPER_OP_SPAWN_H

struct coop_err;
struct coop_keeper;
struct coop_request;

void coop_op_spawn(struct coop_request *request);

/* `check`: what a spawn would do, without doing it. */
void coop_op_check(struct coop_request *request);

/* A spawn whose arguments do not even have the right types is an attempt, too. */
void coop_op_spawn_invalid(struct coop_request *request, const struct coop_err *err);

/* The keeper leaves, and nothing runs any more: starts that wait for a disk or a lookup are
 * refused. */
void coop_op_spawn_stopping(struct coop_keeper *keeper);

#endif
