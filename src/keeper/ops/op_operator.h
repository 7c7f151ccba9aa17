/* Operations on what is on disk: the past, the audit, the configuration. */
#ifndef COOP_KEEPER_OP_OPERATOR_H
#define COOP_KEEPER_OP_OPERATOR_H

struct coop_err;
struct coop_keeper;
struct coop_request;

/* Questions to the disk, which wait for their turn. NULL without memory. */
struct coop_questions *coop_questions_new(void);

void coop_op_history(struct coop_request *request);
void coop_op_audit_tail(struct coop_request *request);
void coop_op_audit_verify(struct coop_request *request);
void coop_op_reload(struct coop_request *request);
/* Reads coop.conf again, and applies what it says. 0, or the error filled: then what held before
 * stays in force. */
int coop_reload(struct coop_keeper *keeper, struct coop_err *err);

#endif
