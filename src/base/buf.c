#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* An emptied buffer larger than this gives its memory back: thousands of connections may have been
 * busy once. */
#define KEEP_CAPACITY 16384u
/* A smaller one that is almost empty is filled again soon: moving its bytes would cost more than
 * it gives back. */
#define FIT_CAPACITY (512u << 10)

void coop_buf_clear(struct coop_buf *buf)
{
	free(buf->data);
	*buf = (struct coop_buf){0};
}

/* Its bytes at the start of new memory. */
static uint8_t *moved(struct coop_buf *buf, size_t capacity)
{
	uint8_t *grown = coop_mem_alloc(capacity);

	if (grown) {
		memcpy(grown, buf->data + buf->head, coop_buf_size(buf));
		free(buf->data);
	}
	return grown;
}

void coop_buf_fit(struct coop_buf *buf)
{
	size_t used = coop_buf_size(buf), want = KEEP_CAPACITY;

	if (!used || buf->capacity < FIT_CAPACITY || used > buf->capacity / 4)
		return;
	while (want < used)
		want *= 2;
	uint8_t *less = moved(buf, want);
	if (!less)
		return;
	*buf = (struct coop_buf){.data = less, .tail = used, .capacity = want};
}

uint8_t *coop_buf_reserve(struct coop_buf *buf, size_t size)
{
	size_t used = coop_buf_size(buf);

	if (buf->capacity - buf->tail >= size)
		return buf->data ? buf->data + buf->tail : coop_buf_reserve(buf, size ? size : 1);
	if (size > SIZE_MAX / 2 - used)
		return NULL;
	if (buf->head && buf->capacity >= used + size && buf->head >= used) {
		memcpy(buf->data, buf->data + buf->head, used);
	} else {
		size_t want = buf->capacity ? buf->capacity : 256;
		while (want < used + size)
			want *= 2;
		uint8_t *grown = buf->head ? moved(buf, want) : coop_mem_realloc(buf->data, want);
		if (!grown)
			return NULL;
		buf->data = grown;
		buf->capacity = want;
	}
	buf->head = 0;
	buf->tail = used;
	return buf->data + buf->tail;
}

void coop_buf_commit(struct coop_buf *buf, size_t size)
{
	buf->tail += size;
}

int coop_buf_append(struct coop_buf *buf, const void *bytes, size_t size)
{
	if (!size)
		return 0;
	uint8_t *place = coop_buf_reserve(buf, size);
	if (!place)
		return -ENOMEM;
	memcpy(place, bytes, size);
	buf->tail += size;
	return 0;
}

void coop_buf_consume(struct coop_buf *buf, size_t size)
{
	buf->head += size;
	if (buf->head < buf->tail)
		return;
	if (buf->capacity > KEEP_CAPACITY)
		coop_buf_clear(buf);
	else
		buf->head = buf->tail = 0;
}
