/* The operator's settings: known names, whole numbers or numbers with a unit, within bounds;
 * anything else changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "keeper/conf/settings.h"

static void taken(void **state)
{
	struct coop_settings settings;
	struct coop_err err = {0};

	coop_settings_defaults(&settings);
	assert_int_equal(settings.max_running, 256);
	assert_int_equal(settings.exit_retention_ms, 600000);
	assert_int_equal(coop_settings_set(&settings, "max_running=5000", &err), 0);
	assert_int_equal(settings.max_running, 5000);
	assert_int_equal(coop_settings_set(&settings, "idle_exit_ms=0", &err), 0);
	assert_int_equal(settings.idle_exit_ms, 0);
	assert_int_equal(coop_settings_set(&settings, "max_history=0", &err), 0);
	assert_int_equal(settings.max_history, 0);
}

/* The table of docs/PROTOCOL.md section 8. */
static void standard_values(void **state)
{
	struct coop_settings settings;

	coop_settings_defaults(&settings);
	assert_int_equal(settings.agent_max_running, 64);
	assert_int_equal(settings.principal_max_running, 256);
	assert_int_equal(settings.host_max_running, 1024);
	assert_int_equal(settings.max_retained, 32);
	assert_int_equal(settings.max_finished, 64);
	assert_int_equal(settings.max_receipts, 1024);
	assert_int_equal(settings.max_agents, 4096);
	assert_int_equal(settings.max_tokens, 4096);
	assert_int_equal(settings.max_sessions, 256);
	assert_int_equal(settings.spool_stream_bytes, 64 << 20);
	assert_int_equal(settings.max_lifetime_ms, 6 * 3600000);
	assert_int_equal(settings.persistent_idle_ms, 1800000);
	assert_int_equal(settings.max_history, 100000);
	assert_int_equal(settings.audit_max_bytes, 64 << 20);
	assert_int_equal(settings.audit_files, 8);
	assert_int_equal(settings.given, 0);
}

static void with_units(void **state)
{
	static const struct {
		const char *assignment;
		int64_t value;
		size_t offset;
	} cases[] = {
#define CASE(name, text, value) {#name "=" text, value, offsetof(struct coop_settings, name)}
		CASE(spool_stream_bytes, "4096", 4096),    CASE(spool_stream_bytes, "4K", 4096),
		CASE(spool_stream_bytes, "64m", 64 << 20), CASE(spool_total_bytes, "2G", 2LL << 30),
		CASE(spool_total_bytes, "1T", 1LL << 40),  CASE(audit_max_bytes, "1M", 1 << 20),
		CASE(max_lifetime_ms, "1500ms", 1500),     CASE(max_lifetime_ms, "30s", 30000),
		CASE(max_lifetime_ms, "5m", 300000),       CASE(max_lifetime_ms, "6h", 21600000),
		CASE(max_lifetime_ms, "2d", 172800000),    CASE(idle_exit_ms, "0s", 0),
#undef CASE
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct coop_settings settings;
		struct coop_err err = {0};
		int64_t value;
		coop_settings_defaults(&settings);
		assert_int_equal(coop_settings_set(&settings, cases[i].assignment, &err), 0);
		memcpy(&value, (char *)&settings + cases[i].offset, sizeof value);
		assert_int_equal(value, cases[i].value);
	}
}

static void refused(void **state)
{
	static const char *const bad[] = {
		"",
		"=",
		"=5",
		"max_running",
		"max_running=",
		"max_running=0",
		"max_running=-1",
		"max_running=+1",
		"max_running= 1",
		"max_running=1 ",
		"max_running=5x",
		"max_running=5.0",
		"max_running=1K",
		"max_running=99999999999999999999",
		"max_runnin=5",
		"max_running2=5",
		"MAX_RUNNING=5",
		"nothing=5",
		"given=5",
		"idle_exit_ms=5M0",
		"idle_exit_ms=s",
		"idle_exit_ms=1K",
		"spool_stream_bytes=30s",
		"spool_stream_bytes=4KB",
		"spool_stream_bytes=4095",
		"spool_total_bytes=9000000000000T",
		"audit_files=0",
		"audit_files=1001",
		"audit_max_bytes=4095",
	};
	struct coop_settings settings, before;

	coop_settings_defaults(&before);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct coop_err err = {0};
		coop_settings_defaults(&settings);
		assert_true(coop_settings_set(&settings, bad[i], &err) < 0);
		assert_int_equal(err.code, COOP_INVALID_INPUT);
		assert_true(err.message[0]);
		assert_memory_equal(&settings, &before, sizeof before);
	}
}

/* Who raises only max_running gets it; who says the others himself gets these. */
static void finished(void **state)
{
	struct coop_settings settings;
	struct coop_err err = {0};

	coop_settings_defaults(&settings);
	coop_settings_finish(&settings);
	assert_int_equal(settings.principal_max_running, 256);
	assert_int_equal(settings.host_max_running, 1024);

	assert_int_equal(coop_settings_set(&settings, "max_running=5000", &err), 0);
	coop_settings_finish(&settings);
	assert_int_equal(settings.principal_max_running, 5000);
	assert_int_equal(settings.host_max_running, 5000);

	coop_settings_defaults(&settings);
	assert_int_equal(coop_settings_set(&settings, "max_running=5000", &err), 0);
	assert_int_equal(coop_settings_set(&settings, "principal_max_running=2000", &err), 0);
	coop_settings_finish(&settings);
	assert_int_equal(settings.principal_max_running, 2000);
	assert_int_equal(settings.host_max_running, 2000);

	coop_settings_defaults(&settings);
	assert_int_equal(coop_settings_set(&settings, "max_running=5000", &err), 0);
	assert_int_equal(coop_settings_set(&settings, "host_max_running=10", &err), 0);
	coop_settings_finish(&settings);
	assert_int_equal(settings.max_running, 5000);
	assert_int_equal(settings.principal_max_running, 5000);
	assert_int_equal(settings.host_max_running, 10);
}

static void bits(void **state)
{
	struct coop_settings settings;
	struct coop_err err = {0};

	assert_int_equal(coop_settings_bit("nothing"), 0);
	assert_int_equal(coop_settings_bit(""), 0);
	assert_int_not_equal(coop_settings_bit("audit_files"), 0);
	coop_settings_defaults(&settings);
	assert_int_equal(coop_settings_set(&settings, "audit_files=8", &err), 0);
	assert_int_equal(settings.given, coop_settings_bit("audit_files"));
}

static void written(void **state)
{
	struct coop_settings settings;
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	coop_settings_defaults(&settings);
	coop_settings_write(&settings, &w, NULL);
	assert_false(w.failed);
	assert_int_equal(coop_buf_append(&out, "", 1), 0);
	const char *text = (const char *)coop_buf_front(&out);
	assert_non_null(strstr(text, "{\"max_running\":256,"));
	assert_non_null(strstr(text, "\"audit_max_bytes\":67108864,"));
	assert_null(strstr(text, "given"));
	coop_buf_clear(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken),      cmocka_unit_test(standard_values),
		cmocka_unit_test(with_units), cmocka_unit_test(refused),
		cmocka_unit_test(finished),   cmocka_unit_test(bits),
		cmocka_unit_test(written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
