#include "keeper/core/meters.h"

#include <stddef.h>
#include <stdio.h>

#define US UINT64_C(1000)

/* Upper bounds, in microseconds. */
static const uint64_t bounds[COOP_METERS_BUCKETS] = {
	500,    1000,   2000,   3000,    5000,    10000,   20000,    50000,
	100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000, 30000000,
};

/* What was longer than the last bound is in no bucket, and in the count all the same. */
void coop_histogram_add(struct coop_histogram *histogram, uint64_t ns)
{
	for (size_t i = 0; i < COOP_METERS_BUCKETS; i++) {
		if (ns <= bounds[i] * US) {
			histogram->buckets[i]++;
			break;
		}
	}
	histogram->count++;
	histogram->sum_ns += ns;
}

/* Seconds with as many digits as there are. */
static void write_seconds(struct coop_jsonw *w, const char *name, uint64_t ns)
{
	char text[40];

	(void)snprintf(text, sizeof text, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
		       (unsigned long long)(ns % 1000000000u));
	coop_jsonw_raw(w, name, text);
}

void coop_histogram_write(const struct coop_histogram *histogram, struct coop_jsonw *w,
			  const char *name)
{
	uint64_t sum = 0;

	coop_jsonw_begin(w, name);
	coop_jsonw_array(w, "buckets");
	for (size_t i = 0; i < COOP_METERS_BUCKETS; i++) {
		sum += histogram->buckets[i];
		coop_jsonw_array(w, NULL);
		write_seconds(w, NULL, bounds[i] * US);
		coop_jsonw_uint(w, NULL, sum);
		coop_jsonw_array_end(w);
	}
	coop_jsonw_array_end(w);
	coop_jsonw_uint(w, "count", histogram->count);
	write_seconds(w, "sum", histogram->sum_ns);
	coop_jsonw_end(w);
}
