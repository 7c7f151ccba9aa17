/* From a policy to operations, with policies made of the input's bytes over a small tree: whatever
 * is asked, the result is a plan that the launcher accepts, and what is denied is covered after
 * everything that could show it. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/layout/body.h"
#include "sandbox/layout/layout.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define LIST_MAX 6
#define TEXT_MAX 48

static char top[] = "/var/tmp/coop-fuzz-XXXXXX";

static const char *const pieces[] = {
	"/a",           "/a/b", "/home", "/home/.ssh", "/a/link",    "/home/work",       "/a/.git",
	"/none",        "/a/*", "/**/x", "/a/b/../c",  "",           "/home/.config/gh", "/link",
	"/a/b/deep/er", "/a/[", "//",    "/a/b/file",  "/a/chain/x", "/a/loop/x",
};

static void make(const char *name, bool folder)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s%s", top, name);
	if (folder)
		(void)mkdir(path, 0755);
	else
		(void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
}

/* The tree goes with the program. */
static void remove_tree(void)
{
	char command[128];

	(void)snprintf(command, sizeof command, "rm -rf %s", top);
	(void)!system(command);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const folders[] = {"/a",
					      "/a/b",
					      "/a/.git",
					      "/home",
					      "/home/.ssh",
					      "/home/work",
					      "/home/.config",
					      "/a/.git/modules",
					      "/a/.git/modules/m",
					      "/a/.git/worktrees",
					      "/a/.git/worktrees/t"};
	char path[128], other[128];

	(void)argc;
	(void)argv;
	if (!mkdtemp(top))
		abort();
	(void)atexit(remove_tree);
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		make(folders[i], true);
	make("/a/b/file", false);
	make("/a/.git/config", false);
	make("/a/.git/modules/m/HEAD", false);
	(void)snprintf(path, sizeof path, "%s/a/link", top);
	(void)!symlink("b/file", path);
	(void)snprintf(path, sizeof path, "%s/link", top);
	(void)!symlink("home", path);
	(void)snprintf(path, sizeof path, "%s/a/chain", top);
	(void)!symlink("b/../.git/./../link2", path);
	(void)snprintf(path, sizeof path, "%s/a/link2", top);
	(void)!symlink("../home/work", path);
	(void)snprintf(path, sizeof path, "%s/a/loop", top);
	(void)!symlink("loop", path);
	(void)snprintf(path, sizeof path, "%s/a/b/file", top);
	(void)snprintf(other, sizeof other, "%s/a/twin", top);
	(void)!link(path, other);
	return 0;
}

struct source {
	const uint8_t *bytes;
	size_t size;
	char text[64][TEXT_MAX + sizeof top];
	size_t used;
};

static uint8_t next(struct source *source)
{
	if (!source->size)
		return 0;
	source->size--;
	return *source->bytes++;
}

/* A path of the tree, or any bytes below it, or any bytes at all. */
static char *next_path(struct source *source)
{
	uint8_t choice = next(source);
	char *text = source->text[source->used++ % 64];
	size_t size = 0, count = sizeof pieces / sizeof pieces[0];

	if (choice < 200) {
		(void)snprintf(text, sizeof source->text[0], "%s%s", choice & 64 ? "~" : top,
			       pieces[choice % count]);
		return text;
	}
	if (choice < 250)
		size = (size_t)snprintf(text, sizeof source->text[0], "%s/", top);
	for (uint8_t n = next(source) % 16; n && size + 1 < sizeof source->text[0]; n--) {
		char c = (char)next(source);
		/* Only below the tree: patterns over the whole host would take their time. */
		text[size++] =
			c ? (choice >= 250 && (c == '*' || c == '?' || c == '[') ? 'x' : c) : '/';
	}
	text[size] = 0;
	return text;
}

static char **next_list(struct source *source, char **list)
{
	size_t count = next(source) % LIST_MAX;

	for (size_t i = 0; i < count; i++)
		list[i] = next_path(source);
	list[count] = NULL;
	return count ? list : NULL;
}

