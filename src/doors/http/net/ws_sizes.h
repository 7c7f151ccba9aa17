/* The lengths that frames announce, seen before their payload comes: a frame that is too large is
 * refused when it is announced, not when so much of it has been taken. */
#ifndef COOP_HTTP_WS_SIZES_H
#define COOP_HTTP_WS_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a connection is closed, as close frames say it. */
enum {
	COOP_WS_NORMAL = 1000,
	COOP_WS_PROTOCOL = 1002,
	COOP_WS_POLICY = 1008,
	COOP_WS_TOO_LARGE = 1009,
	COOP_WS_INTERNAL = 1011,
	COOP_WS_RESTART = 1012,
	COOP_WS_TRY_LATER = 1013,
};

/* Zero-initialise it. */
struct coop_ws_sizes {
	uint8_t head[14]; /* of the frame that begins */
	unsigned have;
	uint64_t payload; /* of the current frame, yet to come */
	bool data;        /* the current frame is no control frame */
	bool last;        /* and ends its message */
	uint64_t message; /* bytes of the unfinished message so far */
	unsigned frames;  /* that it has come in */
};

/* Most frames that one message may come in: each costs memory of its own. */
#define COOP_WS_FRAMES_MAX 16384u

/* Looks at the next bytes. 0, or the code to close with: one announces more than `max` or a length
 * that is none, or a message has too many frames. */
unsigned coop_ws_sizes_look(struct coop_ws_sizes *sizes, const uint8_t *data, size_t size,
			    uint64_t max);

#endif
