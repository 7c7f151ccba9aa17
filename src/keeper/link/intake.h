/* What a client sends: frames into requests, and requests to their operations. */
#ifndef COOP_KEEPER_INTAKE_H
#define COOP_KEEPER_INTAKE_H

struct coop_conn;
struct coop_request;

/* Takes the whole frames that have arrived, as far as the connection has room for their answers. */
void coop_intake(struct coop_conn *conn);

/* A frame that is not larger is received and read with the help of the reserve of memory: it may
 * ask for something that gives memory back. */
#define COOP_INTAKE_RELIEF_MAX (64u << 10)

/* A whole request is carried out, be it for the first time or again from its beginning. */
void coop_intake_again(struct coop_request *request);

#endif
