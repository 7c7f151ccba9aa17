/* Names are resolved where may be looked, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "folder.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/layout/path_walk.h"

/* All in `in` may be looked at, but for `in/hidden`; to it leads all that it lies in. */
static bool may(const struct coop_lookable *seen, const char *path)
{
	char in[128], hidden[128];

	(void)snprintf(in, sizeof in, "%s/in", folder);
	(void)snprintf(hidden, sizeof hidden, "%s/in/hidden", folder);
	return coop_path_below(path, in) && !coop_path_below(path, hidden);
}

static bool leads(const struct coop_lookable *seen, const char *path)
{
	return coop_path_below(folder, path);
}

static const struct coop_lookable seen = {may, leads, NULL};

/* `name` and `place` begin in the folder of the test; NULL: no place is told. */
static void expect(const char *name, int status, const char *place)
{
	char path[512], real[COOP_PATH_SIZE];

	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(coop_path_walk(&seen, path, real), status);
	(void)snprintf(path, sizeof path, "%s/%s", folder, place ? place : "");
	assert_string_equal(real, place ? path : "");
}

static void make(const char *name)
{
	assert_int_equal(mkdir(folder_path(name), 0700), 0);
}

static void link_to(const char *name, const char *target)
{
	assert_int_equal(symlink(target, folder_path(name)), 0);
}

static int make_world(void **state)
{
	if (folder_make(state) < 0)
		return -1;
	make("in");
	make("in/sub");
	make("in/hidden");
	make("out");
	make("out/there");
	link_to("in/link", "sub");
	link_to("in/loop", "loop");
	link_to("in/to-there", "../out/there");
	link_to("in/to-gone", "../out/gone");
	link_to("in/over-there", "../out/there/../../in/sub");
	link_to("in/over-gone", "../out/gone/../../in/sub");
	link_to("in/back", "../out/back");
	link_to("out/back", "../in/sub");
	link_to("alias", "in");
	return 0;
}

static void test_inside(void **state)
{
	expect("in", 0, "in");
	expect("in/sub/../link/.", 0, "in/sub");
	expect("in//link//", 0, "in/sub");
	expect("in/gone", -ENOENT, "in/gone");
	expect("in/gone/on", -ENOENT, "in/gone/on");
	expect("in/gone/../on", -ENOENT, NULL);
	expect("in/loop", -ELOOP, "in/loop");
	/* A name of the host's for the same folder. */
	expect("alias/link", 0, "in/sub");
}

static void test_outside(void **state)
{
	expect("in/to-there", -EXDEV, "out/there");
	expect("in/to-gone", -EXDEV, "out/gone");
	expect("out/there", -EXDEV, "out/there");
	expect("out/gone/on", -EXDEV, "out/gone/on");
	expect("in/../out", -EXDEV, "out");
	expect("gone", -EXDEV, "gone");
	expect("in/over-there", -EXDEV, NULL);
	expect("in/over-gone", -EXDEV, NULL);
	/* The links that lie there are not read. */
	expect("in/back", -EXDEV, "out/back");
	expect("in/hidden", -EXDEV, "in/hidden");
	expect("in/hidden/gone", -EXDEV, "in/hidden/gone");
}

static void test_patterns(void **state)
{
	assert_false(coop_path_begins_outside(&seen, folder_path("in/*")));
	assert_false(coop_path_begins_outside(&seen, folder_path("in/gone/x*")));
	assert_true(coop_path_begins_outside(&seen, folder_path("out/*")));
	assert_true(coop_path_begins_outside(&seen, folder_path("in/to-gone/*")));
	assert_true(coop_path_begins_outside(&seen, folder_path("i*")));
}

/* Links to what is not there are followed, as it may be made later; but not for ever. */
static void test_chains(void **state)
{
	char real[COOP_PATH_SIZE], name[32], target[32];
	bool exists = true;

	for (unsigned i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof name, "chain%u", i);
		(void)snprintf(target, sizeof target, "chain%u", i + 1);
		link_to(name, target);
	}
	assert_int_equal(coop_path_resolve(folder_path("chain15"), real, &exists), 0);
	assert_string_equal(strrchr(real, '/'), "/chain20");
	assert_false(exists);
	assert_int_equal(coop_path_resolve(folder_path("chain0"), real, &exists), -ELOOP);
	/* What is not there has no links of its own: ".." is the name before it. */
	link_to("up", "gone/./..//chain20/on");
	assert_int_equal(coop_path_resolve(folder_path("up"), real, &exists), 0);
	assert_string_equal(strrchr(real, '/') - strlen("/chain20"), "/chain20/on");
	assert_null(strstr(real, "gone"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_inside, make_world, folder_remove),
		cmocka_unit_test_setup_teardown(test_outside, make_world, folder_remove),
		cmocka_unit_test_setup_teardown(test_patterns, make_world, folder_remove),
		cmocka_unit_test_setup_teardown(test_chains, make_world, folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
