/* From a policy to mount operations: each row is a policy over a small tree on disk, and the
 * operations that come of it, as lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "base/mem.h"
#include "layouts.h"
#include "sandbox/layout/mountinfo.h"

static void test_base_of_the_host(void **state)
{
	struct setting s;
	struct coop_layout layout;
	char shown[16384];
	struct stat st;

	(void)state;
	begin(&s);
	expect(&s, &layout, "");
	show(&layout, 0, shown, sizeof shown);
	assert_string_equal(
		shown, lstat("/run", &st) == 0
			       ? "ROOT_READONLY\nTMPFS /tmp\nTMPFS /run\nDEV /dev\nPROC /proc\n"
			       : "ROOT_READONLY\nTMPFS /tmp\nDEV /dev\nPROC /proc\n");
	size_t count;
	const struct coop_plan_op *ops = ops_of(&layout, &count);
	assert_int_equal(ops[1].size, 256u << 20);
	assert_int_equal(ops[1].mode, 01777);
	coop_layout_clear(&layout);

	s.policy.limits.tmp_bytes = 12345;
	s.host.error[COOP_CAN_PIDNS] = EPERM;
	expect(&s, &layout, "");
	ops = ops_of(&layout, &count);
	assert_int_equal(ops[1].size, 12345);
	assert_false(has(&layout, "PROC /proc"));
	coop_layout_clear(&layout);
}

static void test_base_of_an_empty_root(void **state)
{
	struct setting s;
	struct coop_layout layout;

	(void)state;
	begin(&s);
	s.policy.root = COOP_ROOT_MINIMAL;
	expect(&s, &layout, "PIVOT\n");
	assert_true(has(&layout, "ROOT_EMPTY"));
	assert_true(has(&layout, "TREE /usr"));
	assert_true(has(&layout, "TREE /etc"));
	assert_false(has(&layout, "TREE /sys"));
	struct stat st;
	if (lstat("/bin", &st) == 0 && S_ISLNK(st.st_mode))
		assert_true(has(&layout, "LINK /bin"));
	coop_layout_clear(&layout);

	/* With detached mounts nothing of the old root is needed any more, so a slot can be rid of
	 * it. */
	s.input.root_keeper = true;
	grant(&s, at(&s, "/w"));
	s.writable[0].fd = 0;
	expect(&s, &layout, NULL);
	assert_true(position(&layout, "PIVOT") < position(&layout, "TREE @/w rw"));
	assert_true(position(&layout, "WAY @/w") < position(&layout, "TREE @/w rw"));
	coop_layout_clear(&layout);
}

static bool masked(const struct coop_layout *layout, const char *name)
{
	size_t count;
	const struct coop_plan_op *ops = ops_of(layout, &count);

	for (size_t i = 0; i < count; i++) {
		if (ops[i].kind != COOP_OP_LAYER)
			continue;
		const char *mask = (const char *)coop_buf_front(&layout->text) + ops[i].data;
		for (uint32_t j = 0; j < ops[i].count; j++, mask += strlen(mask) + 1) {
			if (!strcmp(mask, name))
				return true;
		}
	}
	return false;
}

static void test_home(void **state)
{
	struct setting s;
	struct coop_layout layout;
	const char *hidden[] = {NULL, NULL};

	(void)state;
	begin(&s);
	s.input.home = at(&s, "/home");
	hidden[0] = at(&s, "/home/state");
	s.input.hidden = hidden;
	s.policy.deny_read = ARGS("~/private", "~/.config");
	expect(&s, &layout, "");
	assert_true(has(&layout, "LAYER @/home"));
	assert_int_equal(layout.home, COOP_HOME_COW);
	assert_true(masked(&layout, ".ssh"));
	assert_true(masked(&layout, "private"));
	assert_true(masked(&layout, "state"));
	/* What is hidden whole has nothing to be hidden in it. */
	assert_true(masked(&layout, ".config"));
	assert_false(masked(&layout, ".config/gh"));
	/* A link to elsewhere: its own name goes, and what it leads to is covered in the home as
	 * well. */
	assert_true(masked(&layout, ".aws"));
	assert_true(masked(&layout, "clouds/aws"));
	/* No folder is made only to hide something in it. */
	assert_true(masked(&layout, "snap"));
	assert_int_equal(layout.ghost_count, 0);
	coop_layout_clear(&layout);

	s.host.error[COOP_CAN_OVERLAY] = EPERM;
	s.policy.deny_read = NULL;
	expect(&s, &layout, "COVER @/home/.ssh\nCOVER @/home/clouds/aws\n");
	assert_int_equal(layout.home, COOP_HOME_READ_ONLY);
	assert_true(has(&layout, "COVER @/home/state"));
	coop_layout_clear(&layout);

	s.input.root_keeper = true;
	expect(&s, &layout, "");
	assert_int_equal(layout.home, COOP_HOME_HIDDEN);
	assert_true(has(&layout, "TMPFS @/home"));
	coop_layout_clear(&layout);
}

