/* Rules and verdicts: what a level says, how levels add up, how programs are told by name and
 * file. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "policy/policy.h"

static char folder[] = "/tmp/coop-policy-XXXXXX";
static char search_path[256];

static struct coop_policy *policy_of(const char *json)
{
	struct coop_policy *policy = NULL;
	struct coop_err err = {0};
	json_t *value = json_loads(json, 0, NULL);

	assert_non_null(value);
	if (coop_policy_from_json(value, "test", &policy, &err) < 0)
		fail_msg("%s: %s", json, err.message);
	json_decref(value);
	return policy;
}

static void decide_levels(const char *const *json, size_t count, const char *line,
			  const char *const *argv, struct coop_verdict *ret)
{
	struct coop_policy *levels[4] = {0};
	const char *shell[] = {"/bin/bash", "-c", line, NULL};
	struct coop_policy_command command = {.argv = argv ? argv : shell,
					      .shell_command = argv ? NULL : line,
					      .display = line,
					      .cwd = folder,
					      .home = "/home/u",
					      .path = search_path};

	for (size_t i = 0; i < count; i++)
		levels[i] = policy_of(json[i]);
	assert_int_equal(
		coop_policy_decide((const struct coop_policy *const *)levels, count, &command, ret),
		0);
	for (size_t i = 0; i < count; i++)
		coop_policy_free(levels[i]);
	for (size_t i = 0; i < ret->count; i++) {
		assert_true(ret->decisions[i].reason[0] && ret->decisions[i].source[0]);
		assert_null(strstr(ret->decisions[i].reason, "safe"));
		assert_null(strstr(ret->decisions[i].reason, "contained"));
		if (i)
			assert_true(ret->decisions[i].action <= ret->decisions[i - 1].action);
	}
	if (ret->count)
		assert_int_equal(ret->decisions[0].action, ret->action);
}

static enum coop_action act(const char *json, const char *line)
{
	struct coop_verdict verdict;

	decide_levels(&json, 1, line, NULL, &verdict);
	return verdict.action;
}

static enum coop_action act_argv(const char *json, const char *one, const char *two)
{
	const char *argv[] = {one, two, NULL};
	struct coop_verdict verdict;

	decide_levels(&json, 1, one, argv, &verdict);
	return verdict.action;
}

#define DENIED(json, line) assert_int_equal(act(json, line), COOP_ACTION_DENY)
#define ALLOWED(json, line) assert_int_equal(act(json, line), COOP_ACTION_ALLOW)
#define DENIED_ARGV(json, one, two) assert_int_equal(act_argv(json, one, two), COOP_ACTION_DENY)
#define ALLOWED_ARGV(json, one, two) assert_int_equal(act_argv(json, one, two), COOP_ACTION_ALLOW)

static void denied(void **state)
{
	const char *sudo = "{\"denied_commands\": [\"sudo\", \"curl\"]}";

	DENIED_ARGV(sudo, "sudo", "ls");
	DENIED_ARGV(sudo, "/usr/bin/sudo", "ls");
	DENIED_ARGV(sudo, "./sudo", "ls");
	ALLOWED_ARGV(sudo, "sudoku", NULL);
	ALLOWED_ARGV(sudo, "sud", "o");
	ALLOWED_ARGV(sudo, "echo", "sudo");
	DENIED(sudo, "ls; sudo ls");
	DENIED(sudo, "su\"do\" ls");
	DENIED(sudo, "echo $(curl x)");
	DENIED(sudo, "env nice curl x");
	DENIED(sudo, "sh -c 'curl x'");
	DENIED(sudo, "find . -exec curl {} +");
	DENIED(sudo, "X=curl; $X x");
	DENIED(sudo, "if true; then curl x; fi");
	ALLOWED(sudo, "echo sudo curl");
	ALLOWED(sudo, "sudoku; curls");
	ALLOWED(sudo, "ls # sudo");
	/* The shell's own words are not exempt here. */
	DENIED("{\"denied_commands\": [\"eval\"]}", "eval ls");
	DENIED("{\"denied_commands\": [\"cd\"]}", "cd x");
	DENIED("{\"denied_commands\": [\"bash\"]}", "ls");
}