/* Roots are canonical folders: the keeper has opened them. */
static size_t next_roots(struct source *source, struct coop_layout_root *roots)
{
	static char paths[4][64];
	static const char *const names[] = {"/a", "/a/b", "/home/work", "/home"};
	size_t count = next(source) % 4;

	for (size_t i = 0; i < count; i++) {
		uint8_t choice = next(source);
		char *path = paths[choice % 4];
		(void)snprintf(path, sizeof paths[0], "%s%s", top, names[choice % 4]);
		roots[i] = (struct coop_layout_root){.path = path, .fd = choice & 128 ? 0 : -1};
	}
	return count;
}

static void check(const struct coop_layout *layout)
{
	const struct coop_plan_op *ops = (const void *)coop_buf_front(&layout->ops);
	size_t count = coop_buf_size(&layout->ops) / sizeof *ops;
	bool covered = false;

	assert(layout->base_ops <= count);
	assert(layout->base_rules <= coop_buf_size(&layout->rules) / sizeof(struct coop_plan_rule));
	assert(layout->base_text <= coop_buf_size(&layout->text));
	assert(memchr(layout->note, 0, sizeof layout->note));
	for (size_t i = layout->base_ops; i < count; i++) {
		covered |= ops[i].kind == COOP_OP_COVER;
		assert(!covered || (ops[i].kind != COOP_OP_TREE && ops[i].kind != COOP_OP_LAYER &&
				    ops[i].kind != COOP_OP_READONLY && ops[i].kind != COOP_OP_PIN));
	}
	for (size_t i = 0; i < layout->ghost_count; i++)
		assert(*layout->ghosts[i].path == '/');
	for (int part = COOP_BODY_ALL; part <= COOP_BODY_REST; part++) {
		const char *argv[] = {"true", NULL};
		struct coop_body parts = {.part = (enum coop_body_part)part,
					  .layout = layout,
					  .argv = part == COOP_BODY_BASE ? NULL : argv};
		struct coop_plan plan = {.extra_fds = 1};
		struct coop_buf body = {0};
		struct coop_body_view view;
		assert(coop_body_build(&parts, &plan, &body) == 0);
		assert(coop_body_valid(&plan, coop_buf_front(&body), coop_buf_size(&body), &view));
		coop_buf_clear(&body);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct source source = {.bytes = input, .size = size};
	char *lists[4][LIST_MAX + 1];
	char home[64];
	struct coop_layout_root writable[4], readable[4];
	uint8_t flags = next(&source), more = next(&source);
	struct coop_host host = {0};
	struct coop_sandbox_policy policy = {.network = flags & 1 ? COOP_NET_HOST : COOP_NET_NONE,
					     .home = flags >> 1 & 3,
					     .root = flags >> 3 & 1};
	(void)snprintf(home, sizeof home, "%s/home", top);
	if (policy.home > COOP_HOME_COW)
		policy.home = COOP_HOME_COW;
	policy.protect_replaces = flags & 16;
	host.error[COOP_CAN_USERNS] = (flags & 96) == 96 ? EPERM : 0;
	host.error[COOP_CAN_OVERLAY] = more & 1 ? EPERM : 0;
	host.error[COOP_CAN_PIDNS] = more & 2 ? EPERM : 0;
	policy.deny_read = next_list(&source, lists[0]);
	policy.deny_write = next_list(&source, lists[1]);
	policy.protect = next_list(&source, lists[2]);
	char **hidden = next_list(&source, lists[3]);
	struct coop_injection injections[2] = {
		{.path = next_path(&source), .bytes = input, .size = size},
		{.path = more & 4 ? "/tmp/x/y" : next_path(&source), .bytes = input, .size = 0}};
	struct coop_layout_input in = {.policy = &policy,
				       .host = &host,
				       .root_keeper = flags & 128,
				       .home = more & 8 ? NULL : home,
				       .cwd = "/",
				       .hidden = (const char *const *)hidden,
				       .sockets = (const char *const *)hidden,
				       .writable = writable,
				       .readable = readable,
				       .injections = injections,
				       .injection_count = more >> 4 & 3};
	in.injection_count = in.injection_count > 2 ? 0 : in.injection_count;
	in.writable_count = next_roots(&source, writable);
	in.readable_count = next_roots(&source, readable);

	struct coop_layout layout;
	struct coop_err err = {0};
	if (coop_layout_build(&in, &layout, &err) < 0) {
		assert(err.code && err.message[0]);
		return 0;
	}
	check(&layout);
	coop_layout_clear(&layout);
	return 0;
}
