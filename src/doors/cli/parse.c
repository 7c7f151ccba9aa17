#include "doors/cli/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text/units.h"

static const struct coop_unit_name sizes[] = {
	{"b", 1},
	{"k", 1u << 10},
	{"kb", 1u << 10},
	{"kib", 1u << 10},
	{"m", 1u << 20},
	{"mb", 1u << 20},
	{"mib", 1u << 20},
	{"g", 1u << 30},
	{"gb", 1u << 30},
	{"gib", 1u << 30},
	{"t", 1ull << 40},
	{"tb", 1ull << 40},
	{"tib", 1ull << 40},
	{NULL, 0},
};

int cli_parse_duration(const char *text, uint64_t *ret_ms)
{
	return coop_units_parse(text, 1000, coop_units_ms, COOP_UNITS_FRACTION, ret_ms);
}

int cli_parse_size(const char *text, uint64_t *ret_bytes)
{
	return coop_units_parse(text, 1, sizes, COOP_UNITS_FRACTION, ret_bytes);
}

int cli_parse_count(const char *text, uint64_t *ret)
{
	return coop_units_parse(text, 1, coop_units_none, COOP_UNITS_WHOLE, ret);
}

int cli_parse_seconds(const char *text, uint64_t *ret)
{
	uint64_t ms;
	int r = cli_parse_duration(text, &ms);
	if (r < 0)
		return r;
	if (ms % 1000)
		return -EINVAL;
	*ret = ms / 1000;
	return 0;
}

/* Exactly so many digits. */
static bool take_fixed(const char **text, int digits, int *ret)
{
	int value = 0;
	for (int i = 0; i < digits; i++, ++*text) {
		if (!isdigit((unsigned char)**text))
			return false;
		value = value * 10 + (**text - '0');
	}
	*ret = value;
	return true;
}

/* A character and two digits behind it. */
static bool take_part(const char **text, char before, int *ret)
{
	if (**text != before)
		return false;
	++*text;
	return take_fixed(text, 2, ret);
}

/* "03:04", ":05" and ".678", as far as they are there. */
static bool take_clock(const char **text, struct tm *tm, int64_t *ret_ms)
{
	if (!take_fixed(text, 2, &tm->tm_hour) || !take_part(text, ':', &tm->tm_min))
		return false;
	if (**text == ':' && !take_part(text, ':', &tm->tm_sec))
		return false;
	if (**text != '.')
		return true;
	if (!isdigit((unsigned char)*++*text))
		return false;
	for (int64_t part = 100; isdigit((unsigned char)**text); part /= 10)
		*ret_ms += part * (*(*text)++ - '0');
	return true;
}

/* The zone as seconds to take away. *ret_local: there is none. */
static bool take_zone(const char **text, int64_t *ret_seconds, bool *ret_local)
{
	const char sign = **text;
	int hours, minutes;
	*ret_local = sign == '\0';
	if (*ret_local)
		return true;
	if (sign == 'Z' || sign == 'z') {
		++*text;
		return true;
	}
	if ((sign != '+' && sign != '-') || !take_part(text, sign, &hours) ||
	    !take_part(text, ':', &minutes))
		return false;
	*ret_seconds = (hours * 60 + minutes) * (sign == '-' ? -60 : 60);
	return true;
}

static bool is_moment(const struct tm *tm)
{
	return tm->tm_mon >= 0 && tm->tm_mon < 12 && tm->tm_mday >= 1 && tm->tm_mday <= 31 &&
	       tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

static int parse_moment(const char *text, uint64_t *ret_ms)
{
	struct tm tm = {.tm_isdst = -1};
	int64_t ms = 0, zone = 0;
	bool local = true;
	if (!take_fixed(&text, 4, &tm.tm_year) || !take_part(&text, '-', &tm.tm_mon) ||
	    !take_part(&text, '-', &tm.tm_mday))
		return -EINVAL;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	if (*text && (!strchr("Tt ", *text) || (text++, !take_clock(&text, &tm, &ms)) ||
		      !take_zone(&text, &zone, &local)))
		return -EINVAL;
	const int day = tm.tm_mday;
	if (*text || !is_moment(&tm))
		return -EINVAL;
	const int64_t seconds = (local ? mktime(&tm) : timegm(&tm)) - zone;
	/* The 31st of a month that has none was made the next one's first. */
	if (tm.tm_mday != day)
		return -EINVAL;
	if (seconds < 0)
		return -ERANGE;
	*ret_ms = (uint64_t)(seconds * 1000 + ms);
	return 0;
}

int cli_parse_time(const char *text, uint64_t *ret_ms)
{
	/* A date is told from a number by the "-" behind its year. */
	if (strcspn(text, "-") == 4 && text[4])
		return parse_moment(text, ret_ms);
	uint64_t age;
	const uint64_t now = (uint64_t)coop_clock_wall_ms();
	int r = cli_parse_duration(text, &age);
	if (r < 0)
		return r;
	*ret_ms = age < now ? now - age : 0;
	return 0;
}

int cli_parse_env(const char *text, char name[CLI_ENV_NAME_MAX], const char **ret_value)
{
	size_t length = strcspn(text, "=");
	if (length == 0 || isdigit((unsigned char)*text))
		return -EINVAL;
	if (length >= CLI_ENV_NAME_MAX)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return -EINVAL;
	memcpy(name, text, length);
	name[length] = '\0';
	*ret_value = text[length] ? text + length + 1 : NULL;
	return 0;
}
