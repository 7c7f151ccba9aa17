/* Sizes, durations and shares as people write them, in each of the places that take some: on the
 * command line, in the keeper's settings, and as limits and shares of sandboxes. What one takes
 * another may refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/text/units.h"
#include "doors/cli/parse.h"
#include "interface/err.h"
#include "keeper/conf/settings.h"
#include "sandbox/policy/limits.h"
#include "sandbox/policy/policy.h"
#include "sandbox/policy/shares.h"

#define REFUSED (-1)

/* What each place makes of a word. */
static int64_t on_line(const char *text, int parse(const char *, uint64_t *))
{
	uint64_t value = 0;

	return parse(text, &value) < 0 ? REFUSED : (int64_t)value;
}

static int64_t as_size(const char *text)
{
	return on_line(text, cli_parse_size);
}

static int64_t as_duration(const char *text)
{
	return on_line(text, cli_parse_duration);
}

static int64_t as_setting(const char *name, const char *text)
{
	struct coop_settings settings;
	struct coop_err err = {0};
	char assignment[128];

	coop_settings_defaults(&settings);
	(void)snprintf(assignment, sizeof assignment, "%s=%s", name, text);
	if (coop_settings_set(&settings, assignment, &err) < 0)
		return REFUSED;
	return strcmp(name, "spool_total_bytes") == 0 ? settings.spool_total_bytes
	       : strcmp(name, "idle_exit_ms") == 0    ? settings.idle_exit_ms
						      : settings.max_events;
}

static int64_t as_limit(const char *name, const char *text)
{
	struct coop_sandbox_limits limits = {0};
	struct coop_err err = {0};

	if (coop_limits_set(&limits, name, name, text, &err) < 0)
		return REFUSED;
	return limits.memory_bytes + limits.cpu_quota_millis + limits.max_pids;
}

/* A percentage counts from a million on. */
static int64_t as_share(const char *key, const char *text)
{
	struct coop_shares shares;
	struct coop_err err = {0};
	int i = strcmp(key, "agent_memory_bytes") == 0 ? COOP_SHARE_AGENT_MEMORY
						       : COOP_SHARE_AGENT_PIDS;

	coop_shares_init(&shares);
	if (coop_shares_set(&shares, key, text, &err) < 0)
		return REFUSED;
	return shares.of[i].amount + (shares.of[i].percent ? 1000000 : 0);
}

#define K 1024LL
#define M (K * K)
#define G (K * M)
#define NO REFUSED

