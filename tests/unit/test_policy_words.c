/* The reader of shell lines: each line against its commands written out, and the limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/text/glob.h"
#include "policy/parser.h"
#include "policy/paths.h"
#include "policy/programs.h"
#include "policy/words.h"

static void read_line(struct coop_words *words, const char *line)
{
	coop_words_init(words, "/home/u");
	coop_parser_read(words, line, strlen(line),
			 &(struct coop_parser_place){.cwd = "/w", .parent = COOP_SIMPLE_NONE});
}

/* "a b|c": words parted by blanks, commands by |. A computed word gets a ?, a redirection its sign.
 * Empty ones are left out. */
static void print_words(const struct coop_words *words, char *ret, size_t size)
{
	static const char signs[] = " <>=";
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < words->command_count; i++) {
		const struct coop_simple *simple = &words->commands[i];
		size_t count = simple->arguments + simple->redirects;

		if (!count)
			continue;
		used += (size_t)snprintf(ret + used, size - used, "%s", used ? "|" : "");
		for (size_t k = 0; k < count; k++) {
			const struct coop_word *word = coop_words_of(words, simple) + k;
			used += (size_t)snprintf(ret + used, size - used, "%s%.1s%s%s",
						 k ? " " : "", word->role ? signs + word->role : "",
						 word->text,
						 word->flags & COOP_WORD_COMPUTED ? "?" : "");
		}
	}
}

