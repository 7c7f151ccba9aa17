/* What people write on the command line: durations, sizes, counts, NAME=VALUE; right ones and wrong
 * ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/text/units.h"
#include "doors/cli/parse.h"

struct row {
	const char *text;
	int result;
	uint64_t value;
};

typedef int parser(const char *text, uint64_t *ret);

static void check(parser *parse, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 4711;
		int r = parse(rows[i].text, &value);
		if (r != rows[i].result)
			print_error("\"%s\"\n", rows[i].text);
		assert_int_equal(r, rows[i].result);
		/* Untouched on failure. */
		assert_int_equal(value, r == 0 ? rows[i].value : 4711);
	}
}

#define CHECK(parse, rows) check(parse, rows, sizeof(rows) / sizeof((rows)[0]))

static void durations(void **state)
{
	static const struct row rows[] = {
		{"30s", 0, 30000},
		{"150ms", 0, 150},
		{"5m", 0, 300000},
		{"2h", 0, 7200000},
		{"1d", 0, 86400000},
		{"7", 0, 7000},
		{"0", 0, 0},
		{"1.5s", 0, 1500},
		{"0.25", 0, 250},
		{"1.9999ms", 0, 1},
		{"10S", 0, 10000},
		{"", -EINVAL, 0},
		{"s", -EINVAL, 0},
		{"-1s", -EINVAL, 0},
		{"+1s", -EINVAL, 0},
		{" 1s", -EINVAL, 0},
		{"1 s", -EINVAL, 0},
		{"1x", -EINVAL, 0},
		{"1.", -EINVAL, 0},
		{"1.s", -EINVAL, 0},
		{".5", -EINVAL, 0},
		{"1h30m", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"99999999999999999999", -ERANGE, 0},
		{"9223372036854775807d", -ERANGE, 0},
		{"9223372036854775807ms", 0, INT64_MAX},
		{"9223372036854775808ms", -ERANGE, 0},
	};
	CHECK(cli_parse_duration, rows);
}

static void sizes(void **state)
{
	static const struct row rows[] = {
		{"4096", 0, 4096},
		{"64K", 0, 65536},
		{"1M", 0, 1 << 20},
		{"512M", 0, 512u << 20},
		{"2G", 0, 2ull << 30},
		{"1T", 0, 1ull << 40},
		{"1KiB", 0, 1024},
		{"1kb", 0, 1024},
		{"5b", 0, 5},
		{"1.5K", 0, 1536},
		{"0.5T", 0, 1ull << 39},
		{"0.999999999999T", 0, 1099510528264ull},
		{"", -EINVAL, 0},
		{"M", -EINVAL, 0},
		{"1s", -EINVAL, 0},
		{"-5", -EINVAL, 0},
		{"16777216T", -ERANGE, 0},
	};
	CHECK(cli_parse_size, rows);
}

static void counts(void **state)
{
	static const struct row rows[] = {
		{"0", 0, 0},        {"10", 0, 10},      {"", -EINVAL, 0},
		{"1k", -EINVAL, 0}, {"-1", -EINVAL, 0}, {"18446744073709551616", -ERANGE, 0},
	};
	CHECK(cli_parse_count, rows);
}

