/* Bytes that several connections send: written once, held by count. */
#ifndef COOP_HTTP_SHARED_H
#define COOP_HTTP_SHARED_H

#include <stddef.h>
#include <stdint.h>

struct coop_http_shared {
	unsigned refs;
	size_t size, capacity; /* bytes [0, size) never change; more may be added up to capacity */
	uint8_t data[];
};

/* An empty block, held once. NULL without memory. */
struct coop_http_shared *coop_shared_new(size_t capacity);
struct coop_http_shared *coop_shared_ref(struct coop_http_shared *block);
void coop_shared_unref(struct coop_http_shared *block); /* NULL is fine */

#endif
