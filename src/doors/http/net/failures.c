#include "doors/http/net/failures.h"

/* Two places may share a row; then they share the allowance too, which harms nobody for longer than
 * a few seconds. */
static unsigned row_of(uint64_t place)
{
	return (unsigned)((place * UINT64_C(0x9e3779b97f4a7c15)) >> 54) % COOP_FAILURES_PLACES;
}

/* What still counts at this moment. */
static unsigned settle(struct coop_failures *failures, unsigned row, uint64_t now_ms)
{
	unsigned count = failures->places[row].count;
	uint64_t since = failures->places[row].since_ms;
	uint64_t forgiven = now_ms > since ? (now_ms - since) / COOP_FAILURES_MS : 0;

	if (forgiven >= count)
		count = 0;
	else
		count -= (unsigned)forgiven;
	failures->places[row].count = count;
	failures->places[row].since_ms = count ? since + forgiven * COOP_FAILURES_MS : now_ms;
	return count;
}

bool coop_failures_too_many(struct coop_failures *failures, uint64_t place, uint64_t now_ms)
{
	unsigned row = row_of(place);

	if (settle(failures, row, now_ms) < COOP_FAILURES_BURST)
		return false;
	if (now_ms - failures->places[row].trickle_ms < COOP_FAILURES_TRICKLE_MS)
		return true;
	failures->places[row].trickle_ms = now_ms;
	return false;
}

void coop_failures_add(struct coop_failures *failures, uint64_t place, uint64_t now_ms)
{
	unsigned row = row_of(place);

	(void)settle(failures, row, now_ms);
	failures->places[row].place = place;
	/* No debt beyond the burst: one that guesses for hours is forgiven as soon as one that
	 * stops at once. */
	if (failures->places[row].count < COOP_FAILURES_BURST)
		failures->places[row].count++;
}
