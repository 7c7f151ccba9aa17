/* The operation `wait_port`. */
#ifndef COOP_KEEPER_OP_PORT_H
#define COOP_KEEPER_OP_PORT_H

struct coop_keeper;
struct coop_observer;
struct coop_request;

/* Those who wait for a port. NULL without memory. */
struct coop_ports *coop_ports_new(struct coop_keeper *keeper);

void coop_op_wait_port(struct coop_request *request);

/* The end has been told: whoever waits for a port of it is answered. */
extern const struct coop_observer coop_port_observer;

#endif
