/* What the fan-out's writer, servers and reader agree on. */
#ifndef COOP_BENCH_FANOUT_H
#define COOP_BENCH_FANOUT_H

#include <stdint.h>

/* Bytes of the output repeat after so many. */
#define FANOUT_PERIOD 65521u

/* Plain letters: text is what processes mostly write. */
static inline uint8_t fanout_byte(uint64_t position)
{
	uint32_t i = (uint32_t)(position % FANOUT_PERIOD);

	return (uint8_t)(' ' + (i * 31 + (i >> 8)) % 95);
}

#endif