static void denied_files(void **state)
{
	char json[512], other[256], link_path[256], hard[256];

	(void)snprintf(json, sizeof json, "{\"denied_commands\": [\"%s/tool\"]}", folder);
	(void)snprintf(link_path, sizeof link_path, "%s/alias", folder);
	(void)snprintf(hard, sizeof hard, "%s/hard", folder);
	(void)snprintf(other, sizeof other, "%s/../%s/tool", folder, folder + 5);
	DENIED_ARGV(json, "tool", NULL); /* through PATH */
	DENIED_ARGV(json, "./tool", NULL);
	DENIED_ARGV(json, other, NULL);
	DENIED_ARGV(json, "alias", NULL);
	DENIED_ARGV(json, link_path, NULL);
	DENIED_ARGV(json, hard, NULL);
	DENIED(json, "cd / && alias");
	ALLOWED_ARGV(json, "other", NULL);
	ALLOWED_ARGV(json, "/nowhere/tool", NULL);
	/* By the name of the file that a link leads to. */
	DENIED_ARGV("{\"denied_commands\": [\"tool\"]}", "alias", NULL);
	DENIED_ARGV("{\"denied_commands\": [\"tool\"]}", "/nowhere/tool", NULL);
	ALLOWED_ARGV("{\"denied_commands\": [\"alias\"]}", "tool", NULL);
}

static void allowed(void **state)
{
	const char *list = "{\"allowed_commands\": [\"bash\", \"make\", \"git\"]}";
	char json[512];

	ALLOWED_ARGV(list, "make", "all");
	ALLOWED_ARGV(list, "/usr/bin/git", "status");
	DENIED_ARGV(list, "makes", NULL);
	DENIED_ARGV(list, "ls", NULL);
	ALLOWED(list, "make && git status");
	ALLOWED(list, "cd x && echo y && [ -f z ] && export A=1 && make");
	ALLOWED(list, "if true; then make; fi");
	ALLOWED(list, "f() { make; }; f");
	ALLOWED(list, "time make");
	/* A function does not hide a program of its name. */
	DENIED(list, "false && other() { make; }; other");
	ALLOWED(list, "exec make");
	DENIED(list, "make; ls");
	DENIED(list, "make | tee log");
	DENIED(list, "make $(ls)");
	DENIED(list, "git `ls`");
	DENIED(list, "env make");
	DENIED(list, "exec ls");
	DENIED(list, "command ls");
	DENIED(list, "$X make");
	DENIED(list, "make; $(git x)");
	DENIED(list, "eval \"$X\"");
	DENIED(list, "bash -c \"$X\"");
	DENIED(list, "git x | bash");
	ALLOWED(list, "bash -c make");
	DENIED(list, "bash -c ls");
	/* Without a shell these are programs. */
	DENIED_ARGV(list, "echo", "x");
	DENIED_ARGV("{\"allowed_commands\": []}", "true", NULL);
	DENIED("{\"allowed_commands\": []}", "echo");
	ALLOWED_ARGV("{\"allowed_commands\": null}", "true", NULL);
	ALLOWED_ARGV("{}", "true", NULL);
	DENIED_ARGV("{\"allowed_commands\": [\"x\"], \"denied_commands\": [\"x\"]}", "x", NULL);
	(void)snprintf(json, sizeof json, "{\"allowed_commands\": [\"%s/tool\"]}", folder);
	ALLOWED_ARGV(json, "tool", NULL);
	ALLOWED_ARGV(json, "alias", NULL);
	DENIED_ARGV(json, "/nowhere/tool", NULL);
	DENIED_ARGV(json, "other", NULL);
}

/* Denied whatever the levels say, and the reason says how to go on. */
static void too_long_to_judge(void **state)
{
	static char line[2000000];
	const char *levels[] = {"{}", "{\"allowed_commands\": [\"bash\"]}"};
	struct coop_verdict verdict;

	memset(line, ' ', sizeof line - 1);
	memcpy(line, "echo", 4);
	for (size_t i = 0; i <= 2; i++) {
		decide_levels(levels, i, line, NULL, &verdict);
		assert_int_equal(verdict.action, COOP_ACTION_DENY);
		assert_int_equal(verdict.count, 1);
		assert_string_equal(verdict.decisions[0].source, "built-in");
		assert_non_null(strstr(verdict.decisions[0].reason, "script file"));
	}
	line[1000000] = '\0';
	ALLOWED(levels[1], line);
}

