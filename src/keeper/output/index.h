/* The event index of a process: chunks of all its streams, numbered from 0 in the order they were
 * read. It holds places, not bytes; those are in the rings. Bounded: the oldest events fall out. */
#ifndef COOP_KEEPER_INDEX_H
#define COOP_KEEPER_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Chunk borders are fixed when stored: at most this many bytes, and never inside a UTF-8 character
 * that is whole. */
#define COOP_INDEX_CHUNK 32768u

struct coop_index_event {
	uint64_t offset; /* in its stream; of a note: its number */
	uint32_t at_ms;  /* since the process started */
	uint16_t size;   /* 1 to COOP_INDEX_CHUNK; of a note 0, as it is no output */
	uint8_t stream;
};

struct coop_index {
	struct coop_index_event *events; /* event n is at n % capacity */
	size_t capacity, limit;
	uint64_t first, next;     /* retained: first <= n < next */
	uint64_t forgotten_bytes; /* of the events before first */
	uint64_t bytes;           /* of all there ever were */
};

void coop_index_clear(struct coop_index *index);

/* Adds one event. 0, or -ENOMEM: then the oldest event made room if there was any, else this one is
 * lost, and counted as if it had come and fallen out. */
int coop_index_add(struct coop_index *index, struct coop_index_event event);

/* The event `number`, first <= number < next. */
const struct coop_index_event *coop_index_get(const struct coop_index *index, uint64_t number);

/* How many bytes the events before `number` have. False, and 0 in it: it is between 0 and first,
 * and nobody knows any more, or past next. */
bool coop_index_bytes_before(const struct coop_index *index, uint64_t number, uint64_t *ret_bytes);

#endif
