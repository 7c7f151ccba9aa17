#include "keeper/output/index.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

/* Numbers and sums stay: readers that come later are told what they have missed. */
void coop_index_clear(struct coop_index *index)
{
	for (uint64_t n = index->first; n < index->next; n++)
		index->forgotten_bytes += coop_index_get(index, n)->size;
	free(index->events);
	index->events = NULL;
	index->capacity = 0;
	index->first = index->next;
}

const struct coop_index_event *coop_index_get(const struct coop_index *index, uint64_t number)
{
	return &index->events[number % index->capacity];
}

static int grow(struct coop_index *index)
{
	size_t capacity = index->capacity ? index->capacity * 4 : 16;

	if (capacity > index->limit)
		capacity = index->limit;
	struct coop_index_event *events = coop_mem_alloc(capacity * sizeof *events);
	if (!events)
		return -ENOMEM;
	for (uint64_t n = index->first; n < index->next; n++)
		events[n % capacity] = *coop_index_get(index, n);
	free(index->events);
	index->events = events;
	index->capacity = capacity;
	return 0;
}

int coop_index_add(struct coop_index *index, struct coop_index_event event)
{
	int r = 0;

	index->bytes += event.size;
	if (index->next - index->first == index->capacity && index->capacity < index->limit)
		r = grow(index);
	/* Without memory the event is numbered and forgotten at once: numbers must not depend on
	 * luck. */
	if (!index->capacity) {
		index->forgotten_bytes += event.size;
		index->first = ++index->next;
		return r;
	}
	if (index->next - index->first == index->capacity)
		index->forgotten_bytes += coop_index_get(index, index->first++)->size;
	index->events[index->next++ % index->capacity] = event;
	return r;
}

static uint64_t sum(const struct coop_index *index, uint64_t from, uint64_t to)
{
	uint64_t bytes = 0;

	for (; from < to; from++)
		bytes += coop_index_get(index, from)->size;
	return bytes;
}

bool coop_index_bytes_before(const struct coop_index *index, uint64_t number, uint64_t *ret_bytes)
{
	if (number < index->first || number > index->next) {
		*ret_bytes = 0;
		return number == 0;
	}
	/* From whichever side is nearer: readers mostly are at one of the two ends. */
	if (number - index->first <= index->next - number)
		*ret_bytes = index->forgotten_bytes + sum(index, index->first, number);
	else
		*ret_bytes = index->bytes - sum(index, number, index->next);
	return true;
}
