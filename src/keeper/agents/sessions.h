/* Sessions (owner/session.h): made, listed, and ended by request, by their time or with their
 * agent. */
#ifndef COOP_KEEPER_SESSIONS_H
#define COOP_KEEPER_SESSIONS_H

struct coop_agent;
struct coop_request;

/* Their agent goes, and their processes with it, by themselves. */
void coop_session_drop_all(struct coop_agent *agent);

void coop_op_session_new(struct coop_request *request);
void coop_op_session_end(struct coop_request *request);
void coop_op_session_list(struct coop_request *request);

#endif
