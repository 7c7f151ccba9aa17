/* How many wrong tokens came from where: guessing is made slow. A place is an address and the
 * number that a token begins with: who guesses at one token does not keep others from the same host
 * from being looked at. Bounded: a table of places, each with an allowance that grows back. */
#ifndef COOP_HTTP_FAILURES_H
#define COOP_HTTP_FAILURES_H

#include <stdbool.h>
#include <stdint.h>

#define COOP_FAILURES_PLACES 1024u
#define COOP_FAILURES_BURST 30u /* wrong ones in a row */
#define COOP_FAILURES_TRICKLE_MS \
	100u /* beyond it one is looked at for each of these: a right one must get through */
#define COOP_FAILURES_MS 1000u /* after which one more is allowed */

struct coop_failures {
	struct {
		uint64_t place;
		uint64_t since_ms;   /* of the first that still counts */
		uint64_t trickle_ms; /* of the last that was let through beyond the burst */
		unsigned count;
	} places[COOP_FAILURES_PLACES];
};

/* Whether another wrong one from there would be too many. */
bool coop_failures_too_many(struct coop_failures *failures, uint64_t place, uint64_t now_ms);
void coop_failures_add(struct coop_failures *failures, uint64_t place, uint64_t now_ms);

#endif
