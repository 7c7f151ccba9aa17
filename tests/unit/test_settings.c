/* The operator's settings: known names, whole numbers, within bounds; anything else changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "keeper/settings.h"

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
		"max_running=5x",
		"max_running=5.0",
		"max_running=99999999999999999999",
		"max_runnin=5",
		"max_running2=5",
		"MAX_RUNNING=5",
		"nothing=5",
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
