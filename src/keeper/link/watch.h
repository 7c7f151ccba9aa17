/* Who has something at connections: rows of one table, which main/ fills in. A connection knows
 * nothing of processes, followers or ends; it says when there is room, what has been taken, and
 * when it goes. Rows are called in their order. */
#ifndef COOP_KEEPER_LINK_WATCH_H
#define COOP_KEEPER_LINK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct coop_conn;

/* Calls that a row leaves NULL are not its business. */
struct coop_conn_watch {
	/* There may be room: adds what it has. Returns whether that was anything. */
	bool (*on_room)(struct coop_conn *conn);
	/* The frame that is being written ends at that place of all that the connection sends; 0:
	 * it has been dropped. */
	void (*on_frame)(struct coop_conn *conn, uint64_t end);
	/* The socket has taken more. */
	void (*on_taken)(struct coop_conn *conn);
	/* Its client is not served any longer: what was to end with the connection ends. */
	void (*on_over)(struct coop_conn *conn);
	/* It is closed, right after that. */
	void (*on_close)(struct coop_conn *conn);
	/* Nothing points to it any more. */
	void (*on_free)(struct coop_conn *conn);
};

#endif
