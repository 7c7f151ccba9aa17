/* What is too long or too deep to be judged is denied: at each bound the last that is judged, and
 * the first that is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/draft.h"
#include "policy/lexer.h"
#include "policy/match.h"
#include "policy/policy.h"
#include "policy/risk.h"
#include "policy/words.h"

#define ROOM ((size_t)3 * 1024 * 1024)
#define STEPS_MAX ((size_t)4 * 1024 * 1024)     /* as risk.c has it */
#define PATTERN_STEPS ((size_t)8 * 1024 * 1024) /* as decide.c has it */

static char *line;
static const char *search_path = "";
static const char *folder = "/nowhere";

static struct coop_policy *policy_of(json_t *value)
{
	struct coop_policy *policy = NULL;
	struct coop_err err = {0};

	assert_non_null(value);
	if (coop_policy_from_json(value, "test", &policy, &err) < 0)
		policy = NULL;
	json_decref(value);
	return policy;
}

static void decide(const struct coop_policy *level, const char *display, struct coop_verdict *ret)
{
	const char *argv[] = {"/bin/bash", "-c", line, NULL};
	struct coop_policy_command command = {.argv = argv,
					      .shell_command = line,
					      .display = display,
					      .cwd = folder,
					      .home = "/home/u",
					      .path = search_path};

	assert_int_equal(coop_policy_decide(&level, level ? 1 : 0, &command, ret), 0);
}

/* Whether the line is short enough to be judged; if it is not, it is denied, and that is all that
 * is said. */
static bool judged(const struct coop_policy *level)
{
	struct coop_verdict verdict;
	bool denied;

	decide(level, line, &verdict);
	denied = verdict.count && strstr(verdict.decisions[0].reason, "too long to be judged");
	if (denied)
		assert_int_equal(verdict.action, COOP_ACTION_DENY);
	else
		assert_int_equal(verdict.action, COOP_ACTION_ALLOW);
	return !denied;
}

/* The part that is repeated, with a number in the place of @. */
static size_t write_part(size_t used, const char *part, size_t number)
{
	const char *mark = strchr(part, '@');
	int size = mark ? (int)(mark - part) : (int)strlen(part);

	used += (size_t)snprintf(line + used, ROOM - used, "%.*s", size, part);
	if (mark)
		used += (size_t)snprintf(line + used, ROOM - used, "%zu%s", number, mark + 1);
	return used;
}

/* before, count times each, after, count times close */
static void write_line(const char *before, const char *each, size_t count, const char *after,
		       const char *close)
{
	size_t used = write_part(0, before, 0);

	for (size_t i = 0; i < count; i++)
		used = write_part(used, each, i);
	used = write_part(used, after, 0);
	for (size_t i = 0; i < count; i++)
		used = write_part(used, close, i);
	assert_true(used < ROOM - 1);
}

struct shape {
	const char *before, *each, *after, *close;
	size_t most;
};

