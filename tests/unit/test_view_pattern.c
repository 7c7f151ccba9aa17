/* Finding a text or a regular expression in output that comes in pieces (B-043): where it is,
 * whatever the pieces; and within bounds, whatever the pattern. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "client/views/pattern.h"

static struct coop_pattern *compile(const char *text, bool regex)
{
	struct coop_pattern *pattern = NULL;
	char reason[256];
	int r = coop_pattern_new(text, strlen(text), regex, &pattern, reason);

	if (r < 0)
		fail_msg("%s: %s", text, reason);
	return pattern;
}

static void assert_match(const struct coop_pattern_match *match, int start, int end)
{
	assert_int_equal(match->found, start >= 0);
	if (start < 0)
		return;
	assert_int_equal(match->groups[0].start, start);
	assert_int_equal(match->groups[0].end, end);
}

/* The match at every cut into two, byte by byte, and in whole bytes; start -1 for none. */
static void check_bytes(const char *pattern_text, bool regex, const char *bytes, size_t size,
			int start, int end)
{
	struct coop_pattern *pattern = compile(pattern_text, regex);
	struct coop_pattern_match match;
	char reason[256];

	for (size_t cut = 0; cut <= size; cut++) {
		struct coop_search *search = coop_search_new(pattern);
		assert_int_equal(coop_search_feed(search, bytes, cut, false, &match, reason), 0);
		if (!match.found)
			assert_int_equal(coop_search_feed(search, bytes + cut, size - cut, true,
							  &match, reason),
					 0);
		assert_match(&match, start, end);
		if (match.found) {
			size_t got;
			const char *text = coop_search_group(search, &match, 0, &got);
			assert_int_equal(got, end - start);
			assert_memory_equal(text, bytes + start, got);
		}
		coop_search_free(search);
	}
	struct coop_search *search = coop_search_new(pattern);
	match.found = false;
	for (size_t at = 0; at <= size && !match.found; at++)
		assert_int_equal(
			coop_search_feed(search, bytes + at, at < size, at == size, &match, reason),
			0);
	assert_match(&match, start, end);
	coop_search_free(search);
	assert_int_equal(coop_pattern_find(pattern, bytes, size, 0, &match, reason), 0);
	assert_match(&match, start, end);
	coop_pattern_free(pattern);
}

static void check(const char *pattern, const char *bytes, int start, int end)
{
	check_bytes(pattern, true, bytes, strlen(bytes), start, end);
}

static void test_b043_a_text_is_found_in_pieces(void **state)
{
	(void)state;
	check_bytes("ready", false, "not yet rea ready", 17, 12, 17);
	check_bytes("a.c(", false, "abc a.c(", 8, 4, 8);
	check_bytes("aab", false, "aaaab", 5, 2, 5);
	check_bytes("x", false, "", 0, -1, -1);
	check_bytes("\xff\xe2", false, "a\xff\xe2", 3, 1, 3);
	check_bytes("ready", false, "read", 4, -1, -1);
}

static void test_b043_a_regular_expression_is_found_in_pieces(void **state)
{
	(void)state;
	check("re+ady", "reeea reeady!", 6, 12);
	check("port (\\d+)", "on port 8080\n", 3, 12);
	check("port (\\d+)", "on port 8080", 3, 12);
	check("(ab|abcd)e?", "xabcde", 1, 3);
	check("a.*?b", "aXbXb", 0, 3);
	check("a.*b", "aXbXb\nb", 0, 5);
	check("(?i)READY", "Ready", 0, 5);
	check("[[:digit:]]{3}", "12 345", 3, 6);
	check("\\bend\\b", "bend endx end", 10, 13);
	check("(?s)a.b", "a\nb", 0, 3);
	check("x*", "abc", 0, 0);
	check("x+", "abc", -1, -1);
	check("(?:a|b)+c", "ababc", 0, 5);
	check("\\Q(?=\\E", "a(?=", 1, 4);
}

