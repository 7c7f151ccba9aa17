/* From a policy to mount operations: each row is a policy over a small tree on disk, and the operations that come of it, as lines. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sandbox/body.h"
#include "sandbox/layout.h"
#include "sandbox/mountinfo.h"

#define ARGS(...) ((char **)(uintptr_t)(const char *const[]){__VA_ARGS__, NULL})

/* Outside of /tmp, which is private in every view. */
static char top[64], inside_tmp[64];

struct setting {
	struct coop_sandbox_policy policy;
	struct coop_host host;
	struct coop_layout_input input;
	struct coop_layout_root writable[4], readable[4];
	char paths[8][256];
	size_t path_count;
};

static const char *at(struct setting *s, const char *name)
{
	char *path = s->paths[s->path_count++];

	assert_true(s->path_count <= 8);
	(void)snprintf(path, sizeof s->paths[0], "%s%s", top, name);
	return path;
}

static void begin(struct setting *s)
{
	*s = (struct setting){.policy = {.profile = COOP_PROFILE_WORKSPACE_WRITE,
					 .network = COOP_NET_LOOPBACK,
					 .home = COOP_HOME_COW,
					 .root = COOP_ROOT_HOST}};
	s->input = (struct coop_layout_input){.policy = &s->policy,
					      .host = &s->host,
					      .cwd = "/",
					      .writable = s->writable,
					      .readable = s->readable};
}

static void grant(struct setting *s, const char *path)
{
	s->writable[s->input.writable_count++] = (struct coop_layout_root){.path = path, .fd = -1};
}

static const char *const kinds[] = {
	[COOP_OP_ROOT_READONLY] = "ROOT_READONLY",
	[COOP_OP_ROOT_EMPTY] = "ROOT_EMPTY",
	[COOP_OP_PIVOT] = "PIVOT",
	[COOP_OP_TMPFS] = "TMPFS",
	[COOP_OP_PROC] = "PROC",
	[COOP_OP_DEV] = "DEV",
	[COOP_OP_LAYER] = "LAYER",
	[COOP_OP_TREE] = "TREE",
	[COOP_OP_READONLY] = "READONLY",
	[COOP_OP_PIN] = "PIN",
	[COOP_OP_COVER] = "COVER",
	[COOP_OP_FILE] = "FILE",
	[COOP_OP_FOLDER] = "FOLDER",
	[COOP_OP_LINK] = "LINK",
	[COOP_OP_WAY] = "WAY",
};

static const struct coop_plan_op *ops_of(const struct coop_layout *layout, size_t *ret_count)
{
	*ret_count = coop_buf_size(&layout->ops) / sizeof(struct coop_plan_op);
	return (const void *)coop_buf_front(&layout->ops);
}

/* "@" stands for the folder of the test; "rw" and "?" (optional) follow the path. */
static void show(const struct coop_layout *layout, size_t first, char *ret, size_t size)
{
	const char *text = (const char *)coop_buf_front(&layout->text);
	size_t count, used = 0;
	const struct coop_plan_op *ops = ops_of(layout, &count);

	*ret = 0;
	for (size_t i = first; i < count; i++) {
		const char *path = ops[i].path ? text + ops[i].path : "";
		const char *front = !strncmp(path, top, strlen(top)) ? "@" : "";
		path += *front ? strlen(top) : 0;
		int n = snprintf(ret + used, size - used, "%s%s%s%s%s%s\n", kinds[ops[i].kind],
				 *path || *front ? " " : "", front, path,
				 ops[i].flags & COOP_OP_WRITABLE ? " rw" : "",
				 ops[i].flags & COOP_OP_OPTIONAL ? " ?" : "");
		assert_true(n > 0 && (size_t)n < size - used);
		used += (size_t)n;
	}
}

static void show_ghosts(const struct coop_layout *layout, char *ret, size_t size)
{
	size_t used = 0;

	*ret = 0;
	for (size_t i = 0; i < layout->ghost_count; i++) {
		int n = snprintf(ret + used, size - used, "%s%s ",
				 layout->ghosts[i].path + strlen(top),
				 layout->ghosts[i].folder ? "/" : "");
		assert_true(n > 0 && (size_t)n < size - used);
		used += (size_t)n;
	}
}

/* Builds, checks what holds for all, and compares the part behind the base with the lines. */
static void expect(struct setting *s, struct coop_layout *layout, const char *lines)
{
	struct coop_err err = {0};
	char shown[16384];
	struct coop_plan plan = {0};
	struct coop_buf body = {0};
	struct coop_body_view view;
	const char *argv[] = {"true", NULL};

	if (coop_layout_build(&s->input, layout, &err) < 0)
		fail_msg("%s", err.message);
	show(layout, layout->base_ops, shown, sizeof shown);
	if (lines)
		assert_string_equal(shown, lines);
	struct coop_body parts = {.layout = layout, .argv = argv};
	plan.extra_fds = 4;
	assert_int_equal(coop_body_build(&parts, &plan, &body), 0);
	assert_true(coop_body_valid(&plan, coop_buf_front(&body), coop_buf_size(&body), &view));
	coop_buf_clear(&body);
}

static void refuses(struct setting *s, enum coop_code code, const char *word)
{
	struct coop_layout layout;
	struct coop_err err = {0};

	assert_true(coop_layout_build(&s->input, &layout, &err) < 0);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.message, word));
}

