/* The environment of a command: what the operator's rules let through, what they leave out, what a
 * restricted agent may not set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "keeper/conf/env.h"

static void rule(struct coop_env_rules *rules, const char *key, const char *value)
{
	struct coop_err err = {0};

	int r = coop_env_rules_set(rules, key, value, &err);
	if (r < 0)
		fail_msg("%s = %s: %s", key, value, err.message);
}

static int build(const char *json, const struct coop_env_rules *rules, bool restricted,
		 struct coop_env *ret, struct coop_err *err)
{
	json_t *args = json_loads(json, 0, NULL);

	assert_non_null(args);
	const struct coop_env_how how = {.rules = rules, .restricted = restricted, .n = 7};
	int r = coop_env_build(args, &how, ret, err);
	json_decref(args);
	return r;
}

static struct coop_env built(const char *json, const struct coop_env_rules *rules, bool restricted)
{
	struct coop_env env = {0};
	struct coop_err err = {0};

	if (build(json, rules, restricted, &env, &err) < 0)
		fail_msg("%s: %s", json, err.message);
	return env;
}

static void without_rules(void **state)
{
	static const struct coop_env_rules none;
	struct coop_err err = {0};
	struct coop_env env = built("{\"base_env\": {\"PATH\": \"/p\", \"LC_ALL\": \"C\"},"
				    " \"env\": {\"LD_PRELOAD\": \"x\", \"MY_TOKEN\": \"t\"}}",
				    &none, false);

	assert_string_equal(coop_env_get(&env, "PATH"), "/p");
	assert_string_equal(coop_env_get(&env, "LC_ALL"), "C");
	assert_string_equal(coop_env_get(&env, "COOP_PROCESS"), "7");
	assert_string_equal(coop_env_get(&env, "LD_PRELOAD"), "x");
	assert_string_equal(coop_env_get(&env, "MY_TOKEN"), "t");
	assert_non_null(coop_env_get(&env, "HOME"));
	assert_null(coop_env_get(&env, "HOM"));
	assert_null(coop_env_get(&env, "GOFLAGS"));
	coop_env_clear(&env);
	assert_true(build("{\"base_env\": {\"GOFLAGS\": \"secret\"}}", &none, false, &env, &err) <
		    0);
	assert_int_equal(err.code, COOP_INVALID_INPUT);
	assert_non_null(strstr(err.details, "base_env.GOFLAGS"));
	assert_null(strstr(err.message, "secret"));
	assert_null(env.variables);
}

static void inherited(void **state)
{
	struct coop_env_rules rules = {0};
	struct coop_err err = {0};
	struct coop_env env;

	rule(&rules, "inherit", "GOFLAGS");
	rule(&rules, "inherit", "CI_*");
	rule(&rules, "inherit", "LD_*");
	rule(&rules, "deny", "*_CREDENTIALS");
	env = built("{\"base_env\": {\"GOFLAGS\": \"-v\", \"CI_JOB\": \"1\", \"CI_TOKEN\": \"t\","
		    " \"CI_Api_Key\": \"k\", \"CI_KEY\": \"k\", \"CI_db_password\": \"p\","
		    " \"CI_SECRET\": \"s\", \"CI_CREDENTIALS\": \"c\", \"LD_PRELOAD\": \"l\","
		    " \"CI_TOKENS\": \"3\"}}",
		    &rules, false);
	assert_string_equal(coop_env_get(&env, "GOFLAGS"), "-v");
	assert_string_equal(coop_env_get(&env, "CI_JOB"), "1");
	assert_string_equal(coop_env_get(&env, "CI_TOKENS"), "3");
	static const char *const left_out[] = {"CI_TOKEN",       "CI_Api_Key", "CI_KEY",
					       "CI_db_password", "CI_SECRET",  "CI_CREDENTIALS",
					       "LD_PRELOAD"};
	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
		assert_null(coop_env_get(&env, left_out[i]));
	coop_env_clear(&env);
	assert_true(build("{\"base_env\": {\"GOFLAGSX\": \"x\"}}", &rules, false, &env, &err) < 0);
	assert_int_equal(err.code, COOP_INVALID_INPUT);
	coop_env_rules_clear(&rules);
	assert_null(rules.inherit.items);
}

/* The operator's values lie over the standard ones and under a door's; what he denies comes from no
 * door. */
