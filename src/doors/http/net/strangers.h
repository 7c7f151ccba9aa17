/* Connections that have shown no token. They have what room the others leave: where there is
 * none, the one of them that came first goes, as whoever means to show a token does it at once. */
#ifndef COOP_HTTP_STRANGERS_H
#define COOP_HTTP_STRANGERS_H

#include <stdbool.h>

struct coop_http_conn;
struct coop_gateway;

/* In the order in which they came. */
struct coop_strangers {
	struct coop_http_conn *first, *last;
};

void coop_strangers_add(struct coop_http_conn *conn);
/* It has shown a token, or goes. One that is no stranger stays what it is. */
void coop_strangers_remove(struct coop_http_conn *conn);
/* Ends one so that another may come. False: all that are there have shown a token, or are just
 * doing it. */
bool coop_strangers_make_room(struct coop_gateway *gateway);

#endif
