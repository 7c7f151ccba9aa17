/* The option parser of the command line: every form of an option, what ends the options, and every
 * way to be wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "doors/cli/options.h"

struct settings {
	bool detach, terminal;
	const char *tag, *overflow;
	struct cli_number timeout, ring, count, since;
	struct cli_list env, risk, denied;
};

static const struct cli_option options[] = {
	{"detach", 'd', CLI_FLAG, offsetof(struct settings, detach), "detach", NULL, ""},
	{"tty", 't', CLI_FLAG, offsetof(struct settings, terminal), NULL, NULL, ""},
	{"tag", 0, CLI_TEXT, offsetof(struct settings, tag), "tag", "T", ""},
	{"overflow", 0, CLI_CHOICE, offsetof(struct settings, overflow), "overflow",
	 "drop_oldest|spool", ""},
	{"timeout", 0, CLI_DURATION, offsetof(struct settings, timeout), "timeout_ms", "D", ""},
	{"ring", 0, CLI_SIZE, offsetof(struct settings, ring), "ring_bytes", "S", ""},
	{"count", 'n', CLI_COUNT, offsetof(struct settings, count), NULL, "N", ""},
	{"since", 0, CLI_TIME, offsetof(struct settings, since), "since", "T", ""},
	{"risk", 0, CLI_PAIRS, offsetof(struct settings, risk), "policy.risk", "L=A", ""},
	{"deny", 0, CLI_LIST, offsetof(struct settings, denied), "policy.denied", "C", ""},
	{"env", 'e', CLI_LIST, offsetof(struct settings, env), "env", "K=V", ""},
	{0},
};

static struct settings settings;
static size_t operands;
static char problem[CLI_OPTION_ERROR_MAX];

static int parse(enum cli_operands kind, char **words)
{
	const struct cli_option_set set = {options, &settings};
	cli_options_free(options, &settings);
	memset(&settings, 0, sizeof(settings));
	operands = 99;
	problem[0] = '\0';
	return cli_options_parse(&set, 1, kind, words, &operands, problem);
}

/* The parser moves words about and leaves their letters alone. */
#define WORDS(...) ((char **)(const char *[]){__VA_ARGS__, NULL})

static void forms(void **state)
{
	char tag[] = "--tag=a=b", env[] = "-eA=1", both[] = "-dtn5";
	char **words =
		WORDS(tag, "x", both, env, "-e", "B=2", "--timeout", "150ms", "--ring=1M", "y");
	assert_int_equal(parse(CLI_OPERANDS_MIXED, words), 0);
	assert_int_equal(operands, 2);
	assert_string_equal(words[0], "x");
	assert_string_equal(words[1], "y");
	assert_null(words[2]);
	assert_true(settings.detach && settings.terminal);
	assert_string_equal(settings.tag, "a=b");
	assert_int_equal(settings.count.value, 5);
	assert_int_equal(settings.timeout.value, 150);
	assert_int_equal(settings.ring.value, 1 << 20);
	assert_int_equal(settings.env.count, 2);
	assert_string_equal(settings.env.items[0], "A=1");
	assert_string_equal(settings.env.items[1], "B=2");
}

static void end_of_options(void **state)
{
	char **words = WORDS("-d", "prog", "-t", "--tag");
	assert_int_equal(parse(CLI_OPERANDS_LAST, words), 0);
	assert_int_equal(operands, 3);
	assert_true(settings.detach);
	assert_false(settings.terminal);
	assert_string_equal(words[1], "-t");

	words = WORDS("-d", "--", "--tag", "--");
	assert_int_equal(parse(CLI_OPERANDS_LAST, words), 0);
	assert_int_equal(operands, 2);
	assert_string_equal(words[0], "--tag");
	assert_string_equal(words[1], "--");

	words = WORDS("-", "-d");
	assert_int_equal(parse(CLI_OPERANDS_MIXED, words), 0);
	assert_int_equal(operands, 1);
	assert_string_equal(words[0], "-");
	assert_true(settings.detach);

	words = WORDS("--set", "-x");
	assert_int_equal(parse(CLI_OPERANDS_ALL, words), 0);
	assert_int_equal(operands, 2);
}