static void lines(void **state)
{
	static const struct {
		const char *line, *words;
	} rows[] = {
		{"", ""},
		{"  \t\n ", ""},
		{"a", "a"},
		{"a b  c", "a b c"},
		{"a;b", "a|b"},
		{"a&b", "a|b"},
		{"a && b || c", "a|b|c"},
		{"a\nb\n\nc", "a|b|c"},
		{"a | b |& c", "a|b|c"},
		{"a 'b c' \"d e\"", "a b c d e"},
		{"a\\ b", "a b"},
		{"a\\\nb", "ab"},
		{"a'b'\"c\"d", "abcd"},
		{"a ''", "a "},
		{"a '", "a "},
		{"a \"x", "a x"},
		{"'a\"b' \"c'd\"", "a\"b c'd"},
		{"\"a\\\"b\\$c\\d\"", "a\"b$c\\d"},
		{"a # b", "a"},
		{"a#b", "a#b"},
		{"a 'x' #'", "a x"},
		{"$'a\\tb\\x41\\101\\''", "a\tbAA'"},
		{"$\"a\"", "a"},
		{"a $x", "a $x?"},
		{"a \"$x\" '$x' \\$x", "a $x? $x $x"},
		{"a ${x} ${x:-y} ${x%y} $1 $@ $? $$", "a $x? y? $_? $1? $@? $?? $$?"},
		{"a $ b", "a $ b"},
		{"a $HOME ${HOME}/x \"$HOME\" '$HOME'", "a /home/u /home/u/x /home/u $HOME"},
		{"a ~ ~/x '~' x~ a=~/x ~root", "a /home/u /home/u/x ~ x~ a=/home/u/x ~root?"},
		{"a $PWD", "a /w"},
		{"x=1; a $x ${x}2", "x=1|a 1 12"},
		{"x='1 2'; a $x \"$x\"", "x=1 2|a 1 2 1 2"},
		{"x=1; a ${x:-2} ${y-$(b)} ${x?}", "x=1|a 1 $()? 1|b"},
		{"x=1 a $x", "x=1 a $x?"},
		{"x=$y; a $x", "x=$y?|a $x?"},
		{"export x=1; a $x", "export x=1|a 1"},
		{"local x=1; a $x", "local x=1|a 1"},
		{"declare x=1; a $x", "declare x=1|a 1"},
		{"readonly x=1; a $x", "readonly x=1|a 1"},
		{"x=1; read x; a $x", "x=1|read x|a $x?"},
		{"a {b,c} d{e,f}g {} {h} {'i,j'}", "a b c deg dfg {} {h} {i,j}"},
		{"a$IFS-b", "a -b"},
		{"a $(b c) d", "a $()? d|b c"},
		{"a `b c` d", "a $()? d|b c"},
		{"a \"$(b)\" '$(c)'", "a $()? $(c)|b"},
		{"a $(b $(c))", "a $()?|b $()?|c"},
		{"a `b \\`c\\``", "a $()?|b $()?|c"},
		{"a $(b", "a $()?|b"},
		{"a$()b $( ) \"$()\" c``d $(: x)", "ab  cd|: x"},
		{"a <(b) >(c)", "a $()? $()?|b|c"},
		{"a $((1+2)) b", "a $_? b"},
		{"((1+2)); a", "a"},
		{"a $(pwd) $(echo x)", "a /w x|pwd|echo x"},
		{"a > b", "a >b"},
		{"a >b >>c 2>d <e &>f >|g", "a >b >c >d <e >f >g"},
		{"a 2>&1 >&- <&3", "a"},
		{"> b a", "a >b"},
		{"a2>b", "a2 >b"},
		{"a <<< 'x y'", "a =x y"},
		{"a <<E\nx\ny\nE\nb", "a =x\ny\n|b"},
		{"a <<E | b\nx\nE\nc", "a =x\n|b|c"},
		{"a <<-E\n\tx\n\tE\nb", "a =\tx\n|b"},
		{"a <<E <<F\nx\nE\ny\nF\nb", "a =x\n =y\n|b"},
		{"a <<E\n$(b)\nE", "a =$(b)\n|b"},
		{"a <<'E'\n$(b)\nE", "a =$(b)\n"},
		{"a <<E\nx", "a =x"},
		{"(a; b)", "a|b"},
		{"(a) > x", "a|>x"},
		{"{ a; b; } | c", "a|b|c"},
		{"{a", "{a"},
		{"if a; then b; elif c; then d; else e; fi; f", "a|b|c|d|e|f"},
		{"while a; do b; done < x", "a|b|<x"},
		{"until a; do b; done", "a|b"},
		{"for x in 1 2; do a $x; done", "a $x?"},
		{"for x in 1; do a $x; done", "a 1"},
		{"for x; do a; done", "a"},
		{"for x in $(b); do a; done", "b|a"},
		{"for x in $(b); do a $x; done", "b|a $x?"},
		{"for ((i=0;i<3;i++)); do a; done", "a"},
		{"case $x in a|b) c ;; (d) e;; esac; f", "c|e|f"},
		{"case $(a) in *) b; esac", "a|b"},
		{"f() { a; }; b", "a|b"},
		{"f () (a); b", "a|b"},
		{"function f { a; }; b", "a|b"},
		{"function f() { a; }; b", "a|b"},
		{"! a", "a"},
		{"[[ a < b && c > d ]] && e", "[[ a b c d ]]|e"},
		{"x=(1 2 $(a)) b", "x= b|a"},
		{"echo if then done }", "echo if then done }"},
		{"fi a; done; b )", "a|b"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct coop_words words;
		char found[512];

		read_line(&words, rows[i].line);
		print_words(&words, found, sizeof found);
		assert_false(words.too_long);
		assert_false(words.no_memory);
		coop_words_clear(&words);
		if (strcmp(found, rows[i].words) != 0)
			fail_msg("%s: expected [%s], found [%s]", rows[i].line, rows[i].words,
				 found);
	}
}

static void structure(void **state)
{
	struct coop_words words;

	read_line(&words, "a $(b) | { c; d; } | e & f");
	assert_int_equal(words.command_count, 6);
	assert_int_equal(words.commands[1].parent, 0);
	assert_int_equal(words.commands[1].via, COOP_VIA_SUBSTITUTION);
	assert_int_equal(words.pipe_count, 2);
	assert_int_equal(words.pipes[0].middle, 2);
	assert_int_equal(words.pipes[0].end, 4);
	assert_int_equal(words.pipes[1].first, 0);
	assert_int_equal(words.pipes[1].end, 5);
	assert_true(words.commands[4].background);
	assert_false(words.commands[5].background);
	assert_true(coop_words_within(&words, 1, 0, 1));
	assert_false(coop_words_within(&words, 2, 0, 2));
	coop_words_clear(&words);

	read_line(&words, "cd x; a; (cd /y; b); c; cd; d; cd $z; e; cd /; f");
	static const char *const places[] = {"/w",      "/w/x",    "/w/x", "/y", "/w/x", "/w/x",
					     "/home/u", "/home/u", NULL,   NULL, "/"};
	assert_int_equal(words.command_count, sizeof places / sizeof *places);
	for (size_t i = 0; i < words.command_count; i++) {
		if (places[i])
			assert_string_equal(words.commands[i].cwd, places[i]);
		else
			assert_null(words.commands[i].cwd);
	}
	coop_words_clear(&words);
}

/* A text of `count` times `part`, between `before` and `after`. */
static bool too_long(const char *before, const char *part, size_t count, const char *after)
{
	size_t size = strlen(before) + strlen(part) * count + strlen(after);
	char *line = malloc(size + 1), *at = line;
	struct coop_words words;

	assert_non_null(line);
	at = stpcpy(at, before);
	for (size_t i = 0; i < count; i++)
		at = stpcpy(at, part);
	(void)stpcpy(at, after);
	read_line(&words, line);
	bool result = words.too_long;
	assert_false(words.no_memory);
	coop_words_clear(&words);
	free(line);
	return result;
}

static void limits(void **state)
{
	assert_false(too_long("", "a;", 16384, ""));
	assert_true(too_long("", "a;", 16385, ""));
	assert_false(too_long("", "a ", 131072, ""));
	assert_true(too_long("", "a ", 140000, ""));
	assert_false(too_long("echo ", "x", 1048000, ""));
	assert_true(too_long("echo ", "x", 1048600, ""));
	assert_false(too_long("cat <<E\n", "a line; of $text\n", 50000, "E"));
	assert_false(too_long("a {x", ",x", 250, "}"));
	assert_true(too_long("a {x", ",x", 260, "}"));
	assert_false(too_long("", "(", 15, "a"));
	assert_true(too_long("", "(", 100, "a"));
	assert_true(too_long("", "$(", 1000, "a"));
	assert_true(too_long("", "${", 1000, "a"));
	assert_true(too_long("", "if ", 1000, "a"));
	assert_true(too_long("", "$((", 1000, "a"));
	assert_true(too_long(
		"x=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;",
		"x=$x$x;", 30, "a $x"));
	assert_true(too_long("", "a <<E ", 9, ""));
}

static void without_memory(void **state)
{
	static const char line[] = "a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e "
				   "f g h i j k l m n o p q r "
				   "s t u v w x y z; b; c; d | e | f | g; h; i; j; k; f() { a; }; "
				   "g() { b; }; h() { c; }";

	for (unsigned long n = 1; n < 100; n++) {
		struct coop_words words;
		char spec[32];

		(void)snprintf(spec, sizeof spec, "alloc:%lu", n);
		(void)setenv("COOP_FAULT", spec, 1);
		coop_mem_init();
		unsigned long before = coop_mem_failures();
		read_line(&words, line);
		bool failed = coop_mem_failures() > before;
		(void)unsetenv("COOP_FAULT");
		coop_mem_init();
		assert_int_equal(words.no_memory, failed);
		coop_words_clear(&words);
		if (!failed) {
			assert_true(n > 2);
			return;
		}
	}
	fail();
}

static void paths(void **state)
{
	static const struct {
		const char *cwd, *text, *path;
	} rows[] = {
		{"/a", "b", "/a/b"},     {"/a/", "./b//c/", "/a/b/c"},
		{"/a", "../b", "/b"},    {"/a", "../..", "/"},
		{"/a", "/../x/.", "/x"}, {NULL, "/x", "/x"},
		{"/a", "...", "/a/..."}, {"/", "", "/"},
		{"/a", ".", "/a"},
	};
	struct coop_path path;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_true(coop_path_make(&path, rows[i].cwd, rows[i].text));
		assert_string_equal(path.text, rows[i].path);
	}
	assert_false(coop_path_make(&path, NULL, "x"));
	char huge[5000];
	memset(huge, 'x', sizeof huge - 1);
	huge[sizeof huge - 1] = '\0';
	assert_false(coop_path_make(&path, "/", huge));
	assert_true(coop_path_within("/a/b", "/a"));
	assert_true(coop_path_within("/a", "/a/"));
	assert_true(coop_path_within("/a", "/"));
	assert_false(coop_path_within("/ab", "/a"));
}

