/* A process's output as the tests of feeds play it: events of random sizes on two streams, of which
 * a ring and an index forget the oldest. Included after cmocka.h. */
#ifndef COOP_TESTS_FEED_MODEL_H
#define COOP_TESTS_FEED_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define EVENTS_MAX 20000
#define INDEX_MAX 1000u
#define RING (64u << 10)

static struct {
	uint16_t size[EVENTS_MAX];
	uint8_t stream[EVENTS_MAX];
	uint64_t offset[EVENTS_MAX];
	uint64_t before[EVENTS_MAX + 1]; /* bytes of all events before */
	uint64_t first, next;
	uint64_t end[4];
	bool ended, known;
} model;

static unsigned seed;

static unsigned chance(unsigned limit)
{
	return (unsigned)rand_r(&seed) % limit;
}

static uint8_t byte_of(uint64_t event, size_t at)
{
	return (uint8_t)(event * 31 + at * 7);
}

static bool lost(uint64_t n)
{
	uint64_t end = model.end[model.stream[n]];

	return n < model.first || model.offset[n] + RING < end;
}

static void produce(unsigned count)
{
	for (; count && model.next < EVENTS_MAX; count--, model.next++) {
		uint64_t n = model.next;
		uint8_t stream = chance(10) ? 1 : 2;
		model.size[n] = (uint16_t)(1 + chance(chance(16) ? 200 : 32768));
		model.stream[n] = stream;
		model.offset[n] = model.end[stream];
		model.end[stream] += model.size[n];
		model.before[n + 1] = model.before[n] + model.size[n];
		if (model.next - model.first >= INDEX_MAX)
			model.first++;
	}
}

#endif