static void test_home_in_odd_places(void **state)
{
	struct setting s;
	struct coop_layout layout;

	(void)state;
	begin(&s);
	s.input.home = "/";
	expect(&s, &layout, "");
	coop_layout_clear(&layout);
	s.input.home = "/nonexistent/home";
	expect(&s, &layout, "");
	assert_int_equal(layout.home, COOP_HOME_READ_ONLY);
	coop_layout_clear(&layout);
	s.input.home = "/tmp";
	expect(&s, &layout, "");
	assert_int_equal(layout.home, COOP_HOME_HIDDEN);
	coop_layout_clear(&layout);

	/* Below a private folder the layer comes after it. */
	s.input.home = inside_tmp;
	char line[128];
	(void)snprintf(line, sizeof line, "LAYER %s", inside_tmp);
	expect(&s, &layout, "");
	assert_true(position(&layout, "TMPFS /tmp") < position(&layout, line));
	coop_layout_clear(&layout);
	s.policy.home = COOP_HOME_READ_ONLY;
	(void)snprintf(line, sizeof line, "TREE %s", inside_tmp);
	expect(&s, &layout, "");
	assert_true(position(&layout, "TMPFS /tmp") < position(&layout, line));
	coop_layout_clear(&layout);

	/* A root around the home comes before it, one inside after it. */
	begin(&s);
	s.input.home = at(&s, "/outer/home");
	s.policy.protect_replaces = true;
	grant(&s, at(&s, "/outer"));
	grant(&s, at(&s, "/outer/home/work"));
	expect(&s, &layout, "TREE @/outer rw\nLAYER @/outer/home\nTREE @/outer/home/work rw\n");
	coop_layout_clear(&layout);
	s.policy.home = COOP_HOME_READ_ONLY;
	expect(&s, &layout, "TREE @/outer rw\nTREE @/outer/home\nTREE @/outer/home/work rw\n");
	coop_layout_clear(&layout);
}

static void test_trees(void **state)
{
	struct setting s;
	struct coop_layout layout;

	(void)state;
	begin(&s);
	s.policy.protect_replaces = true;
	grant(&s, at(&s, "/w/sub"));
	grant(&s, at(&s, "/w"));
	grant(&s, at(&s, "/other"));
	s.readable[0] = (struct coop_layout_root){.path = at(&s, "/w/sub"), .fd = -1};
	s.readable[1] = (struct coop_layout_root){.path = inside_tmp, .fd = -1, .dev = 1, .ino = 2};
	s.input.readable_count = 2;
	char lines[256];
	(void)snprintf(lines, sizeof lines, "TREE %s\nTREE @/other rw\nTREE @/w rw\n", inside_tmp);
	expect(&s, &layout, lines);
	coop_layout_clear(&layout);

	s.policy.deny_write = ARGS(at(&s, "/other"));
	s.input.readable_count = 0;
	expect(&s, &layout, "TREE @/w rw\n");
	coop_layout_clear(&layout);
}

static void test_keepers_own_and_sockets(void **state)
{
	struct setting s;
	struct coop_layout layout;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *hidden[] = {NULL, NULL, NULL}, *sockets[] = {NULL, NULL, NULL};

	(void)state;
	begin(&s);
	hidden[0] = at(&s, "/secret");
	hidden[1] = "/tmp";
	s.input.hidden = hidden;
	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s/sock", top);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	sockets[0] = address.sun_path;
	sockets[1] = "/tmp/any";
	s.input.sockets = sockets;
	expect(&s, &layout, "COVER @/sock ?\n");
	assert_true(has(&layout, "COVER @/secret"));
	assert_false(has(&layout, "COVER /tmp"));
	coop_layout_clear(&layout);
	(void)close(fd);
	(void)unlink(address.sun_path);
}