static bool has(const struct coop_layout *layout, const char *line)
{
	char shown[16384], whole[512];

	show(layout, 0, shown, sizeof shown);
	(void)snprintf(whole, sizeof whole, "%s\n", line);
	const char *found = strstr(shown, whole);
	return found && (found == shown || found[-1] == '\n');
}

static size_t position(const struct coop_layout *layout, const char *line)
{
	char shown[16384], whole[512];

	show(layout, 0, shown, sizeof shown);
	(void)snprintf(whole, sizeof whole, "%s\n", line);
	const char *found = strstr(shown, whole);
	assert_non_null(found);
	return (size_t)(found - shown);
}

static void make_folder(const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s%s", top, name);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

static void make_file(const char *name, const char *content)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s%s", top, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	(void)close(fd);
}

static void make_link(const char *target, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s%s", top, name);
	assert_int_equal(symlink(target, path), 0);
}

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

	/* With detached mounts nothing of the old root is needed any more, so a slot can be rid of it. */
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
	/* A link to elsewhere: its own name goes, and what it leads to is covered in the home as well. */
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

static void test_protected(void **state)
{
	struct setting s;
	struct coop_layout layout;
	char ghosts[1024];

	(void)state;
	begin(&s);
	grant(&s, at(&s, "/repo"));
	s.policy.protect = ARGS("deep/er/x", "../outside");
	expect(&s, &layout,
	       "TREE @/repo rw\n"
	       "PIN @/repo/.git\n"
	       "PIN @/repo/.profile\n"
	       "PIN @/repo/deep\n"
	       "PIN @/repo/dots\n"
	       "READONLY @/repo/.bash_profile ?\n"
	       "READONLY @/repo/.bashrc ?\n"
	       "READONLY @/repo/.git/config\n"
	       "READONLY @/repo/.git/hooks ?\n"
	       "READONLY @/repo/.gitconfig ?\n"
	       "READONLY @/repo/.gitmodules ?\n"
	       "READONLY @/repo/.idea ?\n"
	       "READONLY @/repo/.mcp.json ?\n"
	       "READONLY @/repo/.vscode ?\n"
	       "READONLY @/repo/.zprofile ?\n"
	       "READONLY @/repo/.zshrc ?\n"
	       "READONLY @/repo/deep/er ?\n"
	       "READONLY @/repo/dots/profile\n");
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
	assert_true(has(&layout, "READONLY @/repo/.git/worktrees/t/hooks ?"));
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
	       "READONLY @/w/sub/kept ?\n"
	       "COVER @/later ?\n"
	       "COVER @/secret\n"
	       "COVER @/w/missing ?\n"
	       "COVER @/w/sub/a.pem\n"
	       "COVER @/w/sub/b.pem\n");
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

static bool rule(const struct coop_layout *layout, enum coop_plan_access access, const char *path)
{
	const struct coop_plan_rule *rules = (const void *)coop_buf_front(&layout->rules);
	size_t count = coop_buf_size(&layout->rules) / sizeof *rules;

	for (size_t i = 0; i < count; i++) {
		if (rules[i].access == access &&
		    !strcmp((const char *)coop_buf_front(&layout->text) + rules[i].path, path))
			return true;
	}
	return false;
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

/* What stands for another process counts as missing, so that both hold it. */
static void test_placeholders_of_others(void **state)
{
	struct setting s;
	struct coop_layout first, second;
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL);
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

static int make_tree(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof top, "/var/tmp/coop-layout-XXXXXX");
	(void)snprintf(inside_tmp, sizeof inside_tmp, "/tmp/coop-layout-XXXXXX");
	if (!mkdtemp(top) || !mkdtemp(inside_tmp))
		return -1;
	static const char *const folders[] = {"/home",
					      "/home/.ssh",
					      "/home/clouds",
					      "/home/clouds/aws",
					      "/home/state",
					      "/outer",
					      "/outer/home",
					      "/outer/home/work",
					      "/w",
					      "/w/sub",
					      "/other",
					      "/repo",
					      "/repo/.git",
					      "/repo/.git/worktrees",
					      "/repo/.git/worktrees/t",
					      "/repo/deep",
					      "/repo/dots",
					      "/tree",
					      "/secret"};
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		make_folder(folders[i]);
	make_link("clouds/aws", "/home/.aws");
	make_file("/repo/.git/config", "");
	make_file("/repo/.git/worktrees/t/commondir", "../..\n");
	make_file("/repo/.git/worktrees/t/config", "");
	make_file("/repo/dots/profile", "");
	make_link("dots/profile", "/repo/.profile");
	make_file("/tree/.git", "gitdir: ../repo/.git/worktrees/t\n");
	make_file("/secret/file", "");
	make_link("secret", "/alias");
	make_file("/w/sub/a.pem", "");
	make_file("/w/sub/b.pem", "");
	make_file("/w/sub/c.txt", "");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static int remove_tree(void **state)
{
	(void)state;
	(void)nftw(inside_tmp, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base_of_the_host),
		cmocka_unit_test(test_base_of_an_empty_root),
		cmocka_unit_test(test_home),
		cmocka_unit_test(test_home_in_odd_places),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_protected),
		cmocka_unit_test(test_linked_work_tree),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_pattern_with_too_many_matches),
		cmocka_unit_test(test_hard_links),
		cmocka_unit_test(test_keepers_own_and_sockets),
		cmocka_unit_test(test_injections),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_other_mounts),
		cmocka_unit_test(test_parts_of_a_body),
		cmocka_unit_test(test_placeholders_of_others),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
