/* What waits to be sent on one connection: pieces of shared blocks, in order. Small texts are
 * copied into blocks of the queue's own. */
#ifndef COOP_HTTP_OUT_H
#define COOP_HTTP_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "doors/http/net/shared.h"

/* Pieces that one call to the kernel takes. */
#define COOP_OUT_IOV 64u

struct coop_out_piece {
	struct coop_http_shared *block;
	size_t from, to;
	bool answer;
};

/* Zero-initialise it. */
struct coop_out {
	struct coop_out_piece *pieces; /* a ring; `capacity` is a power of two */
	size_t first, count, capacity;
	size_t bytes; /* in all */
	/* of them, those that the client itself has caused (pongs, acknowledgements) */
	size_t answers;
};

void coop_out_clear(struct coop_out *out);

/* 0 or -ENOMEM, with nothing changed. */
int coop_out_copy(struct coop_out *out, const void *data, size_t size, bool answer);
int coop_out_share(struct coop_out *out, struct coop_http_shared *block, size_t from, size_t to);

/* The bytes at the front; returns how many of the iovecs are filled. */
unsigned coop_out_front(const struct coop_out *out, struct iovec iov[COOP_OUT_IOV]);
/* That many of them have been sent. */
void coop_out_consume(struct coop_out *out, size_t size);

#endif