static void test_injections(void **state)
{
	struct setting s;
	struct coop_layout layout;
	struct coop_injection files[3] = {
		{.path = "/tmp/given/token", .bytes = (const uint8_t *)"a\0b", .size = 3},
		{.bytes = (const uint8_t *)"", .size = 0}};

	(void)state;
	begin(&s);
	s.policy.protect_replaces = true;
	grant(&s, at(&s, "/w"));
	files[1].path = at(&s, "/w/new");
	s.input.injections = files;
	s.input.injection_count = 2;
	expect(&s, &layout, "TREE @/w rw\nFILE /tmp/given/token\nFILE @/w/new\n");
	assert_int_equal(layout.ghost_count, 1);
	size_t count;
	const struct coop_plan_op *ops = ops_of(&layout, &count);
	assert_memory_equal(coop_buf_front(&layout.text) + ops[count - 2].data, "a\0b", 3);
	coop_layout_clear(&layout);

	static const char *const bad[] = {"/proc/1/environ", "/dev/null", "/sys/x",
					  "relative",        "/a/../b",   "/tmp//x",
					  "/usr/not-there",  "/usr/bin"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		files[1].path = bad[i];
		refuses(&s, COOP_INVALID_INPUT, "file_injections[1].path");
	}
	s.host.error[COOP_CAN_USERNS] = EPERM;
	refuses(&s, COOP_SANDBOX_UNAVAILABLE, "mounts");
}

/* Where a placeholder was put, one that is gone by the time it is to be covered fails the start. */
static void test_insists(void **state)
{
	struct setting s;
	struct coop_layout layout;

	(void)state;
	begin(&s);
	grant(&s, at(&s, "/w"));
	expect(&s, &layout, NULL);
	assert_true(layout.ghost_count > 1);
	for (size_t i = 0; i < layout.ghost_count; i++)
		layout.ghosts[i].held = i > 0;
	coop_layout_insist(&layout);
	size_t count;
	const struct coop_plan_op *ops = ops_of(&layout, &count);
	const char *text = (const char *)coop_buf_front(&layout.text);
	unsigned optional = 0, needed = 0;
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < layout.ghost_count; j++) {
			if (strcmp(layout.ghosts[j].path, text + ops[i].path) != 0)
				continue;
			assert_int_equal(!!(ops[i].flags & COOP_OP_OPTIONAL), j == 0);
			optional += j == 0;
			needed += j > 0;
		}
	}
	assert_true(optional > 0 && needed > 0);
	coop_layout_clear(&layout);
}

static void test_rules(void **state)
{
	struct setting s;
	struct coop_layout layout;

	(void)state;
	begin(&s);
	const char *w = at(&s, "/w"), *home = at(&s, "/home"), *secret = at(&s, "/secret");
	grant(&s, w);
	s.input.home = home;
	expect(&s, &layout, NULL);
	assert_true(rule(&layout, COOP_ACCESS_READ, "/"));
	assert_true(rule(&layout, COOP_ACCESS_WRITE, "/tmp"));
	assert_true(rule(&layout, COOP_ACCESS_WRITE, home));
	assert_true(rule(&layout, COOP_ACCESS_WRITE, w));
	assert_true(rule(&layout, COOP_ACCESS_PROC, "/proc"));
	coop_layout_clear(&layout);

	/* Without mounts nothing but rules: all beside what is denied. */
	s.host.error[COOP_CAN_USERNS] = EPERM;
	s.policy.deny_read = ARGS(secret);
	expect(&s, &layout, "");
	assert_int_equal(coop_buf_size(&layout.ops), 0);
	assert_int_equal(layout.ghost_count, 0);
	assert_false(rule(&layout, COOP_ACCESS_READ, "/"));
	assert_false(rule(&layout, COOP_ACCESS_READ, secret));
	assert_false(rule(&layout, COOP_ACCESS_READ, home));
	assert_true(rule(&layout, COOP_ACCESS_READ, "/usr"));
	assert_true(rule(&layout, COOP_ACCESS_WRITE, w));
	assert_true(rule(&layout, COOP_ACCESS_PROC, "/proc"));
	assert_false(rule(&layout, COOP_ACCESS_WRITE, "/tmp"));
	assert_true(*layout.note);
	coop_layout_clear(&layout);
}