/* A list is looked up in the file system only so often. */
static void many_programs(void **state)
{
	static char line[40000];
	const char *list = "{\"denied_commands\": [\"/nowhere/nmap\", \"nmap\"]}";
	size_t used = 0;

	for (unsigned i = 0; i < 3000; i++)
		used += (size_t)snprintf(line + used, sizeof line - used, "c%u;", i);
	DENIED(list, line);
	ALLOWED("{}", line);
	for (size_t i = 0; i + 4 < sizeof line; i += 4)
		memcpy(line + i, "cat;", 5);
	ALLOWED(list, line);
}

static void sourced(void **state)
{
	const char *list = "{\"allowed_commands\": [\"bash\", \"env.sh\"]}";
	char json[512];

	ALLOWED(list, ". ./env.sh && source x/env.sh");
	DENIED(list, ". ./other.sh");
	DENIED(list, "source <(echo x)");
	(void)snprintf(json, sizeof json, "{\"denied_commands\": [\"%s/plain\"]}", folder);
	DENIED(json, ". ./plain");
	DENIED(json, "source plain"); /* needs no right to be run */
	ALLOWED(json, "plain");
}

static void patterns(void **state)
{
	struct coop_verdict verdict;
	const char *two[] = {"{\"deny_patterns\": [\"drop table\"], \"risk\": {\"deny_pattern\": "
			     "\"require_approval\"}}",
			     "{\"risk\": {\"deny_pattern\": \"deny\"}}"};

	DENIED("{\"deny_patterns\": [\"drop table\"]}", "psql -c 'drop table x'");
	ALLOWED("{\"deny_patterns\": [\"drop table\"]}", "psql -c 'drop  table x'");
	DENIED("{\"deny_patterns\": [\"psql *\"]}", "psql -c x/y");
	ALLOWED("{\"deny_patterns\": [\"psql *\"]}", "ls; psql -c x");
	DENIED("{\"deny_patterns\": [\"x\", \"*psql*\"]}", "ls; psql -c");
	decide_levels(two, 1, "drop table", NULL, &verdict);
	assert_int_equal(verdict.action, COOP_ACTION_REQUIRE_APPROVAL);
	assert_int_equal(verdict.labels, 1u << COOP_RISK_DENY_PATTERN);
	assert_string_equal(verdict.decisions[0].source, "test");
	decide_levels(two, 2, "drop table", NULL, &verdict);
	assert_int_equal(verdict.action, COOP_ACTION_DENY);
	decide_levels(two, 2, "drop", NULL, &verdict);
	assert_int_equal(verdict.action, COOP_ACTION_ALLOW);
}

/* A pattern may fit what was cut off. */
static void cut(void **state)
{
	const char *argv[] = {"true", NULL};
	struct coop_policy_command command = {
		.argv = argv, .display = "true", .display_cut = true, .cwd = folder};
	struct coop_policy *level = policy_of("{\"deny_patterns\": [\"x\"]}"),
			   *none = policy_of("{}");
	const struct coop_policy *levels[] = {none, level};
	struct coop_verdict verdict;

	assert_int_equal(coop_policy_decide(levels, 1, &command, &verdict), 0);
	assert_int_equal(verdict.action, COOP_ACTION_ALLOW);
	assert_int_equal(coop_policy_decide(levels, 2, &command, &verdict), 0);
	assert_int_equal(verdict.action, COOP_ACTION_DENY);
	assert_string_equal(verdict.decisions[0].source, "test");
	assert_int_equal(verdict.labels, 1u << COOP_RISK_DENY_PATTERN);
	coop_policy_free(level);
	coop_policy_free(none);
}

static void risks(void **state)
{
	struct coop_verdict verdict;
	const char *levels[] = {"{\"risk\": {\"sudo\": \"allow\"}}",
				"{\"risk\": {\"sudo\": \"require_approval\"}}",
				"{\"risk\": {\"sudo\": \"deny\"}}"};

	for (size_t i = 1; i <= 3; i++) {
		static const enum coop_action expected[] = {
			COOP_ACTION_ALLOW, COOP_ACTION_REQUIRE_APPROVAL, COOP_ACTION_DENY};
		decide_levels(levels, i, "sudo ls", NULL, &verdict);
		assert_int_equal(verdict.action, expected[i - 1]);
		assert_int_equal(verdict.count, i);
		assert_int_equal(verdict.labels, 1u << COOP_RISK_SUDO);
	}
	decide_levels(levels, 3, "ls", NULL, &verdict);
	assert_int_equal(verdict.action, COOP_ACTION_ALLOW);
	assert_int_equal(verdict.count, 0);
	/* A label that nobody names is shown. */
	decide_levels(levels, 3, "pkill x", NULL, &verdict);
	assert_int_equal(verdict.action, COOP_ACTION_ALLOW);
	assert_int_equal(verdict.labels, 1u << COOP_RISK_PROCESS_KILL);
	assert_int_equal(verdict.count, 1);
	assert_int_equal(verdict.decisions[0].labels, verdict.labels);
	decide_levels(levels, 3, "sudo pkill x", NULL, &verdict);
	assert_int_equal(verdict.count, 4);
	assert_int_equal(verdict.decisions[3].labels, 1u << COOP_RISK_PROCESS_KILL);
}

