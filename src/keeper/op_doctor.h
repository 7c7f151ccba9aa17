/* The operation `doctor`: what the sandbox can hold on this host, and what would have to change for more. */
#ifndef COOP_KEEPER_OP_DOCTOR_H
#define COOP_KEEPER_OP_DOCTOR_H

struct coop_request;

void coop_op_doctor(struct coop_request *request);

#endif