struct told {
	char text[512];
};

static void tell(void *context, const char *alias)
{
	struct told *told = context;

	(void)snprintf(told->text + strlen(told->text), sizeof told->text - strlen(told->text),
		       "%s ", alias);
}

static void test_other_mounts(void **state)
{
	static const char table[] = "1 0 8:1 / / rw - ext4 d rw\n"
				    "2 1 8:1 /data /srv/with\\040space rw shared:1 - ext4 d rw\n"
				    "3 1 8:1 /data/sub /part rw - ext4 d rw\n"
				    "4 1 8:2 / /data2 rw - ext4 e rw\n"
				    "5 1 8:1 / /all rw - ext4 d rw\n"
				    "garbage\n\n6 1 0:4 net:[4026] /run/netns/x rw - nsfs n rw\n";
	struct coop_mountinfo info = {0};
	struct told told = {0};

	(void)state;
	assert_int_equal(coop_mountinfo_parse(&info, table, sizeof table - 1), 0);
	assert_int_equal(info.count, 5);
	coop_mountinfo_aliases(&info, "/data/sub/x", tell, &told);
	assert_string_equal(told.text, "/srv/with space/sub/x /part/x /all/data/sub/x ");
	told = (struct told){0};
	coop_mountinfo_aliases(&info, "/data", tell, &told);
	assert_string_equal(told.text, "/srv/with space /part /all/data ");
	told = (struct told){0};
	coop_mountinfo_aliases(&info, "/part", tell, &told);
	assert_string_equal(told.text, "/data/sub /srv/with space/sub /all/data/sub ");
	told = (struct told){0};
	coop_mountinfo_aliases(&info, "/data2/y", tell, &told);
	assert_string_equal(told.text, "");
	coop_mountinfo_clear(&info);
}

/* The type stands behind the dash, however many words come before it, and may be missing. */
static void test_types_of_mounts(void **state)
{
	static const char table[] = "1 0 8:1 / / rw - ext4 d rw\n"
				    "2 1 0:9 / /a rw shared:1 master:2 - fuse.sshfs h:/x rw\n"
				    "3 1 0:9 / /b rw shared:1\n4 1 0:9 / /c rw -\n5 1 0:9 / /d";
	static const char *const types[] = {"ext4", "fuse.sshfs", "", "", ""};
	struct coop_mountinfo info = {0};

	(void)state;
	assert_int_equal(coop_mountinfo_parse(&info, table, sizeof table - 1), 0);
	assert_int_equal(info.count, 5);
	for (size_t i = 0; i < info.count; i++)
		assert_string_equal(info.mounts[i].type, types[i]);
	coop_mountinfo_clear(&info);
}