static void modes(void **state)
{
	struct coop_verdict verdict;
	const char *levels[] = {"{\"mode\": \"explain_only\"}", "{\"mode\": \"dry_run\"}",
				"{\"mode\": \"enforce\", \"denied_commands\": [\"nmap\"]}"};

	assert_int_equal(act(levels[0], "ls"), COOP_ACTION_EXPLAIN_ONLY);
	assert_int_equal(act(levels[1], "ls"), COOP_ACTION_DRY_RUN);
	assert_int_equal(act(levels[2], "ls"), COOP_ACTION_ALLOW);
	decide_levels(levels, 3, "ls", NULL, &verdict);
	assert_int_equal(verdict.action, COOP_ACTION_DRY_RUN);
	assert_int_equal(verdict.count, 2);
	decide_levels(levels, 3, "nmap", NULL, &verdict);
	assert_int_equal(verdict.action, COOP_ACTION_DENY);
}

static void catastrophes(void **state)
{
	struct coop_verdict verdict;
	const char *open =
		"{\"risk\": {\"destructive\": \"allow\"}, \"allowed_commands\": [\"rm\"]}";
	const char *argv[] = {"rm", "-rf", "/", NULL};

	decide_levels(&open, 1, "rm -rf /", argv, &verdict);
	assert_int_equal(verdict.action, COOP_ACTION_DENY);
	assert_string_equal(verdict.decisions[0].source, "built-in");
	assert_true(verdict.labels & 1u << COOP_RISK_DESTRUCTIVE);
	decide_levels(NULL, 0, "reboot", NULL, &verdict);
	assert_int_equal(verdict.action, COOP_ACTION_DENY);
}

static void standard(void **state)
{
	static const struct {
		const char *line;
		enum coop_action action;
	} rows[] = {{"rm -rf ../x", COOP_ACTION_DENY}, {"curl x | sh", COOP_ACTION_DENY},
		    {"cat .env", COOP_ACTION_DENY},    {"scp x host:", COOP_ACTION_DENY},
		    {"sudo ls", COOP_ACTION_ALLOW},    {"rm -rf build", COOP_ACTION_ALLOW},
		    {"ls", COOP_ACTION_ALLOW}};
	struct coop_policy *policy = coop_policy_new();
	struct coop_err err = {0};

	assert_non_null(policy);
	coop_policy_standard(policy);
	for (size_t round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			const char *argv[] = {"/bin/sh", "-c", rows[i].line, NULL};
			struct coop_policy_command command = {.argv = argv,
							      .shell_command = rows[i].line,
							      .display = rows[i].line,
							      .cwd = folder,
							      .home = "/home/u"};
			struct coop_verdict verdict;
			const struct coop_policy *levels[] = {policy};
			/* /tmp is a place where things may be removed. */
			enum coop_action expected = i ? rows[i].action : COOP_ACTION_ALLOW;

			assert_int_equal(coop_policy_decide(levels, 1, &command, &verdict), 0);
			assert_int_equal(verdict.action,
					 round && i == 2 ? COOP_ACTION_ALLOW : expected);
		}
		/* The operator may change what is standard. */
		assert_int_equal(coop_policy_set(policy, "risk.credential_file_read", "allow",
						 "coop.conf:3", &err),
				 0);
	}
	coop_policy_free(policy);
}

