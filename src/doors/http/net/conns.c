#include "doors/http/net/conns.h"

#include "base/list.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/net.h"
#include "doors/http/net/ws_conn.h"

bool coop_http_conns_crowd_out(struct coop_http_net *net)
{
	COOP_LIST_EACH(&net->strangers, link)
	{
		struct coop_http_conn *conn = COOP_LIST_ITEM(link, struct coop_http_conn, stranger);
		/* A token that the keeper is being asked about may be a right one. */
		if (coop_http_conn_asks(conn))
			continue;
		net->counts.crowded_out++;
		coop_http_conn_drop(conn);
		return true;
	}
	return false;
}

static void ask_to_go(struct coop_http_conn *conn)
{
	if (conn->ws)
		coop_ws_stop(conn->ws);
	else if (conn->exchange && conn->exchange->begun && conn->exchange->chunked)
		coop_http_end(conn->exchange);
	else if (!conn->exchange && !conn->head && !conn->out.bytes)
		coop_http_conn_drop(conn);
}

void coop_http_conns_stop(struct coop_http_net *net)
{
	for (struct coop_link *link = net->conns.next, *next; link != &net->conns; link = next) {
		next = link->next;
		ask_to_go(COOP_LIST_ITEM(link, struct coop_http_conn, link));
		if (!next->next) /* one took another with it; asking twice does no harm */
			next = net->conns.next;
	}
}

void coop_http_conns_drop(struct coop_http_net *net)
{
	while (!coop_list_empty(&net->conns))
		coop_http_conn_drop(COOP_LIST_ITEM(net->conns.next, struct coop_http_conn, link));
}
