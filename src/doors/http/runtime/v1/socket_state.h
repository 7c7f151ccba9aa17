/* What socket.c (a WebSocket's life) and socket_start.c (its start) share. */
#ifndef COOP_HTTP_V1_SOCKET_STATE_H
#define COOP_HTTP_V1_SOCKET_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "doors/http/runtime/v1/view.h"
#include "doors/http/users/user.h"

struct coop_feed_reader;
struct coop_inbox;
struct coop_ws;

enum coop_socket_state {
	COOP_SOCKET_EMPTY,    /* no start message yet */
	COOP_SOCKET_STARTING, /* the keeper has it */
	COOP_SOCKET_LIVE,     /* `started` has been sent */
	COOP_SOCKET_REFUSED,  /* nothing came of it */
};

struct coop_socket {
	struct coop_user *user; /* held */
	struct coop_ws *ws;     /* NULL: gone */
	enum coop_socket_state state;
	unsigned busy;  /* so many work on it: it is freed after the last */
	bool connected; /* there is a process */
	bool starting;  /* the keeper has been asked */
	json_t *start;  /* arguments of spawn */
	struct coop_inbox *inbox;
	struct coop_feed_reader *reader;
	uv_timer_t timer;
};

/* Begins to start a process. `message` is the start message. */
void coop_socket_spawn(struct coop_socket *socket, const json_t *message);

/* Says `started` and connects the process with the client, for which it waits if there is a `hold`
 * of the keeper's. */
void coop_socket_started(struct coop_socket *socket, const struct coop_process_view *view,
			 uint64_t since, const json_t *hold);
/* Says `started` of something that never was, why, and that it has ended, with the refusal's code:
 * clients show that, while they lose the text of an `error` that comes before `started`. */
void coop_socket_failed(struct coop_socket *socket, const struct coop_process_view *view,
			const char *code);
/* The same for a start that was refused, of which nobody keeps a record. */
void coop_socket_refuse(struct coop_socket *socket, const char *code, const char *message);
/* Closes: there is nothing to say it with. */
void coop_socket_no_memory(struct coop_socket *socket);
/* To be put around everything that may send: the client may go at any moment, and the socket only
 * after the end of it. */
void coop_socket_hold(struct coop_socket *socket);
void coop_socket_let_go(struct coop_socket *socket);

#endif