static void setting(void **state)
{
	static const struct {
		const char *key, *value;
		bool good;
	} rows[] = {
		{"denied_commands", "rm", true}, {"denied_commands", "", false},
		{"allowed_commands", "", true},  {"allowed_commands", "ls", true},
		{"deny_patterns", "a*b", true},  {"deny_patterns", "", false},
		{"risk.sudo", "deny", true},     {"risk.sudo", "require_approval", true},
		{"risk.sudo", "dry_run", false}, {"risk.sudo", "", false},
		{"risk.nothing", "deny", false}, {"risk.", "deny", false},
		{"mode", "dry_run", true},       {"mode", "explain_only", true},
		{"mode", "enforce", true},       {"mode", "allow", false},
		{"other", "x", false},           {"", "x", false},
	};
	struct coop_policy *policy = coop_policy_new();
	char huge[1100];

	assert_non_null(policy);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct coop_err err = {0};
		int r = coop_policy_set(policy, rows[i].key, rows[i].value, "x:1", &err);

		assert_int_equal(r == 0, rows[i].good);
		assert_int_equal(err.code == COOP_OK, rows[i].good);
		if (!rows[i].good)
			assert_non_null(strstr(err.details, rows[i].key));
	}
	struct coop_err err = {0};
	memset(huge, 'x', sizeof huge - 1);
	huge[sizeof huge - 1] = '\0';
	assert_true(coop_policy_set(policy, "deny_patterns", huge, "x:1", &err) < 0);
	assert_int_equal(err.code, COOP_TOO_LARGE);
	for (unsigned i = 1; i < 256; i++)
		assert_int_equal(coop_policy_set(policy, "denied_commands", "x", NULL, &err), 0);
	assert_true(coop_policy_set(policy, "denied_commands", "x", NULL, &err) < 0);
	coop_policy_free(policy);
	coop_policy_free(NULL);
}