static void refused(void **state)
{
	static const struct {
		const char *words[3], *says;
	} rows[] = {
		{{"--nope"}, "--nope"},
		{{"-x"}, "-x"},
		{{"--tag"}, "needs a value"},
		{{"-n"}, "needs a value"},
		{{"--detach=1"}, "takes no value"},
		{{"--ta", "x"}, "--ta"},
		{{"--overflow", "spoo"}, "drop_oldest|spool"},
		{{"--overflow", ""}, "drop_oldest|spool"},
		{{"--overflow", "drop_oldest|spool"}, "expected one of"},
		{{"--timeout", "soon"}, "30s"},
		{{"--timeout", "99999999999999999999"}, "too large"},
		{{"--ring", "big"}, "64K"},
		{{"--count", "1.5"}, "a number"},
		{{"--since", "soon"}, "an age such as 2h"},
		{{"--risk", "sudo"}, "expected L=A"},
		{{"--risk", "=deny"}, "expected L=A"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char **words = WORDS(rows[i].words[0], rows[i].words[1]);
		assert_int_equal(parse(CLI_OPERANDS_MIXED, words), -EINVAL);
		if (!strstr(problem, rows[i].says))
			print_error("\"%s\" without \"%s\"\n", problem, rows[i].says);
		assert_non_null(strstr(problem, rows[i].says));
	}
}

static void fields(void **state)
{
	const char *bad = NULL;
	json_t *args = json_object();
	assert_int_equal(parse(CLI_OPERANDS_MIXED,
			       WORDS("-dt", "--tag", "x", "--timeout", "1s", "-e", "A=1")),
			 0);
	assert_int_equal(cli_options_fields(options, &settings, args, &bad), 0);
	/* What was not given is absent, and what has no field too. */
	char *text = json_dumps(args, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(
		text, "{\"detach\":true,\"env\":[\"A=1\"],\"tag\":\"x\",\"timeout_ms\":1000}");
	free(text);

	assert_int_equal(parse(CLI_OPERANDS_MIXED, WORDS("--tag", "\xff")), 0);
	assert_int_equal(cli_options_fields(options, &settings, args, &bad), -EILSEQ);
	assert_string_equal(bad, "tag");
	json_decref(args);
	cli_options_free(options, &settings);
}

/* A field with a "." is a member of an object, which several options may share. */
static void nested_fields(void **state)
{
	const char *bad = NULL;
	json_t *args = json_object();
	assert_int_equal(parse(CLI_OPERANDS_MIXED,
			       WORDS("--risk", "sudo=deny", "--deny", "rm", "--risk", "x=a=b",
				     "--deny", "dd", "--since", "1970-01-01T00:00:01Z")),
			 0);
	assert_int_equal(cli_options_fields(options, &settings, args, &bad), 0);
	char *text = json_dumps(args, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(text, "{\"policy\":{\"denied\":[\"rm\",\"dd\"],\"risk\":{\"sudo\":"
				  "\"deny\",\"x\":\"a=b\"}},\"since\":1000}");
	free(text);
	for (const struct cli_option *option = options; option->name; option++)
		assert_int_equal(cli_option_given(option, &settings),
				 strcmp(option->name, "risk") == 0 ||
					 strcmp(option->name, "deny") == 0 ||
					 strcmp(option->name, "since") == 0);

	assert_int_equal(parse(CLI_OPERANDS_MIXED, WORDS("--risk", "a=\xff")), 0);
	assert_int_equal(cli_options_fields(options, &settings, args, &bad), -EILSEQ);
	assert_string_equal(bad, "risk");
	json_decref(args);
	cli_options_free(options, &settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),         cmocka_unit_test(end_of_options),
		cmocka_unit_test(refused),       cmocka_unit_test(fields),
		cmocka_unit_test(nested_fields),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