/* A slot's part has nothing of the command, and both parts together are the whole. */
static void test_parts_of_a_body(void **state)
{
	struct setting s;
	struct coop_layout layout;
	const char *argv[] = {"cat", "file", NULL}, *envp[] = {"A=b", NULL};
	struct coop_plan_limit limit = {.resource = 7, .soft = 1, .hard = 2};
	struct coop_body parts = {
		.layout = &layout, .limits = &limit, .limit_count = 1, .argv = argv, .envp = envp};
	struct coop_plan plan = {0};
	struct coop_buf body = {0}, base = {0};
	struct coop_body_view view;

	(void)state;
	begin(&s);
	s.input.home = at(&s, "/home");
	grant(&s, at(&s, "/w"));
	expect(&s, &layout, NULL);
	parts.cwd = s.writable[0].path;
	assert_int_equal(coop_body_build(&parts, &plan, &body), 0);
	assert_true(coop_body_valid(&plan, coop_buf_front(&body), plan.body_size, &view));
	assert_string_equal(view.text, "cat");
	assert_string_equal(view.text + 9, "A=b");
	assert_string_equal(view.text + plan.cwd, parts.cwd);
	assert_int_equal(view.limits[0].hard, 2);
	assert_string_equal(view.text + view.ops[1].path, "/tmp");
	assert_string_equal(view.text + view.rules[0].path, "/");
	uint32_t all = plan.op_count, all_rules = plan.rule_count;

	struct coop_body slot = {.part = COOP_BODY_BASE, .layout = &layout};
	plan = (struct coop_plan){0};
	assert_int_equal(coop_body_build(&slot, &plan, &base), 0);
	assert_true(coop_body_valid(&plan, coop_buf_front(&base), plan.body_size, &view));
	assert_int_equal(plan.op_count, layout.base_ops);
	assert_string_equal(view.text + view.ops[1].path, "/tmp");
	assert_null(
		memmem(coop_buf_front(&base), coop_buf_size(&base), parts.cwd, strlen(parts.cwd)));

	parts.part = COOP_BODY_REST;
	plan = (struct coop_plan){0};
	coop_buf_clear(&body);
	assert_int_equal(coop_body_build(&parts, &plan, &body), 0);
	assert_true(coop_body_valid(&plan, coop_buf_front(&body), plan.body_size, &view));
	assert_int_equal(plan.op_count + layout.base_ops, all);
	assert_int_equal(plan.rule_count + layout.base_rules, all_rules);
	assert_string_equal(view.text + view.ops[0].path, parts.cwd);
	assert_string_equal(view.text + view.rules[0].path, parts.cwd);

	/* Each of these is seen. */
	uint8_t *bytes = coop_buf_front(&body);
	struct coop_plan_op *op = (struct coop_plan_op *)(void *)bytes, saved = *op;
	op->path = (uint32_t)plan.body_size;
	assert_false(coop_body_valid(&plan, bytes, plan.body_size, &view));
	*op = saved;
	op->fd = 0;
	assert_false(coop_body_valid(&plan, bytes, plan.body_size, &view));
	*op = saved;
	op->kind = COOP_OP_COUNT;
	assert_false(coop_body_valid(&plan, bytes, plan.body_size, &view));
	*op = saved;
	plan.argc = 1000;
	assert_false(coop_body_valid(&plan, bytes, plan.body_size, &view));
	plan.argc = 2;
	plan.op_count += 1000;
	assert_false(coop_body_valid(&plan, bytes, plan.body_size, &view));
	coop_buf_clear(&body);
	coop_buf_clear(&base);
	coop_layout_clear(&layout);

	/* No layout: only the command. */
	parts.part = COOP_BODY_ALL;
	parts.layout = NULL;
	plan = (struct coop_plan){0};
	assert_int_equal(coop_body_build(&parts, &plan, &body), 0);
	assert_true(coop_body_valid(&plan, coop_buf_front(&body), plan.body_size, &view));
	coop_buf_clear(&body);
}

/* Every allocation fails once: an error that says so, and nothing is lost. */
static void test_without_memory(void **state)
{
	struct setting s;
	struct coop_layout layout;
	struct coop_err err;
	char fault[32];
	int r = -1;

	(void)state;
	begin(&s);
	s.input.home = at(&s, "/home");
	grant(&s, at(&s, "/repo"));
	s.policy.deny_read = ARGS("~/x", at(&s, "/secret"), at(&s, "/w/sub/*"));
	for (unsigned i = 1; r < 0; i++) {
		(void)snprintf(fault, sizeof fault, "alloc:%u", i);
		(void)setenv("COOP_FAULT", fault, 1);
		coop_mem_init();
		err = (struct coop_err){0};
		r = coop_layout_build(&s.input, &layout, &err);
		assert_true(r == 0 || err.code != COOP_OK);
		assert_true(i < 1000);
	}
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	coop_layout_clear(&layout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base_of_the_host),
		cmocka_unit_test(test_base_of_an_empty_root),
		cmocka_unit_test(test_home),
		cmocka_unit_test(test_home_in_odd_places),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_keepers_own_and_sockets),
		cmocka_unit_test(test_injections),
		cmocka_unit_test(test_insists),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_other_mounts),
		cmocka_unit_test(test_types_of_mounts),
		cmocka_unit_test(test_parts_of_a_body),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
