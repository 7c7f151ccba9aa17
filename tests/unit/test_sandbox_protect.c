/* What is protected and what is denied: operations and placeholders, by way of links, hard links,
 * and the files of git. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layouts.h"

static void test_protected(void **state)
{
	struct setting s;
	struct coop_layout layout;
	char ghosts[4096];

	(void)state;
	begin(&s);
	grant(&s, at(&s, "/repo"));
	s.policy.protect = ARGS("deep/er/x", "../outside");
	expect(&s, &layout,
	       "TREE @/repo rw\n"
	       "PIN @/repo/.git\n"
	       "PIN @/repo/.git/worktrees\n"
	       "PIN @/repo/.git/worktrees/t\n"
	       "PIN @/repo/.profile\n"
	       "PIN @/repo/deep\n"
	       "PIN @/repo/dots\n"
	       "READONLY @/repo/.git/commondir ?\n"
	       "READONLY @/repo/.git/config\n"
	       "READONLY @/repo/.git/config.worktree ?\n"
	       "READONLY @/repo/.git/hooks ?\n"
	       "READONLY @/repo/.git/worktrees/t/commondir\n"
	       "READONLY @/repo/.git/worktrees/t/config.worktree ?\n"
	       "READONLY @/repo/.vscode ?\n"
	       "READONLY @/repo/deep/er ?\n"
	       "READONLY @/repo/dots/profile\n"
	       "COVER @/repo/.bash_login ?\n"
	       "COVER @/repo/.bash_profile ?\n"
	       "COVER @/repo/.bashrc ?\n"
	       "COVER @/repo/.claude ?\n"
	       "COVER @/repo/.cursor ?\n"
	       "COVER @/repo/.envrc ?\n"
	       "COVER @/repo/.gemini ?\n"
	       "COVER @/repo/.gitconfig ?\n"
	       "COVER @/repo/.gitmodules ?\n"
	       "COVER @/repo/.hg ?\n"
	       "COVER @/repo/.idea ?\n"
	       "COVER @/repo/.jj ?\n"
	       "COVER @/repo/.mcp.json ?\n"
	       "COVER @/repo/.opencode ?\n"
	       "COVER @/repo/.zlogin ?\n"
	       "COVER @/repo/.zprofile ?\n"
	       "COVER @/repo/.zshenv ?\n"
	       "COVER @/repo/.zshrc ?\n"
	       "COVER @/repo/commondir ?\n"
	       "COVER @/repo/refs ?\n");
	show_ghosts(&layout, ghosts, sizeof ghosts);
	assert_non_null(strstr(ghosts, "/repo/.git/hooks/ "));
	assert_non_null(strstr(ghosts, "/repo/.vscode/ "));
	assert_non_null(strstr(ghosts, "/repo/.bashrc "));
	assert_non_null(strstr(ghosts, "/repo/deep/er/ "));

	/* What stands is to be found. */
	layout.ghosts[0].held = true;
	size_t count;
	const struct coop_plan_op *ops = ops_of(&layout, &count);
	size_t before = 0, after = 0;
	for (size_t i = 0; i < count; i++)
		before += ops[i].flags & COOP_OP_OPTIONAL ? 1 : 0;
	coop_layout_insist(&layout);
	for (size_t i = 0; i < count; i++)
		after += ops[i].flags & COOP_OP_OPTIONAL ? 1 : 0;
	assert_int_equal(after, before - 1);
	coop_layout_clear(&layout);
}

static void test_linked_work_tree(void **state)
{
	struct setting s;
	struct coop_layout layout;

	(void)state;
	begin(&s);
	grant(&s, at(&s, "/tree"));
	grant(&s, at(&s, "/repo"));
	expect(&s, &layout, NULL);
	assert_true(has(&layout, "READONLY @/tree/.git"));
	assert_true(has(&layout, "PIN @/repo/.git"));
	assert_true(has(&layout, "READONLY @/repo/.git/config"));
	assert_true(has(&layout, "READONLY @/repo/.git/worktrees/t/commondir"));
	assert_true(has(&layout, "READONLY @/repo/.git/worktrees/t/config.worktree ?"));
	/* Who has a commondir has no hooks of its own. */
	assert_false(has(&layout, "READONLY @/repo/.git/worktrees/t/hooks ?"));
	coop_layout_clear(&layout);
}