static void times(void **state)
{
	static const struct row rows[] = {
		{"1970-01-01T00:00:00Z", 0, 0},
		{"2026-01-02T03:04:05Z", 0, 1767323045000ull},
		{"2026-01-02T03:04:05.678Z", 0, 1767323045678ull},
		{"2026-01-02T03:04:05.6789999Z", 0, 1767323045678ull},
		{"2026-01-02t03:04:05z", 0, 1767323045000ull},
		{"2026-01-02 04:04:05+01:00", 0, 1767323045000ull},
		{"2026-01-01T21:34:05-05:30", 0, 1767323045000ull},
		{"2026-01-02T03:04Z", 0, 1767323040000ull},
		/* Without a zone: the one that is set below, two hours east. */
		{"2026-01-02T05:04:05", 0, 1767323045000ull},
		{"2026-01-02", 0, 1767304800000ull},
		{"2024-02-29", 0, 1709157600000ull},
		{"2026-02-29", -EINVAL, 0},
		{"2026-02-31T00:00:00Z", -EINVAL, 0},
		{"2026-13-01", -EINVAL, 0},
		{"2026-00-01", -EINVAL, 0},
		{"2026-01-00", -EINVAL, 0},
		{"2026-01-02T24:00Z", -EINVAL, 0},
		{"2026-01-02T03:60Z", -EINVAL, 0},
		{"2026-01-02T", -EINVAL, 0},
		{"2026-01-02T3:04Z", -EINVAL, 0},
		{"2026-01-02T03:04:05.Z", -EINVAL, 0},
		{"2026-01-02T03:04:05+1", -EINVAL, 0},
		{"2026-01-02T03:04:05Zx", -EINVAL, 0},
		{"2026-01-02x", -EINVAL, 0},
		{"2026-1-2", -EINVAL, 0},
		{"1969-12-31T23:00:00Z", -ERANGE, 0},
		{"-1h", -EINVAL, 0},
		{"yesterday", -EINVAL, 0},
		{"", -EINVAL, 0},
	};
	assert_int_equal(setenv("TZ", "EAST-2", 1), 0);
	CHECK(cli_parse_time, rows);
}

static void shares(void **state)
{
	static const struct row rows[] = {
		{"1", 0, 1000},
		{"1.5", 0, 1500},
		{"0.25", 0, 250},
		{"0.001", 0, 1},
		{"0", 0, 0},
		{"1.2345", -EINVAL, 0},
		{"", -EINVAL, 0},
		{".5", -EINVAL, 0},
		{"1.", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"1.5x", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"99999999999999999", -ERANGE, 0},
	};
	CHECK(coop_units_thousandths, rows);
}

static void whole_seconds(void **state)
{
	static const struct row rows[] = {
		{"30", 0, 30},   {"30s", 0, 30},       {"2m", 0, 120},      {"2000ms", 0, 2},
		{"1.5m", 0, 90}, {"1.5s", -EINVAL, 0}, {"1ms", -EINVAL, 0}, {"x", -EINVAL, 0},
	};
	CHECK(cli_parse_seconds, rows);
}

/* An age is counted back from now, and not beyond the beginning of time. */
static void ages(void **state)
{
	uint64_t ms = 0;
	const int64_t now = coop_clock_wall_ms();
	assert_int_equal(cli_parse_time("2h", &ms), 0);
	assert_in_range((uint64_t)now - ms, 7200000 - 60000, 7200000);
	assert_int_equal(cli_parse_time("1000000d", &ms), 0);
	assert_int_equal(ms, 0);
}

static void env_words(void **state)
{
	char name[CLI_ENV_NAME_MAX];
	const char *value = "untouched";

	assert_int_equal(cli_parse_env("A=b=c", name, &value), 0);
	assert_string_equal(name, "A");
	assert_string_equal(value, "b=c");
	assert_int_equal(cli_parse_env("_x9=", name, &value), 0);
	assert_string_equal(name, "_x9");
	assert_string_equal(value, "");
	assert_int_equal(cli_parse_env("HOME", name, &value), 0);
	assert_string_equal(name, "HOME");
	assert_null(value);
}

static void env_refused(void **state)
{
	static const char *const words[] = {"", "=x", "9A=x", "A B=x", "A-B=x", "\xc3\xa4=x"};
	char name[CLI_ENV_NAME_MAX], longest[CLI_ENV_NAME_MAX + 1];
	const char *value = "untouched";
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_int_equal(cli_parse_env(words[i], name, &value), -EINVAL);
	memset(longest, 'A', CLI_ENV_NAME_MAX);
	longest[CLI_ENV_NAME_MAX] = '\0';
	assert_int_equal(cli_parse_env(longest, name, &value), -ENAMETOOLONG);
	assert_string_equal(value, "untouched");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations),     cmocka_unit_test(sizes),
		cmocka_unit_test(counts),        cmocka_unit_test(env_words),
		cmocka_unit_test(env_refused),   cmocka_unit_test(times),
		cmocka_unit_test(ages),          cmocka_unit_test(shares),
		cmocka_unit_test(whole_seconds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
