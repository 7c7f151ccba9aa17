/* Events by their numbers: what is cut out of a run of events, and what a window of the latest ones
 * holds, compared with plain lists. The input is a row of steps, two bytes each: what to do, and
 * how much. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/http/runtime/cut.h"
#include "doors/http/runtime/feed_window.h"
#include "doors/http/runtime/v1/feed_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define STEPS_MAX 400
#define BYTES_MAX (STEPS_MAX * 300)
#define COMMON ",\"pid\":\"x\",\"data\":\""

/* All events there ever were. */
struct model {
	size_t count;
	bool lost[STEPS_MAX * 8];
	size_t before[STEPS_MAX * 8 + 1]; /* bytes of all events before that one */
	uint8_t bytes[BYTES_MAX * 8];
};

static struct model model;

static void clear_model(void)
{
	model.count = 0;
	model.before[0] = 0;
}

static struct coop_chunk add_event(size_t size, bool lost)
{
	size_t n = model.count++, at = model.before[n];

	for (size_t i = 0; i < size; i++)
		model.bytes[at + i] = (uint8_t)(at + i + n * 7);
	model.lost[n] = lost;
	model.before[n + 1] = at + size;
	return (struct coop_chunk){.stream = n % 3 ? COOP_STDOUT : COOP_STDERR,
				   .cursor = n,
				   .data = model.bytes + at,
				   .size = size};
}

/* The pieces are the first and the last bytes, each of the event that it says. */
static void check_cut(struct coop_runtime_cut *cut, size_t head, size_t tail)
{
	struct coop_chunk chunk;
	size_t total = model.before[model.count], at = 0, place = 0, seen = 0;
	size_t first = head < total ? head : total;
	size_t last = tail < total - first ? tail : total - first;
	uint64_t before = 0;

	for (bool any = false; coop_runtime_cut_next(cut, &place, &chunk); any = true) {
		assert(chunk.size > 0);
		if (at == first && first + last < total)
			at = total - last;
		size_t n = (size_t)chunk.cursor;
		assert(n < model.count && at >= model.before[n] &&
		       at + chunk.size <= model.before[n + 1]);
		assert(!any || n >= before);
		/* The same event twice only with something missing between its two parts. */
		assert(!any || n > before || at == total - last);
		assert(memcmp(chunk.data, model.bytes + at, chunk.size) == 0);
		assert(chunk.stream == (n % 3 ? COOP_STDOUT : COOP_STDERR));
		before = n;
		at += chunk.size;
		seen += chunk.size;
	}
	assert(seen == first + last);
}

static void try_cut(const uint8_t *input, size_t size)
{
	struct coop_runtime_cut cut = {.head_budget = input[0] * 4u, .tail_budget = input[1] * 4u};

	clear_model();
	for (size_t i = 2; i + 1 < size && model.count < STEPS_MAX; i += 2) {
		struct coop_chunk chunk = add_event(1 + input[i + 1], false);
		assert(coop_runtime_cut_add(&cut, &chunk) == 0);
	}
	check_cut(&cut, cut.head_budget, cut.tail_budget);
	coop_runtime_cut_clear(&cut);
}

/* The frame at `offset` is that of the event. */
static void check_frame(const struct coop_feed_window *window, const struct coop_feed_block *block,
			uint64_t cursor)
{
	char head[64];
	size_t offset = coop_feed_window_offset(window, block, cursor);
	int length = snprintf(head, sizeof head, "{\"type\":\"%s\",\"cursor\":%llu,",
			      cursor % 3 ? "stdout" : "stderr", (unsigned long long)cursor);

	assert(offset + 10 < block->data->size && block->data->data[offset] == 0x81);
	assert(memmem(block->data->data + offset, (size_t)length + 10, head, (size_t)length));
}

static void check_window(const struct coop_feed_window *window, bool dropped)
{
	bool within = false;

	assert(window->next == model.count && window->bytes == model.before[model.count]);
	for (size_t n = 0; n <= model.count; n++) {
		struct coop_feed_block *block = NULL;
		uint64_t to = UINT64_MAX;
		switch (coop_feed_window_find(window, n, &block, &to)) {
		case COOP_FEED_READY:
			assert(!model.lost[n]);
			check_frame(window, block, n);
			within = true;
			break;
		case COOP_FEED_LOST:
			assert(model.lost[n] && to > n && to <= model.count);
			for (size_t i = n; i < to; i++)
				assert(model.lost[i]);
			assert(coop_feed_window_bytes_at(window, to) == model.before[to]);
			within = true;
			break;
		case COOP_FEED_BEHIND:
			assert(dropped && !within && to > n && to <= model.count);
			assert(coop_feed_window_bytes_at(window, to) == model.before[to]);
			break;
		case COOP_FEED_AT_END:
			assert(n == model.count);
			break;
		}
	}
}

static void try_window(const uint8_t *input, size_t size)
{
	struct coop_feed_window window;
	bool dropped = false;

	clear_model();
	coop_feed_window_init(&window, &coop_v1_feed_frames, COMMON, 0, 0);
	for (size_t i = 0; i + 1 < size && model.count < STEPS_MAX; i += 2) {
		struct coop_chunk chunk;
		switch (input[i] % 8) {
		case 0:
			for (unsigned k = 0; k <= input[i + 1] % 5u; k++)
				(void)add_event(input[i + 1], true);
			coop_feed_window_lose(&window, model.count, model.before[model.count]);
			break;
		case 1:
			coop_feed_window_trim(&window, input[i + 1] * 256u);
			dropped = true;
			break;
		case 2:
			coop_feed_window_passed(&window, model.count * input[i + 1] / 255);
			dropped = true;
			break;
		default:
			chunk = add_event(1 + input[i + 1], false);
			assert(coop_feed_window_add(&window, &chunk) == 0);
		}
	}
	check_window(&window, dropped);
	coop_feed_window_clear(&window);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	if (size < 3)
		return 0;
	if (input[0] & 1)
		try_cut(input + 1, size - 1);
	else
		try_window(input + 1, size - 1);
	return 0;
}
