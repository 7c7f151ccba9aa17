/* Names of signals, both ways. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/text/signame.h"

static void format(void **state)
{
	char text[COOP_SIGNAME_TEXT];

	coop_signame_format(SIGKILL, text);
	assert_string_equal(text, "SIGKILL");
	coop_signame_format(SIGRTMIN, text);
	assert_string_equal(text, "SIGRTMIN");
	coop_signame_format(SIGRTMIN + 3, text);
	assert_string_equal(text, "SIGRTMIN+3");
	/* Numbers that the C library keeps for itself, or that do not exist, still get a name. */
	coop_signame_format(33, text);
	assert_string_equal(text, "SIG33");
	coop_signame_format(-2000000000, text);
	assert_string_equal(text, "SIG-2000000000");
}

static void parse(void **state)
{
	assert_int_equal(coop_signame_parse("SIGTERM"), SIGTERM);
	assert_int_equal(coop_signame_parse("term"), SIGTERM);
	assert_int_equal(coop_signame_parse("Sigint"), SIGINT);
	assert_int_equal(coop_signame_parse("15"), 15);
	assert_int_equal(coop_signame_parse("rtmin+1"), SIGRTMIN + 1);
	assert_int_equal(coop_signame_parse("SIGRTMAX-1"), SIGRTMAX - 1);
	assert_int_equal(coop_signame_parse("RTMAX"), SIGRTMAX);
}

static void refused(void **state)
{
	static const char *const bad[] = {
		"",           "SIG",      "SIGNOTHING", "0",        "-9",
		"65",         "9x",       "9 ",         " 9",       "99999999999999999999",
		"RTMIN+99",   "RTMIN+-1", "RTMIN+",     "RTMAX- 1", "KILL ",
		"SIGSIGTERM",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(coop_signame_parse(bad[i]), -EINVAL);
}

/* Every number that can be sent survives the way there and back, save those that have no name. */
static void round_trip(void **state)
{
	for (int number = 1; number <= SIGRTMAX; number++) {
		char text[COOP_SIGNAME_TEXT];
		if (number >= 32 && number < SIGRTMIN)
			continue;
		coop_signame_format(number, text);
		assert_int_equal(coop_signame_parse(text), number);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(format),
		cmocka_unit_test(parse),
		cmocka_unit_test(refused),
		cmocka_unit_test(round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