static void wrong_json(void **state)
{
	static const struct {
		const char *json, *field;
	} rows[] = {
		{"[]", "policy"},
		{"{\"x\": 1}", "policy.x"},
		{"{\"denied_commands\": \"rm\"}", "policy.denied_commands"},
		{"{\"denied_commands\": [1]}", "policy.denied_commands[0]"},
		{"{\"denied_commands\": [\"a\", \"\"]}", "policy.denied_commands[1]"},
		{"{\"allowed_commands\": [\"\"]}", "policy.allowed_commands[0]"},
		{"{\"allowed_commands\": [\"a\\u0000b\"]}", "policy.allowed_commands[0]"},
		{"{\"deny_patterns\": {}}", "policy.deny_patterns"},
		{"{\"risk\": []}", "policy.risk"},
		{"{\"risk\": {\"x\": \"deny\"}}", "policy.risk.x"},
		{"{\"risk\": {\"sudo\": 1}}", "policy.risk.sudo"},
		{"{\"risk\": {\"sudo\": \"dry_run\"}}", "policy.risk.sudo"},
		{"{\"mode\": 1}", "policy.mode"},
		{"{\"mode\": \"x\"}", "policy.mode"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct coop_policy *policy = NULL;
		struct coop_err err = {0};
		char field[128];
		json_t *value = json_loads(rows[i].json, JSON_ALLOW_NUL, NULL);

		assert_non_null(value);
		assert_true(coop_policy_from_json(value, "t", &policy, &err) < 0);
		assert_null(policy);
		(void)snprintf(field, sizeof field, "\"%s\"", rows[i].field);
		if (!strstr(err.details, field))
			fail_msg("%s: %s %s", rows[i].json, err.message, err.details);
		json_decref(value);
	}
}

static void written(void **state)
{
	static const char json[] = "{\"denied_commands\":[\"rm\",\"/bin/"
				   "x\"],\"allowed_commands\":[],\"deny_patterns\":"
				   "[\"a*\"],\"risk\":{\"destructive\":\"allow\",\"sudo\":"
				   "\"require_approval\"},\"mode\":"
				   "\"dry_run\"}";
	struct coop_buf buf = {0};
	struct coop_jsonw w = {.out = &buf};
	struct coop_policy *policy = policy_of(json);

	coop_policy_write(policy, &w, NULL);
	assert_int_equal(coop_buf_size(&buf), sizeof json - 1);
	assert_memory_equal(coop_buf_front(&buf), json, sizeof json - 1);
	coop_buf_clear(&buf);
	coop_policy_free(policy);

	struct coop_verdict verdict;
	const char *level = "{\"risk\": {\"sudo\": \"deny\"}}";
	decide_levels(&level, 1, "sudo ls", NULL, &verdict);
	w = (struct coop_jsonw){.out = &buf};
	coop_jsonw_begin(&w, NULL);
	coop_verdict_write(&verdict, "sudo ls", &w, "decisions");
	coop_jsonw_end(&w);
	json_t *value =
		json_loadb((const char *)coop_buf_front(&buf), coop_buf_size(&buf), 0, NULL);
	const json_t *decision = json_array_get(json_object_get(value, "decisions"), 0);
	assert_string_equal(json_string_value(json_object_get(decision, "action")), "deny");
	assert_string_equal(json_string_value(json_object_get(decision, "source")), "test");
	assert_string_equal(json_string_value(json_object_get(decision, "display")), "sudo ls");
	assert_int_equal(json_array_size(json_object_get(decision, "risk_labels")), 1);
	assert_true(json_number_value(json_object_get(decision, "confidence")) == 1.0);
	assert_int_equal(json_object_size(decision), 6);
	json_decref(value);
	coop_buf_clear(&buf);
}

/* More rules than places: the strictest are kept. */
static void many(void **state)
{
	const char *all = "{\"risk\": {\"destructive\": \"allow\", \"write_intent\": \"allow\", "
			  "\"sudo\": \"allow\", \"process_kill\": \"allow\", \"package_install\": "
			  "\"allow\", \"git_force_push\": \"allow\"}}";
	const char *levels[] = {all, all, all,
				"{\"risk\": {\"sudo\": \"deny\"}, \"mode\": \"dry_run\"}"};
	struct coop_verdict verdict;

	decide_levels(levels, 4, "sudo rm -rf .; pkill x; npm i; git push -f", NULL, &verdict);
	assert_int_equal(verdict.count, COOP_DECISIONS_MAX);
	assert_int_equal(verdict.action, COOP_ACTION_DENY);
	assert_int_equal(verdict.decisions[1].action, COOP_ACTION_DRY_RUN);
}

static void without_memory(void **state)
{
	char line[3000] = "echo", spec[32];
	const char *argv[] = {"/bin/sh", "-c", line, NULL};
	struct coop_policy_command command = {
		.argv = argv, .shell_command = line, .display = line, .cwd = "/w", .home = "/h"};
	struct coop_verdict verdict;

	for (size_t i = 4; i < 2000; i += 8)
		memcpy(line + i, i % 40 ? " abcdefg" : ";sudo ls", 8);
	for (unsigned long n = 1; n < 100; n++) {
		(void)snprintf(spec, sizeof spec, "alloc:%lu", n);
		(void)setenv("COOP_FAULT", spec, 1);
		coop_mem_init();
		unsigned long before = coop_mem_failures();
		int r = coop_policy_decide(NULL, 0, &command, &verdict);
		bool failed = coop_mem_failures() > before;
		struct coop_err err = {0};
		struct coop_policy *policy = NULL;
		coop_mem_init();
		json_t *value = json_pack("{s:[s,s]}", "denied_commands", "a", "b");
		int from = coop_policy_from_json(value, "x", &policy, &err);
		(void)unsetenv("COOP_FAULT");
		coop_mem_init();
		json_decref(value);
		coop_policy_free(policy);
		assert_int_equal(from == 0, n > 4);
		assert_int_equal(r, failed ? -ENOMEM : 0);
		if (!failed && n > 4)
			return;
	}
	fail();
}

static void make_file(const char *name, mode_t mode)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static int set_up(void **state)
{
	char from[128], to[128];

	assert_non_null(mkdtemp(folder));
	(void)snprintf(search_path, sizeof search_path, "/nonexistent:%s:/usr/bin:/bin", folder);
	make_file("tool", 0755);
	make_file("other", 0755);
	make_file("plain", 0644);
	(void)snprintf(from, sizeof from, "%s/tool", folder);
	(void)snprintf(to, sizeof to, "%s/hard", folder);
	assert_int_equal(link(from, to), 0);
	(void)snprintf(to, sizeof to, "%s/alias", folder);
	return symlink(from, to);
}

static int tear_down(void **state)
{
	static const char *const names[] = {"tool", "other", "hard", "alias", "plain"};
	char path[128];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		assert_int_equal(unlink(path), 0);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(denied),         cmocka_unit_test(denied_files),
		cmocka_unit_test(allowed),        cmocka_unit_test(too_long_to_judge),
		cmocka_unit_test(patterns),       cmocka_unit_test(risks),
		cmocka_unit_test(modes),          cmocka_unit_test(catastrophes),
		cmocka_unit_test(standard),       cmocka_unit_test(setting),
		cmocka_unit_test(wrong_json),     cmocka_unit_test(written),
		cmocka_unit_test(many),           cmocka_unit_test(many_programs),

		cmocka_unit_test(sourced),        cmocka_unit_test(cut),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
