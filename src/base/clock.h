/* Time: monotonic inside, RFC 3339 UTC with milliseconds outside. */
#ifndef COOP_BASE_CLOCK_H
#define COOP_BASE_CLOCK_H

#include <stdint.h>

#define COOP_CLOCK_TEXT 25 /* 2026-01-02T03:04:05.678Z and its NUL */

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t coop_clock_now(void);

/* Milliseconds since 1970. */
int64_t coop_clock_wall_ms(void);

void coop_clock_format(int64_t wall_ms, char ret_text[COOP_CLOCK_TEXT]);

#endif
