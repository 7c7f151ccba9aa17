#include "base/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t coop_clock_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC,
			    &ts); /* cannot fail with a fixed clock and a valid pointer */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int64_t coop_clock_wall_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void coop_clock_format(int64_t wall_ms, char ret_text[COOP_CLOCK_TEXT])
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;
	char text[64];

	(void)gmtime_r(&seconds, &tm);
	(void)snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
		       tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		       (int)(wall_ms % 1000));
	(void)snprintf(ret_text, COOP_CLOCK_TEXT, "%.24s", text);
}
