#include "doors/http/net/strangers.h"

#include "doors/http/main/gateway.h"
#include "doors/http/net/conn.h"

void coop_strangers_add(struct coop_http_conn *conn)
{
	struct coop_strangers *all = &conn->gateway->strangers;

	conn->stranger = true;
	conn->earlier = all->last;
	conn->later = NULL;
	if (all->last)
		all->last->later = conn;
	else
		all->first = conn;
	all->last = conn;
}

void coop_strangers_remove(struct coop_http_conn *conn)
{
	struct coop_strangers *all = &conn->gateway->strangers;

	if (!conn->stranger)
		return;
	conn->stranger = false;
	if (conn->earlier)
		conn->earlier->later = conn->later;
	else
		all->first = conn->later;
	if (conn->later)
		conn->later->earlier = conn->earlier;
	else
		all->last = conn->earlier;
	conn->earlier = conn->later = NULL;
}

bool coop_strangers_make_room(struct coop_gateway *gateway)
{
	struct coop_http_conn *conn = gateway->strangers.first;

	/* A token that the keeper is being asked about may be a right one. */
	while (conn && conn->waiter)
		conn = conn->later;
	if (!conn)
		return false;
	gateway->counts.crowded_out++;
	coop_http_conn_drop(conn);
	return true;
}
