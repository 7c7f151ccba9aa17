#include "base/clock.h"

#include <string.h>
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

/* Not printf: every record has two of these, and one is written at every end. */
static void put(char *at, int value, int width)
{
	for (int i = width - 1; i >= 0; i--, value /= 10)
		at[i] = (char)('0' + value % 10);
}

void coop_clock_format(int64_t wall_ms, char ret_text[COOP_CLOCK_TEXT])
{
	static const char form[COOP_CLOCK_TEXT] = "0000-00-00T00:00:00.000Z";
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;

	(void)gmtime_r(&seconds, &tm);
	memcpy(ret_text, form, sizeof form);
	put(ret_text, tm.tm_year + 1900, 4);
	put(ret_text + 5, tm.tm_mon + 1, 2);
	put(ret_text + 8, tm.tm_mday, 2);
	put(ret_text + 11, tm.tm_hour, 2);
	put(ret_text + 14, tm.tm_min, 2);
	put(ret_text + 17, tm.tm_sec, 2);
	put(ret_text + 20, (int)(wall_ms % 1000), 3);
}
