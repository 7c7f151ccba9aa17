/* A growable run of bytes: filled at the end, consumed at the front. */
#ifndef COOP_BASE_BUF_H
#define COOP_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

/* Open, so that it can be embedded; zero-initialise it. `data + head` is the first unconsumed
 * byte. */
struct coop_buf {
	uint8_t *data;
	size_t head, tail, capacity;
};

/* Frees the memory; the buffer is empty and usable afterwards. */
void coop_buf_clear(struct coop_buf *buf);

static inline size_t coop_buf_size(const struct coop_buf *buf)
{
	return buf->tail - buf->head;
}

static inline uint8_t *coop_buf_front(const struct coop_buf *buf)
{
	return buf->data ? buf->data + buf->head : NULL;
}

/* Makes room for `size` more bytes. Returns where they go (then call coop_buf_commit), or NULL
 * without memory. */
uint8_t *coop_buf_reserve(struct coop_buf *buf, size_t size);
void coop_buf_commit(struct coop_buf *buf, size_t size);

/* 0 or -ENOMEM, with nothing changed. */
int coop_buf_append(struct coop_buf *buf, const void *bytes, size_t size);

/* Gives back memory where much more is held than the bytes need. Without memory for the move
 * nothing changes. */
void coop_buf_fit(struct coop_buf *buf);

/* Drops `size` bytes at the front. Memory of an emptied large buffer goes back. */
void coop_buf_consume(struct coop_buf *buf, size_t size);

#endif
