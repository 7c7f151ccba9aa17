#include "client/views/runs.h"

#include <errno.h>

/* From byte `at` of the text (counted from the first that ever was) up to the next origin. */
struct origin {
	uint64_t at;
	uint64_t offset;
	bool flat;
};

static struct origin *origins(const struct coop_placed_text *runs, size_t *ret_count)
{
	*ret_count = coop_buf_size(&runs->origins) / sizeof(struct origin);
	return (struct origin *)(void *)coop_buf_front(&runs->origins);
}

void coop_placed_clear(struct coop_placed_text *runs)
{
	coop_buf_clear(&runs->bytes);
	coop_buf_clear(&runs->origins);
}

static bool goes_on(const struct origin *last, uint64_t at, uint64_t offset, bool flat)
{
	if (last->flat != flat)
		return false;
	return flat ? last->offset == offset : last->offset + (at - last->at) == offset;
}

int coop_placed_append(struct coop_placed_text *runs, const void *bytes, size_t size,
		       uint64_t offset, bool flat)
{
	size_t count;
	const struct origin *all = origins(runs, &count);
	struct origin origin = {
		.at = runs->forgotten + coop_placed_size(runs), .offset = offset, .flat = flat};
	bool is_new = !count || !goes_on(&all[count - 1], origin.at, offset, flat);

	if (!size)
		return 0;
	/* Room for both first: half of it would be a text with a wrong origin. */
	if (is_new && !coop_buf_reserve(&runs->origins, sizeof origin))
		return -ENOMEM;
	if (coop_buf_append(&runs->bytes, bytes, size) < 0)
		return -ENOMEM;
	return is_new ? coop_buf_append(&runs->origins, &origin, sizeof origin) : 0;
}

void coop_placed_cut(struct coop_placed_text *runs, size_t size)
{
	size_t count;
	const struct origin *all = origins(runs, &count);

	runs->bytes.tail = runs->bytes.head + size;
	while (count && all[count - 1].at >= runs->forgotten + size)
		count--;
	runs->origins.tail = runs->origins.head + count * sizeof *all;
}

/* The origin that rules byte `at`: the last that is not behind it. */
static size_t find(const struct origin *all, size_t count, uint64_t at)
{
	size_t low = 0, high = count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (all[middle].at <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void coop_placed_consume(struct coop_placed_text *runs, size_t count)
{
	size_t origin_count;
	const struct origin *all = origins(runs, &origin_count);
	size_t size = coop_placed_size(runs);

	if (count > size)
		count = size;
	if (!count)
		return;
	runs->forgotten += count;
	size_t gone = count == size ? origin_count : find(all, origin_count, runs->forgotten);
	coop_buf_consume(&runs->origins, gone * sizeof *all);
	coop_buf_consume(&runs->bytes, count);
}

uint64_t coop_placed_offset(const struct coop_placed_text *runs, size_t at)
{
	size_t count;
	const struct origin *all = origins(runs, &count);
	const struct origin *origin = &all[find(all, count, runs->forgotten + at)];

	return origin->flat ? origin->offset : origin->offset + (runs->forgotten + at - origin->at);
}
