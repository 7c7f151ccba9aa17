/* Layouts with a /tmp that several share, and with a folder of which only what was granted is
 * seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layouts.h"

static void test_it_lies_over_the_private_one(void **state)
{
	struct setting s;
	struct coop_layout layout, without;
	struct coop_layout_root tmp = {.fd = -1, .dev = 1, .ino = 2};
	char lines[256];
	size_t count;

	(void)state;
	begin(&s);
	s.policy.protect_replaces = true;
	grant(&s, inside_tmp);
	expect(&s, &without, NULL);
	tmp.path = at(&s, "/other");
	s.input.tmp = &tmp;
	/* Prepared sandboxes are the same with it and without; what lies in the host's /tmp is
	 * brought in as ever. */
	(void)snprintf(lines, sizeof lines, "TREE /tmp rw\nTREE %s rw\n", inside_tmp);
	expect(&s, &layout, lines);
	assert_int_equal(layout.base_ops, without.base_ops);
	assert_int_equal(layout.base_text, without.base_text);
	assert_memory_equal(coop_buf_front(&layout.text), coop_buf_front(&without.text),
			    layout.base_text);
	const struct coop_plan_op *op = ops_of(&layout, &count) + layout.base_ops;
	assert_string_equal(coop_buf_front(&layout.text) + op->source, tmp.path);
	assert_int_equal(op->ino, 2);
	/* Not only of the one that a prepared sandbox began with. */
	assert_true(count_rules(&layout, COOP_ACCESS_WRITE, "/tmp") == 2);
	assert_false(rule(&layout, COOP_ACCESS_WRITE, tmp.path));
	coop_layout_clear(&layout);
	coop_layout_clear(&without);
}

/* Where its folder is known. */
static void test_the_name_of_a_given_file_is_held_on_disk(void **state)
{
	struct setting s;
	struct coop_layout layout;
	struct coop_layout_root tmp = {.fd = -1};
	struct coop_injection files[2] = {
		{.path = "/tmp/token", .bytes = (const uint8_t *)"a", .size = 1},
		{.path = "/tmp/sub/token", .bytes = (const uint8_t *)"a", .size = 1}};

	(void)state;
	begin(&s);
	tmp.path = at(&s, "/other");
	s.input.tmp = &tmp;
	s.input.injections = files;
	s.input.injection_count = 2;
	expect(&s, &layout, "TREE /tmp rw\nFILE /tmp/token\nFILE /tmp/sub/token\n");
	assert_int_equal(layout.ghost_count, 1);
	assert_string_equal(layout.ghosts[0].path + strlen(top), "/other/token");
	coop_layout_clear(&layout);
	files[1].path = "/tmp";
	refuses(&s, COOP_INVALID_INPUT, "file_injections[1].path");
}

static void test_what_comes_with_it(void **state)
{
	struct setting s;
	struct coop_layout layout;
	struct coop_layout_root tmp = {.fd = -1};
	char lines[256];

	(void)state;
	begin(&s);
	tmp.path = at(&s, "/other");
	s.input.tmp = &tmp;
	/* A home in it comes after it. */
	s.input.home = inside_tmp;
	(void)snprintf(lines, sizeof lines, "TREE /tmp rw\nLAYER %s\n", inside_tmp);
	expect(&s, &layout, lines);
	assert_true(rule(&layout, COOP_ACCESS_WRITE, inside_tmp));
	coop_layout_clear(&layout);
	s.input.home = NULL;

	/* Found by its path it needs the old root; a detached mount does not. */
	s.policy.root = COOP_ROOT_MINIMAL;
	s.input.root_keeper = true;
	expect(&s, &layout, "TREE /tmp rw\nPIVOT\n");
	coop_layout_clear(&layout);
	tmp.fd = 0;
	expect(&s, &layout, "TREE /tmp rw\n");
	coop_layout_clear(&layout);
	tmp.fd = -1;

	s.host.error[COOP_CAN_USERNS] = EPERM;
	expect(&s, &layout, "");
	assert_true(rule(&layout, COOP_ACCESS_WRITE, tmp.path));
	assert_false(rule(&layout, COOP_ACCESS_WRITE, "/tmp"));
	coop_layout_clear(&layout);
}

static void test_an_emptied_folder(void **state)
{
	struct setting s;
	struct coop_layout layout;

	(void)state;
	begin(&s);
	s.policy.protect_replaces = true;
	const char *w = at(&s, "/w"), *sub = at(&s, "/w/sub");
	s.input.emptied = w;
	expect(&s, &layout, "");
	assert_true(has(&layout, "TMPFS @/w"));
	coop_layout_clear(&layout);
	grant(&s, sub);
	expect(&s, &layout, "TREE @/w/sub rw\n");
	coop_layout_clear(&layout);

	/* Without mounts all can be read but what is in it, and of that what was granted. */
	s.host.error[COOP_CAN_USERNS] = EPERM;
	expect(&s, &layout, "");
	assert_true(rule(&layout, COOP_ACCESS_WRITE, sub));
	assert_true(rule(&layout, COOP_ACCESS_READ, "/usr"));
	assert_false(rule(&layout, COOP_ACCESS_READ, "/"));
	assert_false(rule(&layout, COOP_ACCESS_READ, top));
	assert_false(rule(&layout, COOP_ACCESS_READ, w));
	assert_true(rule(&layout, COOP_ACCESS_READ, at(&s, "/other")));
	coop_layout_clear(&layout);
	s.readable[0] = s.writable[0];
	s.input.readable_count = 1;
	s.input.writable_count = 0;
	expect(&s, &layout, "");
	assert_true(rule(&layout, COOP_ACCESS_READ, sub));
	assert_false(rule(&layout, COOP_ACCESS_WRITE, sub));
	assert_false(rule(&layout, COOP_ACCESS_READ, w));
	coop_layout_clear(&layout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_lies_over_the_private_one),
		cmocka_unit_test(test_the_name_of_a_given_file_is_held_on_disk),
		cmocka_unit_test(test_what_comes_with_it),
		cmocka_unit_test(test_an_emptied_folder),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
