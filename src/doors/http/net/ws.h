/* A WebSocket: whole messages in, whole frames out. Pings are answered and closing is done here.
 * What is sent lies in shared memory, so that many readers of the same output cost one encoding. */
#ifndef COOP_HTTP_WS_H
#define COOP_HTTP_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doors/http/net/shared.h"
#include "doors/http/net/ws_sizes.h"

/* 64 MiB of input in one message, and some more: clients send what they are given as it is. What
 * the messages of an agent may take together is bounded by its share (share.h). */
#define COOP_WS_MESSAGE_MAX (96u << 20)
#define COOP_WS_HEADER_MAX 10u
/* `writable` is called when less than this waits to be sent. */
#define COOP_WS_LOW (64u << 10)

struct coop_buf;
struct coop_jsonw;
struct coop_ws;

struct coop_ws_behaviour {
	/* A whole message. Not called any more after coop_ws_close(). `data` ends with a NUL that
	 * is not counted. */
	void (*message)(struct coop_ws *ws, bool text, const char *data, size_t size);
	void (*writable)(struct coop_ws *ws);
	/* The client has taken some of what waits, be it little. May be NULL. */
	void (*taking)(struct coop_ws *ws);
	/* The gateway is about to stop: say what must be said; it is closed with 1012 after that.
	 * May be NULL. */
	void (*stopping)(struct coop_ws *ws);
	/* The end, exactly once: free the context. Messages that came before a close frame have all
	 * been given. */
	void (*over)(struct coop_ws *ws);
};

void *coop_ws_context(const struct coop_ws *ws);

/* Puts the header of an unmasked, final text frame of `size` bytes at `ret`; returns its length (2
 * to 10). */
size_t coop_ws_header(uint8_t ret[COOP_WS_HEADER_MAX], size_t size);

/* Sends one text message; copied. */
void coop_ws_send_text(struct coop_ws *ws, const char *text, size_t size);
/* The same of a text that has been written, which is cleared: it is closed with INTERNAL if there
 * was no memory to write it. NULL: nobody is there. */
void coop_ws_send_json(struct coop_ws *ws, struct coop_buf *text, const struct coop_jsonw *w);
/* Sends bytes [from, to) of a shared block: whole frames, headers included. Holds the block until
 * they are sent. */
void coop_ws_send_shared(struct coop_ws *ws, struct coop_http_shared *block, size_t from,
			 size_t to);
/* Bytes that wait to be sent. */
size_t coop_ws_pending(const struct coop_ws *ws);

/* Lets the kernel hold little of what waits, so that `taking` is called often for a slow client. */
void coop_ws_expect_little(struct coop_ws *ws);

/* Whether a message of the client was refused for its size, or for want of room: what was in it
 * is lost. */
bool coop_ws_lost_message(const struct coop_ws *ws);

/* No further messages until resumed; pings wait too. The bound on what a client may send ahead. */
void coop_ws_pause(struct coop_ws *ws);
void coop_ws_resume(struct coop_ws *ws);

/* Sends what waits, then a close frame, and waits for the client's, 2 s at most. Calling it again
 * does nothing. */
void coop_ws_close(struct coop_ws *ws, unsigned code, const char *reason);
/* The same, but lets the client close first, for up to `ms`. */
void coop_ws_close_after(struct coop_ws *ws, unsigned ms, unsigned code, const char *reason);

#endif
