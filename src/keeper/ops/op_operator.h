/* Operations on what is on disk: the past, the audit, the configuration. */
#ifndef COOP_KEEPER_OP_OPERATOR_H
#define COOP_KEEPER_OP_OPERATOR_H

struct coop_keeper;
struct coop_request;

/* Questions to the disk wait for their turn. Called before the loop sleeps. */
void coop_questions_go_on(struct coop_keeper *keeper);

void coop_op_history(struct coop_request *request);
void coop_op_audit_tail(struct coop_request *request);
void coop_op_audit_verify(struct coop_request *request);
void coop_op_reload(struct coop_request *request);

#endif