static void lines(void **state)
{
	static const struct shape shapes[] = {
		{"", "( ", "ls", ")", COOP_WORDS_DEPTH_MAX - 2},
		{"", "{ ", "ls", ";}", COOP_WORDS_DEPTH_MAX - 2},
		{"", "if a; then ", "ls", ";fi", COOP_WORDS_DEPTH_MAX - 2},
		{"", "f@() ", "ls", "", COOP_WORDS_DEPTH_MAX - 2},
		{"echo ", "$(echo ", "ls", ")", COOP_WORDS_DEPTH_MAX - 2},
		{"echo ", "<(echo ", "ls", ")", COOP_WORDS_DEPTH_MAX - 2},
		{"echo ", "${x#", "ls", "}", COOP_WORDS_DEPTH_MAX - 1},
		{"", "nice ", "ls", "", COOP_WORDS_DEPTH_MAX},
		{"cat", " <<E", "", "\nE", COOP_LEXER_HERE_MAX},
		{"", "v@=1;", "", "", COOP_WORDS_VARIABLES},
		{"v0=1;v0=1;", "v@=1;", "", "", COOP_WORDS_VARIABLES},
		{"echo {", "a,", "}", "", COOP_DRAFT_PARTS - 2},
		{"", "a;", "", "", COOP_WORDS_COMMANDS_MAX - 1},
		{"", "f()(b);", "", "", COOP_WORDS_COMMANDS_MAX / 2 - 1},
		{"nice nice ls;", "nice ls;", "", "", COOP_WORDS_COMMANDS_MAX - 2},
	};
	size_t wrong = 0;

	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const struct shape *shape = &shapes[i];
		bool last, next;

		write_line(shape->before, shape->each, shape->most, shape->after, shape->close);
		last = judged(NULL);
		write_line(shape->before, shape->each, shape->most + 1, shape->after, shape->close);
		next = judged(NULL);
		if (!last || next) {
			print_error("%s%s…: %zu is %s, one more is %s\n", shape->before,
				    shape->each, shape->most, last ? "judged" : "denied",
				    next ? "judged" : "denied");
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

static void text_sizes(void **state)
{
	memset(line, ' ', ROOM - 1);
	memcpy(line, "ls", 2);
	line[COOP_WORDS_TEXT_MAX] = '\0';
	assert_true(judged(NULL));
	line[COOP_WORDS_TEXT_MAX] = ' ';
	line[COOP_WORDS_TEXT_MAX + 1] = '\0';
	assert_false(judged(NULL));
}

/* A text and the texts inside it, all together at the bound. */
static void total_sizes(void **state)
{
	static const char head[] = "eval \"eval '", tail[] = "'\"";
	/* eval puts a blank after each of its words. */
	const size_t frames = sizeof head - 1 + sizeof tail - 1 + sizeof "eval '' " - 1 + 1;
	/* The blanks in the middle are read three times: in the line, in its text, and in the text
	 * of that. */
	const size_t middle = (COOP_WORDS_TOTAL_MAX - frames) / 3;

	for (size_t over = 0; over < 2; over++) {
		size_t rest = COOP_WORDS_TOTAL_MAX - frames - 3 * middle + over;
		char *at = mempcpy(line, head, sizeof head - 1);

		memset(at, ' ', middle);
		at = mempcpy(at + middle, tail, sizeof tail - 1);
		memset(at, ' ', rest);
		at[rest] = '\0';
		assert_int_equal(judged(NULL), !over);
	}
}

static void counters(void **state)
{
	struct coop_words *words = malloc(sizeof *words);
	char *text = calloc(1, COOP_WORDS_STORED_MAX);
	struct coop_findings *found = calloc(1, sizeof *found);
	struct coop_scene scene = {.found = found};

	assert_true(words && text && found);
	coop_words_init(words, NULL);
	coop_words_charge(words, COOP_WORDS_WORK_MAX);
	assert_false(words->too_long);
	coop_words_charge(words, 1);
	assert_true(words->too_long);
	coop_words_clear(words);

	coop_words_init(words, NULL);
	assert_non_null(coop_words_text(words, text, COOP_WORDS_STORED_MAX - 2));
	assert_non_null(coop_words_text(words, text, 0));
	assert_false(words->too_long);
	assert_null(coop_words_text(words, text, 0));
	assert_true(words->too_long);
	coop_words_clear(words);

	assert_true(coop_risk_spend(&scene, STEPS_MAX));
	assert_false(found->too_long);
	assert_false(coop_risk_spend(&scene, 1));
	assert_true(found->too_long);
	/* What was too long once stays it, however cheap the next search is. */
	assert_false(coop_risk_spend(&scene, 0));
	free(found);
	free(text);
	free(words);
}

static void words_of_a_program(void **state)
{
	const size_t count = COOP_WORDS_MAX + 1;
	const char **argv = malloc((count + 1) * sizeof *argv);
	struct coop_words *words = malloc(sizeof *words);

	assert_true(argv && words);
	for (size_t i = 0; i < count; i++)
		argv[i] = "a";
	argv[count] = NULL;
	coop_words_init(words, NULL);
	coop_words_argv(words, argv + 1, "/");
	assert_false(words->too_long);
	assert_int_equal(words->commands[0].arguments, COOP_WORDS_MAX);
	coop_words_clear(words);
	coop_words_init(words, NULL);
	coop_words_argv(words, argv, "/");
	assert_true(words->too_long);
	coop_words_clear(words);
	free(words);
	free(argv);
}

/* Programs that differ; each is looked for once, however many lists ask. */
static void programs(void **state)
{
	struct coop_policy *level = policy_of(json_pack("{s:[s]}", "denied_commands", "nmap"));

	write_line("", "c@;", COOP_MATCH_PROGRAMS - 1, "", "");
	assert_true(judged(level));
	write_line("", "c@;", COOP_MATCH_PROGRAMS, "", "");
	assert_false(judged(level));
	/* The same ones again are no more of them. */
	write_line("c0;c1;", "c@;", COOP_MATCH_PROGRAMS - 1, "c2;c3;", "");
	assert_true(judged(level));
	coop_policy_free(level);
}

/* The file system is asked so often and no more: once for each program and folder of PATH, and
 * twice for the shell. */
static void lookups(void **state)
{
	struct coop_policy *level = policy_of(json_pack("{s:[s]}", "denied_commands", "nmap"));

	search_path = "/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n:/n";
	write_line("", "c@;", (COOP_MATCH_LOOKUPS - 2) / 23, "", "");
	assert_true(judged(level));
	search_path = "/n:/n:/n:/n:/n";
	write_line("", "c@;", (COOP_MATCH_LOOKUPS - 1) / 5, "", "");
	assert_false(judged(level));
	search_path = "";
	coop_policy_free(level);
}

/* A name that is too long for a path is no shorter one that is allowed. */
static void long_names(void **state)
{
	struct coop_policy *level =
		policy_of(json_pack("{s:[s,s]}", "allowed_commands", "bash", "/bin/ls"));
	const size_t most = COOP_PATH_MAX - 1;
	struct coop_verdict verdict;

	folder = "/";
	for (size_t more = 0; more < 2; more++) {
		/* The same for both: /…//bin/ls by itself, and ././bin/ls with the folder and a
		 * slash. */
		for (size_t i = 0; i < 2; i++) {
			size_t size = (i ? most - 2 : most) + more,
			       begin = size - strlen("/bin/ls");

			memset(line, '/', size);
			for (size_t k = 0; i && k < begin; k += 2)
				line[k] = '.';
			memcpy(line + begin - more, "/bin/lsX", strlen("/bin/ls") + more);
			line[size] = '\0';
			decide(level, line, &verdict);
			assert_int_equal(verdict.action,
					 more ? COOP_ACTION_DENY : COOP_ACTION_ALLOW);
		}
	}
	folder = "/nowhere";
	coop_policy_free(level);
}

static json_t *strings(size_t count, size_t size)
{
	json_t *list = json_array();
	char *text = malloc(size + 1);

	assert_non_null(text);
	memset(text, 'z', size);
	text[size] = '\0';
	for (size_t i = 0; i < count; i++)
		assert_int_equal(json_array_append_new(list, json_string(text)), 0);
	free(text);
	return list;
}

static void rules(void **state)
{
	static const char *const names[] = {"denied_commands", "allowed_commands", "deny_patterns"};

	for (size_t i = 0; i < 3; i++) {
		struct coop_policy *policy;

		policy = policy_of(json_pack("{s:o}", names[i], strings(COOP_RULES_MAX, 1)));
		assert_non_null(policy);
		coop_policy_free(policy);
		assert_null(
			policy_of(json_pack("{s:o}", names[i], strings(COOP_RULES_MAX + 1, 1))));
		policy = policy_of(json_pack("{s:o}", names[i], strings(1, COOP_RULES_TEXT_MAX)));
		assert_non_null(policy);
		coop_policy_free(policy);
		assert_null(policy_of(
			json_pack("{s:o}", names[i], strings(1, COOP_RULES_TEXT_MAX + 1))));
	}
}

/* A pattern that there was no time to look for counts as found. */
static void pattern_steps(void **state)
{
	const size_t each = 65536, fit = PATTERN_STEPS / each;
	char *display = malloc(each * 16);
	struct coop_verdict verdict;

	assert_non_null(display);
	memset(display, 'a', (each - 1) * 16);
	display[(each - 1) * 16] = '\0';
	(void)snprintf(line, ROOM, "ls");
	for (size_t over = 0; over < 2; over++) {
		struct coop_policy *level =
			policy_of(json_pack("{s:o}", "deny_patterns", strings(fit + over, 3)));

		assert_non_null(level);
		decide(level, display, &verdict);
		assert_int_equal(verdict.action, over ? COOP_ACTION_DENY : COOP_ACTION_ALLOW);
		coop_policy_free(level);
	}
	free(display);
}

static int set_up(void **state)
{
	line = malloc(ROOM);
	return line ? 0 : -1;
}

static int tear_down(void **state)
{
	free(line);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),         cmocka_unit_test(text_sizes),
		cmocka_unit_test(counters),      cmocka_unit_test(words_of_a_program),
		cmocka_unit_test(programs),      cmocka_unit_test(rules),
		cmocka_unit_test(pattern_steps), cmocka_unit_test(lookups),
		cmocka_unit_test(long_names),    cmocka_unit_test(total_sizes),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
