/* All connections of clients, when there are too many or they are to go. */
#ifndef COOP_HTTP_CONNS_H
#define COOP_HTTP_CONNS_H

#include <stdbool.h>

struct coop_http_net;

/* Connections that have shown no token have what room the others leave: the one of them that came
 * first goes, so that another may come, as whoever means to show a token does it at once. False:
 * all that are there have shown a token, or are just doing it. */
bool coop_http_conns_crowd_out(struct coop_http_net *net);

/* The gateway stops: what is idle goes, what streams is ended in order, the rest may finish. */
void coop_http_conns_stop(struct coop_http_net *net);
/* All go at once. */
void coop_http_conns_drop(struct coop_http_net *net);

#endif