/* Each link on the way is held, not only the first and the end. */
static void test_chains_of_links(void **state)
{
	struct setting s;
	struct coop_layout layout;

	(void)state;
	make_folder("/chain");
	make_folder("/chain/real");
	make_folder("/chain/real/vscode");
	make_folder("/chain/side");
	make_link("real", "/chain/conf");
	make_link("side/../conf/./vscode", "/chain/.vscode");
	make_link("loop", "/chain/loop");
	begin(&s);
	s.policy.protect_replaces = true;
	s.policy.protect = ARGS(".vscode", "loop/x");
	grant(&s, at(&s, "/chain"));
	expect(&s, &layout,
	       "TREE @/chain rw\n"
	       "PIN @/chain/.vscode\n"
	       "PIN @/chain/conf\n"
	       "PIN @/chain/loop\n"
	       "PIN @/chain/real\n"
	       "PIN @/chain/side\n"
	       "READONLY @/chain/real/vscode\n");
	coop_layout_clear(&layout);

	/* From outside, by way of a link that can be changed. */
	begin(&s);
	s.policy.protect_replaces = true;
	make_link("chain/conf", "/to-chain");
	s.policy.deny_write = ARGS(at(&s, "/to-chain/vscode"));
	grant(&s, at(&s, "/chain"));
	expect(&s, &layout,
	       "TREE @/chain rw\nPIN @/chain/conf\nPIN @/chain/real\n"
	       "READONLY @/chain/real/vscode\n");
	coop_layout_clear(&layout);
}

/* `.git` is a link to a file that names a folder by way of another link. */
static void test_git_file_behind_links(void **state)
{
	struct setting s;
	struct coop_layout layout;

	(void)state;
	make_folder("/behind");
	make_folder("/behind/stores");
	make_folder("/behind/stores/one");
	make_folder("/behind/stores/one/hooks");
	make_file("/behind/stores/one/HEAD", "");
	make_link("stores", "/behind/store");
	make_file("/behind/file", "gitdir: ./store/one\n");
	make_link("file", "/behind/.git");
	begin(&s);
	grant(&s, at(&s, "/behind"));
	expect(&s, &layout, NULL);
	assert_true(has(&layout, "PIN @/behind/.git"));
	assert_true(has(&layout, "READONLY @/behind/file"));
	assert_true(has(&layout, "PIN @/behind/store"));
	assert_true(has(&layout, "PIN @/behind/stores/one"));
	assert_true(has(&layout, "READONLY @/behind/stores/one/hooks"));
	assert_true(has(&layout, "READONLY @/behind/stores/one/config ?") ||
		    has(&layout, "COVER @/behind/stores/one/config ?"));
	assert_true(has(&layout, "READONLY @/behind/stores/one/commondir ?"));
	coop_layout_clear(&layout);
}

static const char *content_of(const struct coop_layout *layout, const char *name)
{
	for (size_t i = 0; i < layout->ghost_count; i++) {
		if (!strcmp(layout->ghosts[i].path + strlen(top), name))
			return layout->ghosts[i].content ? layout->ghosts[i].content : "socket";
	}
	return "none";
}

/* Modules, also those whose names have slashes, and modules of modules. What is no repository gets
 * nothing, and the beginning of one is read-only as a whole. */
static void test_modules(void **state)
{
	static const char *const folders[] = {"/super",
					      "/super/.git",
					      "/super/.git/modules",
					      "/super/.git/modules/a",
					      "/super/.git/modules/a/objects",
					      "/super/.git/modules/a/refs",
					      "/super/.git/modules/a/modules",
					      "/super/.git/modules/a/modules/in",
					      "/super/.git/modules/a/modules/in/objects",
					      "/super/.git/modules/a/modules/in/refs",
					      "/super/.git/modules/lib",
					      "/super/.git/modules/lib/b"};
	struct setting s;
	struct coop_layout layout;

	(void)state;
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		make_folder(folders[i]);
	make_file("/super/.git/HEAD", "");
	make_file("/super/.git/modules/a/HEAD", "");
	make_file("/super/.git/modules/a/config", "");
	make_file("/super/.git/modules/a/modules/in/HEAD", "");
	make_file("/super/.git/modules/a/modules/in/config", "");
	make_file("/super/.git/modules/lib/b/HEAD", "");
	begin(&s);
	grant(&s, at(&s, "/super"));
	expect(&s, &layout, NULL);
	assert_true(has(&layout, "READONLY @/super/.git/modules/a/config"));
	assert_true(has(&layout, "READONLY @/super/.git/modules/a/hooks ?"));
	assert_true(has(&layout, "READONLY @/super/.git/modules/a/modules/in/commondir ?"));
	assert_true(has(&layout, "READONLY @/super/.git/modules/lib/b"));
	assert_string_equal(content_of(&layout, "/super/.git/modules/lib/b/commondir"), "none");
	assert_true(has(&layout, "PIN @/super/.git/modules/lib"));
	assert_string_equal(content_of(&layout, "/super/.git/modules/lib/commondir"), "none");
	assert_string_equal(content_of(&layout, "/super/.git/commondir"), ".\n");
	assert_string_equal(content_of(&layout, "/super/.git/config.worktree"), "");
	assert_string_equal(content_of(&layout, "/super/.bashrc"), "socket");
	coop_layout_clear(&layout);
}