static void test_ends_of_lines_and_of_the_stream(void **state)
{
	(void)state;
	check("end$", "end\nend", 4, 7);
	check("end$", "the end\n", 4, 7);
	check("(?m)^b$", "a\nb\nc", 2, 3);
	check("(?m)^b$", "a\r\nb\r\nc", 3, 4);
	check("(?m)^$", "a\r\nb\r\n\r\nc", 6, 6);
	check("^b", "a\nb", -1, -1);
	check("^a", "a\nb", 0, 1);
	check("\\Ab", "ab", -1, -1);
	check("a.b", "a\rb a\nb", -1, -1);
	check("a\\r\\nb", "a\r\nb", 0, 4);
	check("\\nb", "a\r\nb", 2, 4);
	check("a\\z", "a a", 2, 3);
}

static void test_a_character_is_never_split(void **state)
{
	(void)state;
	check("\xc3\xbc", "gr\xc3\xbc\xc3\x9f", 2, 4);
	check("r.\xc3\x9f", "gr\xc3\xbc\xc3\x9f", 1, 6);
	check("[^a]", "a\xe2\x82\xac", 1, 4);
	check("^.$", "\xf0\x9f\x90\x94", 0, 4);
	check("\xe2\x82\xac+", "\xe2\x82\xac\xe2\x82\xac\xe2\x82", 0, 6);
}

static void test_bytes_that_are_not_utf8_do_not_matter(void **state)
{
	(void)state;
	check("ready", "\xff\xfe ready", 3, 8);
	check("a.b",
	      "a\xff"
	      "b",
	      0, 3);
	check("a..b",
	      "a\xe2\x82"
	      "b",
	      0, 4);
	check("a[^x]b",
	      "a\x80"
	      "b",
	      0, 3);
	check("\\bb",
	      "\xe2\x82"
	      "b",
	      2, 3);
	check_bytes("a.b", true, "a\0b", 3, 0, 3);
}

static void test_b062_groups_are_where_they_were_and_absent_ones_are_said(void **state)
{
	struct coop_pattern *pattern = compile("(a)|(b)(c)?(?<name>d)", true);
	struct coop_search *search = coop_search_new(pattern);
	struct coop_pattern_match match;
	char reason[256];
	size_t size;

	(void)state;
	assert_int_equal(coop_search_feed(search, "xxxb", 4, false, &match, reason), 0);
	assert_false(match.found);
	assert_int_equal(coop_search_feed(search, "de", 2, false, &match, reason), 0);
	assert_match(&match, 3, 5);
	assert_int_equal(match.count, 5);
	assert_true(match.groups[1].start == COOP_NO_GROUP);
	assert_int_equal(match.groups[2].start, 3);
	assert_true(match.groups[3].end == COOP_NO_GROUP);
	assert_int_equal(match.groups[4].start, 4);
	assert_null(coop_search_group(search, &match, 1, &size));
	assert_null(coop_search_group(search, &match, 5, &size));
	assert_memory_equal(coop_search_group(search, &match, 2, &size), "b", 1);
	assert_int_equal(size, 1);
	coop_search_free(search);
	coop_pattern_free(pattern);
}

static void test_a_later_place_sees_what_stands_before_it(void **state)
{
	struct coop_pattern_match match;
	char reason[256];
	struct coop_pattern *pattern = compile("(?m)^b|\\bc|d", true);

	(void)state;
	assert_int_equal(coop_pattern_find(pattern, "abc xc d", 8, 1, &match, reason), 0);
	assert_match(&match, 7, 8);
	assert_int_equal(coop_pattern_find(pattern, "a\nb", 3, 2, &match, reason), 0);
	assert_match(&match, 2, 3);
	assert_int_equal(coop_pattern_find(pattern, "d", 1, 1, &match, reason), 0);
	assert_match(&match, -1, -1);
	assert_int_equal(coop_pattern_find(pattern, "d", 1, 2, &match, reason), 0);
	assert_match(&match, -1, -1);
	coop_pattern_free(pattern);
}

