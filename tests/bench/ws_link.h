/* The client's side of a WebSocket, and of one HTTP connection, as far as the benchmarks need it:
 * cheap, so that the server is what is measured. What a server sends is trusted to be frames. */
#ifndef COOP_BENCH_WS_LINK_H
#define COOP_BENCH_WS_LINK_H

#include <stddef.h>
#include <stdint.h>

#define WS_HEADER_MAX 10
#define WS_ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" /* what belongs to the key that is sent */
#define WS_KEY "dGhlIHNhbXBsZSBub25jZQ=="

/* A connection to 127.0.0.1, without delay of small writes. */
int link_connect(unsigned port);
void link_send(int fd, const void *data, size_t size);

/* Bytes of one connection that are not used up. */
struct link_in {
	int fd;
	size_t from, to;
	char bytes[16384];
};

/* At least one byte more; 0 at the end. */
size_t link_more(struct link_in *in);

/* Asks for a WebSocket and reads the head of the answer, which must be the right one. `token` may
 * be NULL. */
void ws_open(struct link_in *in, unsigned port, const char *target, const char *token);
/* One masked text frame, below 64 KiB. */
void ws_send(int fd, const char *text);

/* The size of a frame's header, and in *ret_size that of its payload. 0: more bytes are needed. */
size_t ws_header(const uint8_t *bytes, size_t size, size_t *ret_size);
/* Writes the header of an unmasked text frame; returns its size. */
size_t ws_put_header(uint8_t ret[WS_HEADER_MAX], size_t size);

/* The next frame in `in`, whole, with a NUL behind it; valid until the next call. NULL: the server
 * has closed. */
char *ws_receive(struct link_in *in);

#endif
