/* The operation `doctor`: what the sandbox can hold on this host, and what would have to change for
 * more. */
#ifndef COOP_KEEPER_OP_DOCTOR_H
#define COOP_KEEPER_OP_DOCTOR_H

#include "base/json/jsonw.h"

struct coop_keeper;
struct coop_request;

/* How far each protection holds, by its name: what `doctor` says, without reasons. An empty object
 * without memory. */
void coop_doctor_write_states(struct coop_keeper *keeper, struct coop_jsonw *w, const char *name);

void coop_op_doctor(struct coop_request *request);

#endif