static void test_a_prompt_can_be_seen_before_anything_follows(void **state)
{
	struct coop_pattern *pattern = compile("(\\$ *)$", true);
	struct coop_search *search = coop_search_new(pattern);
	struct coop_pattern_match match;
	char reason[256];

	(void)state;
	assert_int_equal(coop_search_feed(search, "a $ b\n$ ", 8, false, &match, reason), 0);
	assert_false(match.found);
	assert_int_equal(coop_search_peek(search, &match, reason), 0);
	assert_match(&match, 6, 8);
	/* The search has not noticed. */
	assert_int_equal(coop_search_feed(search, " x\n$\xe2", 5, false, &match, reason), 0);
	assert_false(match.found);
	assert_int_equal(coop_search_peek(search, &match, reason), 0);
	assert_false(match.found);
	assert_int_equal(coop_search_feed(search, "\x82\xac$", 3, true, &match, reason), 0);
	assert_match(&match, 15, 16);
	coop_search_free(search);
	coop_pattern_free(pattern);
}

/* Long streams in windows: the match is far behind the first byte. */
static void test_a_match_far_into_the_stream(void **state)
{
	static const char line[] = "nothing to be seen in here, go on: error 41\r\n";
	struct coop_pattern *pattern = compile("(?m)error (\\d+)$.*?|\\d{2} and (.{3})", true);
	struct coop_search *search = coop_search_new(pattern);
	struct coop_pattern *needle = compile("(?m)^needle (\\w+)$", true);
	struct coop_search *other = coop_search_new(needle);
	struct coop_pattern_match match;
	char reason[256];
	uint64_t at = 0;

	(void)state;
	assert_int_equal(coop_search_feed(search, line, sizeof line - 1, false, &match, reason), 0);
	assert_match(&match, 35, 43);
	for (int i = 0; i < 20000; i++, at += sizeof line - 1) {
		assert_int_equal(
			coop_search_feed(other, line, sizeof line - 1, false, &match, reason), 0);
		assert_false(match.found);
	}
	assert_int_equal(coop_search_feed(other, "needle x\r\n", 10, false, &match, reason), 0);
	assert_match(&match, (int)at, (int)at + 8);
	assert_int_equal(match.groups[1].start, at + 7);
	coop_search_free(search);
	coop_search_free(other);
	coop_pattern_free(pattern);
	coop_pattern_free(needle);
}

static void test_a_match_spans_at_most_64_kib(void **state)
{
	struct coop_pattern *pattern = compile("b[^e]*e", true);
	struct coop_pattern_match match;
	char reason[256];
	char *bytes = malloc(300000);

	(void)state;
	memset(bytes, 'x', 300000);
	bytes[10] = 'b';
	bytes[200000] = 'e';
	assert_int_equal(coop_pattern_find(pattern, bytes, 300000, 0, &match, reason), 0);
	assert_match(&match, -1, -1);
	bytes[150000] = 'b';
	assert_int_equal(coop_pattern_find(pattern, bytes, 300000, 0, &match, reason), 0);
	assert_match(&match, 150000, 200001);
	coop_pattern_free(pattern);
	/* Greedy: the longest that the span has room for. */
	pattern = compile("(?s)b.*e", true);
	bytes[10] = 'x';
	bytes[160000] = 'e';
	bytes[299999] = 'e';
	for (size_t piece = 1000; piece < 300000; piece *= 3) {
		struct coop_search *search = coop_search_new(pattern);
		match.found = false;
		for (size_t at = 0; at < 300000 && !match.found; at += piece) {
			size_t size = 300000 - at < piece ? 300000 - at : piece;
			assert_int_equal(coop_search_feed(search, bytes + at, size,
							  at + size == 300000, &match, reason),
					 0);
		}
		assert_match(&match, 150000, 200001);
		coop_search_free(search);
	}
	coop_pattern_free(pattern);
	free(bytes);
}

