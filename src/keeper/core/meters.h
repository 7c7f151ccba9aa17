/* What has happened since the keeper started, counted where it happens: a few additions, on the
 * loop's thread alone. */
#ifndef COOP_KEEPER_METERS_H
#define COOP_KEEPER_METERS_H

#include <stdint.h>

#include "base/json/jsonw.h"

#define COOP_METERS_CAUSES 24u  /* enum coop_cause has fewer */
#define COOP_METERS_BUCKETS 16u /* from half a millisecond up to 30 s */

struct coop_histogram {
	uint64_t buckets[COOP_METERS_BUCKETS]; /* each for itself; what was longer is in none */
	uint64_t count, sum_ns;
};

struct coop_meters {
	uint64_t starts, start_failures;
	uint64_t ends[COOP_METERS_CAUSES]; /* by enum coop_cause */
	struct coop_histogram spawn, exit; /* see metrics in docs/PROTOCOL.md */
	uint64_t captured, dropped, sent;  /* bytes of output */
	uint64_t gaps;                     /* that readers were told of */
	uint64_t wakeups;
	unsigned followers; /* that there are now */
};

void coop_histogram_add(struct coop_histogram *histogram, uint64_t ns);

/* {"buckets": [[seconds, how many up to that]…], "count", "sum"} */
void coop_histogram_write(const struct coop_histogram *histogram, struct coop_jsonw *w,
			  const char *name);

#endif