static void base(void **state)
{
	struct coop_env_rules rules = {0};
	struct coop_env env;

	rule(&rules, "set", "LANG=C.UTF-8");
	rule(&rules, "set", "CI=yes=no");
	rule(&rules, "set", "EMPTY=");
	rule(&rules, "set", "PATH=/opt/bin");
	rule(&rules, "set", "TZ=UTC");
	rule(&rules, "deny", "TZ");
	rule(&rules, "deny", "SHELL");
	rule(&rules, "deny", "PATH");
	rule(&rules, "deny", "HOME");
	env = built("{}", &rules, false);
	assert_string_equal(coop_env_get(&env, "LANG"), "C.UTF-8");
	assert_string_equal(coop_env_get(&env, "CI"), "yes=no");
	assert_string_equal(coop_env_get(&env, "EMPTY"), "");
	assert_string_equal(coop_env_get(&env, "PATH"), "/opt/bin");
	assert_non_null(coop_env_get(&env, "HOME"));
	assert_null(coop_env_get(&env, "SHELL"));
	coop_env_clear(&env);
	env = built("{\"base_env\": {\"LANG\": \"C\", \"PATH\": \"/p\", \"TZ\": \"Asia/Tokyo\", "
		    "\"SHELL\": \"/x\"},"
		    " \"env\": {\"SHELL\": \"/y\"}, \"env_remove\": [\"CI\"]}",
		    &rules, false);
	assert_string_equal(coop_env_get(&env, "LANG"), "C");
	assert_string_equal(coop_env_get(&env, "PATH"), "/p");
	assert_string_equal(coop_env_get(&env, "TZ"), "UTC");
	assert_string_equal(coop_env_get(&env, "SHELL"), "/y");
	assert_null(coop_env_get(&env, "CI"));
	coop_env_clear(&env);
	env = built("{\"env_mode\": \"replace\"}", &rules, false);
	assert_int_equal(env.count, 1);
	coop_env_clear(&env);
	coop_env_rules_clear(&rules);
}

static void restricted_agents(void **state)
{
	static const char *const names[] = {"LD_PRELOAD",   "LD_X",     "DYLD_INSERT_LIBRARIES",
					    "BASH_ENV",     "ENV",      "GCONV_PATH",
					    "NODE_OPTIONS", "PERL5OPT", "PYTHONHOME",
					    "PYTHONPATH",   "RUBYOPT",  "ZDOTDIR"};
	struct coop_env_rules rules = {0};
	struct coop_env env = {0};
	char json[256];

	rule(&rules, "inherit", "*");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct coop_err err = {0};
		(void)snprintf(json, sizeof json, "{\"env\": {\"%s\": \"value\"}}", names[i]);
		assert_true(build(json, &rules, true, &env, &err) < 0);
		assert_int_equal(err.code, COOP_CAPABILITY_DENIED);
		(void)snprintf(json, sizeof json, "\"field\":\"env.%s\"", names[i]);
		assert_string_equal(err.details, json);
		assert_null(strstr(err.message, "value"));
		/* Offered as base it is left out: that argument is the client's to fill too. */
		(void)snprintf(json, sizeof json, "{\"base_env\": {\"%s\": \"value\"}}", names[i]);
		env = built(json, &rules, true);
		assert_null(coop_env_get(&env, names[i]));
		coop_env_clear(&env);
	}
	env = built("{\"env\": {\"PYTHONPATHS\": \"1\", \"ENVX\": \"2\", \"OLD_X\": \"3\"}}",
		    &rules, true);
	assert_string_equal(coop_env_get(&env, "OLD_X"), "3");
	coop_env_clear(&env);
	env = built("{\"base_env\": {\"PYTHONPATH\": \"/x\"}}", &rules, false);
	assert_string_equal(coop_env_get(&env, "PYTHONPATH"), "/x");
	coop_env_clear(&env);
	coop_env_rules_clear(&rules);
}