static void sizes(void **state)
{
	static const struct {
		const char *text;
		int64_t size, setting, limit, share;
	} cases[] = {
		{"4194304", 4 * M, 4 * M, 4 * M, 4 * M},
		{"4096K", 4 * M, 4 * M, 4 * M, 4 * M},
		{"512M", 512 * M, 512 * M, 512 * M, 512 * M},
		{"512m", 512 * M, 512 * M, 512 * M, 512 * M},
		{"2g", 2 * G, 2 * G, 2 * G, 2 * G},
		{"1T", K * G, K * G, K * G, K * G},
		{"007M", 7 * M, 7 * M, 7 * M, 7 * M},
		{"512MB", 512 * M, NO, NO, NO},
		{"512MiB", 512 * M, NO, NO, NO},
		{"4194304b", 4 * M, NO, NO, NO},
		{"1.5M", 3 * M / 2, NO, NO, NO},
		{"1.5", 1, NO, NO, NO},
		{"0", 0, NO, NO, NO},
		{"1024T", K * K * G, NO, K * K * G, K * K * G},
		{"1025T", 1025 * K * G, NO, NO, NO},
		{"8388608T", NO, NO, NO, NO},
		{"9223372036854775807", INT64_MAX, NO, NO, NO},
		{"9223372036854775808", NO, NO, NO, NO},
		{"99999999999999999999", NO, NO, NO, NO},
		{"", NO, NO, NO, NO},
		{"M", NO, NO, NO, NO},
		{"-1M", NO, NO, NO, NO},
		{"+1M", NO, NO, NO, NO},
		{" 1M", NO, NO, NO, NO},
		{"1 M", NO, NO, NO, NO},
		{"4194304 ", NO, NO, NO, NO},
		{"1 ", NO, NO, NO, NO},
		{"1MM", NO, NO, NO, NO},
		{"1P", NO, NO, NO, NO},
		{"1.M", NO, NO, NO, NO},
		{".5M", NO, NO, NO, NO},
		{"0x10M", NO, NO, NO, NO},
		{"none", NO, NO, NO, 0},
		{"50%", NO, NO, NO, 1000050},
		{"50 %", NO, NO, NO, NO},
		{"0%", NO, NO, NO, NO},
		{"100%", NO, NO, NO, 1000100},
		{"101%", NO, NO, NO, NO},
		{"1.5%", NO, NO, NO, NO},
		{"1K%", NO, NO, NO, NO},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *text = cases[i].text;
		print_message("%s\n", text);
		assert_int_equal(as_size(text), cases[i].size);
		assert_int_equal(as_setting("spool_total_bytes", text), cases[i].setting);
		assert_int_equal(as_limit("memory_bytes", text), cases[i].limit);
		assert_int_equal(as_share("agent_memory_bytes", text), cases[i].share);
	}
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		int64_t duration, setting;
	} cases[] = {
		{"30", 30000, 30},
		{"30s", 30000, 30000},
		{"30S", 30000, 30000},
		{"250ms", 250, 250},
		{"5m", 300000, 300000},
		{"2h", 7200000, 7200000},
		{"0", 0, 0},
		{"1d", 86400000, 86400000},
		{"1.5s", 1500, NO},
		{"0.25", 250, NO},
		{"1sec", NO, NO},
		{"s", NO, NO},
		{"", NO, NO},
		{"-5s", NO, NO},
		{"5 s", NO, NO},
		{"1w", NO, NO},
		{"1M", 60000, 60000},
		{"1m30s", NO, NO},
		{"1K", NO, NO},
		{"106751991168d", NO, NO},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		print_message("%s\n", cases[i].text);
		assert_int_equal(as_duration(cases[i].text), cases[i].duration);
		assert_int_equal(as_setting("idle_exit_ms", cases[i].text), cases[i].setting);
	}
}

static void counts(void **state)
{
	static const struct {
		const char *text;
		int64_t count, setting, limit, share;
	} cases[] = {
		{"1024", 1024, 1024, 1024, 1024}, {"1K", NO, NO, NO, NO},
		{"1024s", NO, NO, NO, NO},        {"1024.0", NO, NO, NO, NO},
		{"0100", 100, 100, 100, 100},     {"0", 0, NO, NO, NO},
		{"-1", NO, NO, NO, NO},           {"", NO, NO, NO, NO},
		{"20%", NO, NO, NO, 1000020},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		print_message("%s\n", cases[i].text);
		assert_int_equal(on_line(cases[i].text, cli_parse_count), cases[i].count);
		assert_int_equal(as_setting("max_events", cases[i].text), cases[i].setting);
		assert_int_equal(as_limit("max_pids", cases[i].text), cases[i].limit);
		assert_int_equal(as_share("agent_max_pids", cases[i].text), cases[i].share);
	}
}

static void cores(void **state)
{
	static const struct {
		const char *text;
		int64_t thousandths, limit;
	} cases[] = {
		{"1", 1000, 1000},     {"0.5", 500, 500},   {"1.25", 1250, 1250},
		{"1.125", 1125, 1125}, {"0.001", 1, 1},     {"4096", 4096000, 4096000},
		{"4097", 4097000, NO}, {"00001", 1000, NO}, {"0001", 1000, 1000},
		{"1.1255", NO, NO},    {"1.", NO, NO},      {".5", NO, NO},
		{"", NO, NO},          {"0", 0, NO},        {"1k", NO, NO},
		{"1.5k", NO, NO},      {"-1", NO, NO},      {"1,5", NO, NO},
		{"1e2", NO, NO},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		print_message("%s\n", cases[i].text);
		assert_int_equal(on_line(cases[i].text, coop_units_thousandths),
				 cases[i].thousandths);
		assert_int_equal(as_limit("cpu_quota", cases[i].text), cases[i].limit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(durations),
		cmocka_unit_test(counts),
		cmocka_unit_test(cores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