/* Feeds `count` times the bytes; what the search says to it. */
static int feed_many(const char *pattern_text, const char *bytes, size_t size, int count)
{
	struct coop_pattern *pattern = compile(pattern_text, true);
	struct coop_search *search = coop_search_new(pattern);
	struct coop_pattern_match match;
	char reason[256] = "";
	int r = 0;

	for (int i = 0; i < count && r == 0; i++) {
		r = coop_search_feed(search, bytes, size, i + 1 == count, &match, reason);
		assert_false(match.found);
	}
	assert_true(r == 0 || (r == -ERANGE && *reason));
	coop_search_free(search);
	coop_pattern_free(pattern);
	return r;
}

static void test_b043_exploding_patterns_end_in_a_refusal(void **state)
{
	char bytes[4096];

	(void)state;
	memset(bytes, 'a', sizeof bytes);
	bytes[60] = '\n';
	bytes[61] = 'b';
	assert_int_equal(feed_many("(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 39, 1),
			 -ERANGE);
	assert_int_equal(feed_many("(a|aa)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 39, 1),
			 -ERANGE);
	assert_int_equal(feed_many("(\\w+\\s?)+$", bytes + 62, 4000, 20), -ERANGE);
	assert_int_equal(feed_many("a*a*a*a*a*[bc]", bytes + 62, 4000, 1), -ERANGE);
	/* What could go on for ever, everywhere. */
	assert_int_equal(feed_many("[\\s\\S]*done", bytes, sizeof bytes, 100), -ERANGE);
	assert_int_equal(feed_many("(.|\\n)*done", bytes, sizeof bytes, 100), -ERANGE);
	/* Reasonable ones do not meet the limits. */
	assert_int_equal(feed_many("a+c", "aaa aa\n", 7, 20000), 0);
	assert_int_equal(feed_many(".*done", "aaa aa\n", 7, 20000), 0);
	assert_int_equal(feed_many("(?i)(error|warning|fatal): .*", "aaa aa\n", 7, 20000), 0);
}

static void assert_refused(const char *text, const char *why)
{
	struct coop_pattern *pattern = NULL;
	char reason[256] = "";
	int r = coop_pattern_new(text, strlen(text), true, &pattern, reason);

	if (r != -EINVAL || !strstr(reason, why) || !strstr(reason, " at position "))
		fail_msg("%s: %d, %s", text, r, reason);
	assert_null(pattern);
}

static void test_what_is_not_supported_is_refused_with_its_position(void **state)
{
	(void)state;
	assert_refused("ab(c", "parenthesis at position 4");
	assert_refused("a**", "at position");
	assert_refused("[z-a]", "at position");
	assert_refused("", "empty pattern at position 0");
	assert_refused("(a)\\1", "a back reference is not supported, at position 3");
	assert_refused("(?<n>a)\\k<n>", "back reference");
	assert_refused("(a)\\g1", "back reference");
	assert_refused("(?P<n>a)(?P=n)", "back reference");
	assert_refused("a(?=b)", "look-ahead is not supported, at position 1");
	assert_refused("a(?!b)", "look-ahead");
	assert_refused("(?<=a)b", "look-behind");
	assert_refused("(?<!a)b", "look-behind");
	assert_refused("(a(?R)?b)", "recursion");
	assert_refused("(a)(?1)", "(?");
	assert_refused("(a)(?+1)", "(?");
	assert_refused("(?C1)a", "callout");
	assert_refused("(*UCP)a", "verb");
	assert_refused("a(*SKIP)b", "verb");
	assert_refused("(*LIMIT_MATCH=99999999)a", "verb");
	assert_refused("a\\Cb", "\\C");
	assert_refused("[\\C]", "\\C");
	assert_refused("a\\Kb", "\\K");
	assert_refused("(?>a)b", "atomic");
	assert_refused("(?x) a # [\n(?=a)", "(?");
	assert_refused("(?(1)a|b)", "condition");
	assert_refused("(?|a|b)", "branch reset");
	assert_refused("[]a](?=b)", "look-ahead is not supported, at position 4");
	assert_refused("[^]a](?=b)", "look-ahead");
	assert_refused("[\\Q\\E][](?=x)[]]", "look-ahead");
	assert_refused("\\Qa\\E(?=b)", "look-ahead");
	assert_refused("[[:alpha:]](?=b)", "look-ahead");
	assert_refused("\xff", "UTF-8");
	char many[600] = "";
	for (size_t i = 0; i < 100; i++)
		memcpy(many + i * 4, "(a)?", 5);
	assert_refused(many, "99 groups");
	char deep[800] = "";
	for (size_t i = 0; i < 200; i++)
		memcpy(deep + i * 3, "(?:", 4);
	assert_refused(deep, "at position");
}

static void test_what_only_looks_like_it_is_accepted(void **state)
{
	static const char *const texts[] = {"[(?=]a",     "\\(?=a",     "[\\1]",     "\\\\1",
					    "(?i)a",      "(?ims:a)",   "(?-i)a",    "(?i-s:a)",
					    "[[:word:]]", "a{2,3}?",    "\\Q\\1\\E", "(?P<n>a)",
					    "[]\\d]",     "\\x{e9}\\t", "a|",        "(|a)"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		coop_pattern_free(compile(texts[i], true));
	struct coop_pattern *pattern;
	char text[COOP_PATTERN_TEXT_MAX + 1], reason[256];
	memset(text, 'a', sizeof text);
	assert_int_equal(coop_pattern_new(text, sizeof text, false, &pattern, reason), -EINVAL);
	assert_int_equal(coop_pattern_new(text, sizeof text - 1, false, &pattern, reason), 0);
	coop_pattern_free(pattern);
	assert_int_equal(coop_pattern_new("", 0, false, &pattern, reason), -EINVAL);
}

static void test_want_of_memory_is_told(void **state)
{
	static const char bytes[] = "some text and (then) the match: 42\n";

	(void)state;
	for (int n = 1; n < 30; n++) {
		char fault[32], reason[256];
		struct coop_pattern *pattern = NULL;
		struct coop_search *search = NULL;
		struct coop_pattern_match match;
		(void)snprintf(fault, sizeof fault, "alloc:%d", n);
		assert_int_equal(setenv("COOP_FAULT", fault, 1), 0);
		coop_mem_init();
		int r = coop_pattern_new("(\\w|:)+ (4)2", 12, true, &pattern, reason);
		if (r == 0) {
			search = coop_search_new(pattern);
			r = search ? coop_search_feed(search, bytes, sizeof bytes - 1, false,
						      &match, reason)
				   : -ENOMEM;
		}
		if (r == 0)
			assert_match(&match, 25, 34);
		else
			assert_int_equal(r, -ENOMEM);
		coop_search_free(search);
		coop_pattern_free(pattern);
	}
	assert_int_equal(unsetenv("COOP_FAULT"), 0);
	coop_mem_init();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_b043_a_text_is_found_in_pieces),
		cmocka_unit_test(test_b043_a_regular_expression_is_found_in_pieces),
		cmocka_unit_test(test_ends_of_lines_and_of_the_stream),
		cmocka_unit_test(test_a_character_is_never_split),
		cmocka_unit_test(test_bytes_that_are_not_utf8_do_not_matter),
		cmocka_unit_test(test_b062_groups_are_where_they_were_and_absent_ones_are_said),
		cmocka_unit_test(test_a_later_place_sees_what_stands_before_it),
		cmocka_unit_test(test_a_prompt_can_be_seen_before_anything_follows),
		cmocka_unit_test(test_a_match_far_into_the_stream),
		cmocka_unit_test(test_a_match_spans_at_most_64_kib),
		cmocka_unit_test(test_b043_exploding_patterns_end_in_a_refusal),
		cmocka_unit_test(test_what_is_not_supported_is_refused_with_its_position),
		cmocka_unit_test(test_what_only_looks_like_it_is_accepted),
		cmocka_unit_test(test_want_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