static void patterns(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool fits;
	} cases[] = {
		{"A", "A", true},         {"A", "AB", false},         {"AB", "A", false},
		{"*", "A", true},         {"A*", "A", true},          {"A*", "ABC", true},
		{"A*", "BA", false},      {"*A", "BA", true},         {"*A", "BAB", false},
		{"*A*", "BAB", true},     {"A*B*C", "AxBxBxC", true}, {"A*B*C", "AxBxBxD", false},
		{"*AB*AB", "ABAB", true}, {"*AB*AB", "ABA", false},   {"a", "A", false},
		{"**A", "xA", true},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct coop_env_rules rules = {0};
		rule(&rules, "deny", cases[i].pattern);
		if (coop_env_rules_denies(&rules, cases[i].name) != cases[i].fits)
			fail_msg("%s on %s", cases[i].pattern, cases[i].name);
		coop_env_rules_clear(&rules);
	}
}

static void refused_rules(void **state)
{
	static const char *const bad[][2] = {
		{"inherit", ""},      {"inherit", "A-B"}, {"inherit", "1A"},  {"inherit", "*_X"},
		{"inherit", "A**"},   {"inherit", "A B"}, {"deny", ""},       {"deny", "A=B"},
		{"deny", "A?"},       {"set", ""},        {"set", "hunter2"}, {"set", "=hunter2"},
		{"set", "1=hunter2"}, {"set", "A B=x"},   {"set", "TWICE=2"}, {"other", "x"},
		{"Inherit", "x"},
	};
	struct coop_env_rules rules = {0};
	char longest[COOP_ENV_RULES_PATTERN_MAX + 2];

	rule(&rules, "set", "TWICE=1");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct coop_err err = {0};
		if (coop_env_rules_set(&rules, bad[i][0], bad[i][1], &err) == 0)
			fail_msg("%s = %s was taken", bad[i][0], bad[i][1]);
		assert_int_equal(err.code, COOP_INVALID_INPUT);
		assert_null(strstr(err.message, "hunter2"));
	}
	assert_int_equal(rules.inherit.count + rules.deny.count, 0);
	assert_int_equal(rules.set.count, 1);
	memset(longest, 'A', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	struct coop_err err = {0};
	assert_true(coop_env_rules_set(&rules, "deny", longest, &err) < 0);
	rule(&rules, "deny", longest + 1);
	for (unsigned i = 0; i < COOP_ENV_RULES_MAX; i++)
		rule(&rules, "inherit", "A");
	assert_true(coop_env_rules_set(&rules, "inherit", "A", &err) < 0);
	coop_env_rules_clear(&rules);
}

static void written(void **state)
{
	struct coop_env_rules rules = {0};
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	rule(&rules, "inherit", "GOFLAGS");
	rule(&rules, "inherit", "CI_*");
	rule(&rules, "set", "X=hunter2");
	coop_env_rules_write(&rules, &w, NULL);
	assert_int_equal(coop_buf_append(&out, "", 1), 0);
	assert_string_equal((const char *)coop_buf_front(&out), "[\"GOFLAGS\",\"CI_*\"]");
	coop_buf_clear(&out);
	coop_env_rules_clear(&rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rules), cmocka_unit_test(inherited),
		cmocka_unit_test(base),          cmocka_unit_test(restricted_agents),
		cmocka_unit_test(patterns),      cmocka_unit_test(refused_rules),
		cmocka_unit_test(written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