static void test_denied(void **state)
{
	struct setting s;
	struct coop_layout layout;

	(void)state;
	begin(&s);
	s.policy.protect_replaces = true;
	grant(&s, at(&s, "/w"));
	s.policy.deny_read = ARGS(at(&s, "/w/missing/x"), at(&s, "/secret"), at(&s, "/alias/file"),
				  at(&s, "/w/sub/*.pem"), "/tmp/nobody-sees-it", at(&s, "/later"));
	s.policy.deny_write = ARGS(at(&s, "/w/sub/kept"));
	expect(&s, &layout,
	       "TREE @/w rw\n"
	       "PIN @/w/sub\n"
	       "COVER @/later ?\n"
	       "COVER @/secret\n"
	       "COVER @/w/missing ?\n"
	       "COVER @/w/sub/a.pem\n"
	       "COVER @/w/sub/b.pem\n"
	       "COVER @/w/sub/kept ?\n");
	assert_string_equal(layout.globs, "1 pattern, 2 matches at the start");
	assert_int_equal(layout.ghost_count, 3);
	assert_string_equal(layout.note, "");
	coop_layout_clear(&layout);

	s.policy.deny_read = ARGS("/");
	refuses(&s, COOP_INVALID_INPUT, "sandbox.deny_read[0]");
	s.policy.deny_read = ARGS("/x/../y");
	refuses(&s, COOP_INVALID_INPUT, "sandbox.deny_read[0]");
}

static void test_pattern_with_too_many_matches(void **state)
{
	struct setting s;
	struct coop_layout layout;
	char name[64];

	(void)state;
	begin(&s);
	make_folder("/many");
	for (int i = 0; i < 1025; i++) {
		(void)snprintf(name, sizeof name, "/many/%d", i);
		make_file(name, "");
	}
	s.policy.deny_read = ARGS("/nowhere/*", at(&s, "/many/*"));
	refuses(&s, COOP_TOO_LARGE, "sandbox.deny_read[1]");
	s.policy.deny_read = ARGS(at(&s, "/many/10*"));
	expect(&s, &layout, NULL);
	assert_string_equal(layout.globs, "1 pattern, 36 matches at the start");
	coop_layout_clear(&layout);
	s.policy.deny_read = ARGS(at(&s, "/**/*.pem"));
	expect(&s, &layout, NULL);
	assert_true(has(&layout, "COVER @/w/sub/a.pem"));
	coop_layout_clear(&layout);
}

static void test_hard_links(void **state)
{
	struct setting s;
	struct coop_layout layout;
	char from[256], to[256];

	(void)state;
	make_folder("/linked");
	make_folder("/linked/deep");
	make_file("/key", "secret");
	(void)snprintf(from, sizeof from, "%s/key", top);
	(void)snprintf(to, sizeof to, "%s/linked/deep/twin", top);
	assert_int_equal(link(from, to), 0);
	begin(&s);
	s.policy.protect_replaces = true;
	grant(&s, at(&s, "/linked"));
	s.policy.deny_read = ARGS(from);
	expect(&s, &layout,
	       "TREE @/linked rw\nPIN @/linked/deep\n"
	       "COVER @/key\nCOVER @/linked/deep/twin\n");
	assert_string_equal(layout.note, "");
	coop_layout_clear(&layout);

	/* A name that is not found may show it. */
	(void)snprintf(to, sizeof to, "%s/other/third", top);
	assert_int_equal(link(from, to), 0);
	expect(&s, &layout, NULL);
	assert_non_null(strstr(layout.note, "hard links"));
	coop_layout_clear(&layout);
	assert_int_equal(unlink(to), 0);
}

/* What stands for another process counts as missing, so that both hold it. */
static void test_placeholders_of_others(void **state)
{
	struct setting s;
	struct coop_layout first, second;
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	char one[1024], two[1024];

	(void)state;
	begin(&s);
	grant(&s, at(&s, "/other"));
	s.policy.deny_read = ARGS(at(&s, "/other/x/y"));
	s.input.ghosts = ghosts;
	expect(&s, &first, NULL);
	show_ghosts(&first, one, sizeof one);
	assert_int_equal(coop_ghosts_take(ghosts, first.ghosts, first.ghost_count), 0);
	expect(&s, &second, NULL);
	show_ghosts(&second, two, sizeof two);
	assert_string_equal(one, two);
	assert_true(coop_buf_size(&first.ops) == coop_buf_size(&second.ops));
	coop_ghosts_drop(ghosts, first.ghosts, first.ghost_count);
	coop_ghosts_free(ghosts);
	coop_layout_clear(&first);
	coop_layout_clear(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_protected),
		cmocka_unit_test(test_linked_work_tree),
		cmocka_unit_test(test_chains_of_links),
		cmocka_unit_test(test_git_file_behind_links),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_pattern_with_too_many_matches),
		cmocka_unit_test(test_hard_links),
		cmocka_unit_test(test_placeholders_of_others),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
