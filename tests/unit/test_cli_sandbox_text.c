/* A sandbox and limits in one line for people: what holds, what holds less with the reason, and
 * what was not asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "doors/cli/cli.h"
#include "doors/cli/sandbox_text.h"

/* record.c says what a command left behind; nothing of that is looked at here. */
void cli_say(const char *format, ...)
{
	(void)format;
}

static void assert_line(void (*make)(const json_t *, char *, size_t), const char *json,
			const char *wanted)
{
	char text[512], small[8];
	json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
	assert_non_null(value);
	make(value, text, sizeof(text));
	assert_string_equal(text, wanted);
	make(value, small, sizeof(small));
	assert_int_equal(strncmp(small, wanted, sizeof(small) - 1), 0);
	json_decref(value);
}

static void sandboxes(void **state)
{
	assert_line(
		cli_sandbox_line,
		"{\"profile\":\"workspace-write\",\"workspace\":\"/w\",\"network\":\"loopback\","
		"\"protections\":{\"files\":{\"state\":\"enforced\",\"reason\":null},\"network\":{"
		"\"state\":\"enforced\",\"reason\":\"with a note\"}}}",
		"workspace-write /w, network loopback: files, network enforced");
	assert_line(
		cli_sandbox_line,
		"{\"profile\":\"read-only\",\"network\":\"none\",\"home\":\"hidden\",\"asked\":{"
		"\"home\":\"cow\"}}",
		"read-only, network none, home hidden (asked: cow)");
	assert_line(
		cli_sandbox_line,
		"{\"profile\":\"read-only\",\"home\":\"hidden\",\"asked\":{\"home\":\"hidden\"}}",
		"read-only");
	assert_line(cli_sandbox_line,
		    "{\"profile\":\"read-only\",\"home\":\"hidden\",\"asked\":{}}", "read-only");
	assert_line(
		cli_sandbox_line,
		"{\"profile\":\"read-only\",\"workspace\":null,\"network\":\"none\","
		"\"protections\":{\"files\":{\"state\":\"enforced\"},\"ipc\":{\"state\":"
		"\"partial\","
		"\"reason\":\"no namespace\"},\"memory_bytes\":{\"state\":\"none\",\"reason\":\"no "
		"cgroup\"}}}",
		"read-only, network none: files enforced; ipc partial (no namespace); "
		"memory_bytes none (no cgroup)");
	assert_line(
		cli_sandbox_line,
		"{\"profile\":\"full\",\"network\":\"host\",\"protections\":{\"files\":{\"state\":"
		"\"none\",\"reason\":null},\"network\":{\"state\":\"none\"},\"kill\":{\"state\":"
		"\"enforced\"}}}",
		"full, network host: kill enforced; without files, network");
	assert_line(cli_sandbox_line,
		    "{\"profile\":\"x\",\"protections\":{\"kill\":{\"state\":\"partial\"}}}",
		    "x: kill partial");
	assert_line(cli_sandbox_line, "null", "");
}

static void limits(void **state)
{
	assert_line(
		cli_limits_line,
		"{\"timeout_ms\":90000,\"memory_bytes\":536870912,\"cpu_quota\":1.5,\"max_pids\":"
		"64,\"max_cpu_secs\":120,\"max_open_files\":null,\"tmp_bytes\":65536}",
		"timeout 1m30s, memory 512M, cpus 1.5, processes 64, cpu time 2m00s, /tmp 64K");
	assert_line(cli_limits_line, "{\"cpu_quota\":2,\"memory_bytes\":null}", "cpus 2");
	assert_line(cli_limits_line, "{}", "");
	assert_line(cli_limits_line, "null", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sandboxes),
		cmocka_unit_test(limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
