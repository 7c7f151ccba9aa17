/* Layouts over a small tree on disk, and their operations as lines. Included after cmocka.h. */
#ifndef COOP_TESTS_LAYOUTS_H
#define COOP_TESTS_LAYOUTS_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/layout/body.h"
#include "sandbox/layout/layout.h"

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

static inline const char *at(struct setting *s, const char *name)
{
	char *path = s->paths[s->path_count++];

	assert_true(s->path_count <= 8);
	(void)snprintf(path, sizeof s->paths[0], "%s%s", top, name);
	return path;
}

static inline void begin(struct setting *s)
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

static inline void grant(struct setting *s, const char *path)
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

static inline const struct coop_plan_op *ops_of(const struct coop_layout *layout, size_t *ret_count)
{
	*ret_count = coop_buf_size(&layout->ops) / sizeof(struct coop_plan_op);
	return (const void *)coop_buf_front(&layout->ops);
}

/* "@" stands for the folder of the test; "rw" and "?" (optional) follow the path. */
static inline void show(const struct coop_layout *layout, size_t first, char *ret, size_t size)
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

static inline void show_ghosts(const struct coop_layout *layout, char *ret, size_t size)
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
static inline void expect(struct setting *s, struct coop_layout *layout, const char *lines)
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

static inline void refuses(struct setting *s, enum coop_code code, const char *word)
{
	struct coop_layout layout;
	struct coop_err err = {0};

	assert_true(coop_layout_build(&s->input, &layout, &err) < 0);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.message, word));
}

static inline bool has(const struct coop_layout *layout, const char *line)
{
	char shown[16384], whole[512];

	show(layout, 0, shown, sizeof shown);
	(void)snprintf(whole, sizeof whole, "%s\n", line);
	const char *found = strstr(shown, whole);
	return found && (found == shown || found[-1] == '\n');
}

static inline size_t position(const struct coop_layout *layout, const char *line)
{
	char shown[16384], whole[512];

	show(layout, 0, shown, sizeof shown);
	(void)snprintf(whole, sizeof whole, "%s\n", line);
	const char *found = strstr(shown, whole);
	assert_non_null(found);
	return (size_t)(found - shown);
}

static inline int count_rules(const struct coop_layout *layout, enum coop_plan_access access,
			      const char *path)
{
	const struct coop_plan_rule *rules = (const void *)coop_buf_front(&layout->rules);
	size_t count = coop_buf_size(&layout->rules) / sizeof *rules;
	int found = 0;

	for (size_t i = 0; i < count; i++) {
		found += rules[i].access == access &&
			 !strcmp((const char *)coop_buf_front(&layout->text) + rules[i].path, path);
	}
	return found;
}

static inline bool rule(const struct coop_layout *layout, enum coop_plan_access access,
			const char *path)
{
	return count_rules(layout, access, path) > 0;
}

static inline void make_folder(const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s%s", top, name);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

static inline void make_file(const char *name, const char *content)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s%s", top, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	(void)close(fd);
}

static inline void make_link(const char *target, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s%s", top, name);
	assert_int_equal(symlink(target, path), 0);
}

static inline int make_tree(void **state)
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

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static inline int remove_tree(void **state)
{
	(void)state;
	(void)nftw(inside_tmp, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