static void globs(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool fits;
	} rows[] = {
		{"a*c", "abc", true},
		{"a*c", "ac", true},
		{"a*c", "abcd", false},
		{"*", "", true},
		{"?", "", false},
		{"*a*b*", "xaxbx", true},
		{"*a*b*", "xbxax", false},
		{"[a-c]x", "bx", true},
		{"[!a-c]x", "bx", false},
		{"[^a]", "b", true},
		{"[]]", "]", true},
		{"[", "[", true},
		{"[a", "[a", true},
		{"\\*", "*", true},
		{"\\*", "x", false},
		{"a/*", "a/b/c", true},
		{"rm -rf *", "rm -rf /x y", true},
		{"a**", "a", true},
		{"[a-]", "-", true},
		{"*.c", "x.c.c", true},
		{"a", "a ", false},
	};
	size_t budget = 10;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (coop_glob_match(rows[i].pattern, rows[i].text, NULL) != rows[i].fits)
			fail_msg("%s %s", rows[i].pattern, rows[i].text);
	}
	/* Out of breath counts as found. */
	assert_true(coop_glob_match("*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", &budget));
	assert_int_equal(budget, 0);
}

static void programs(void **state)
{
	static const char *const known[] = {".",       "7z",   "[",         "apt-get",
					    "bash",    "curl", "mkfs.ext4", "pip3.11",
					    "python3", "rm",   "xz",        "zsh"};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		assert_true(coop_program_find(known[i])->traits ||
			    coop_program_find(known[i])->kind);
	assert_int_equal(coop_program_find("sudoku")->traits, 0);
	assert_int_equal(coop_program_find("")->traits, 0);
	assert_true(coop_program_sorted());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),    cmocka_unit_test(structure),
		cmocka_unit_test(limits),   cmocka_unit_test(without_memory),
		cmocka_unit_test(paths),    cmocka_unit_test(globs),
		cmocka_unit_test(programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
