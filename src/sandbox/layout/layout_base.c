/* The part of a view that every process of a kind begins with. */
#include <string.h>
#include <unistd.h>

#include "sandbox/layout/layout.h"
#include "sandbox/layout/layout_builder.h"
#include "sandbox/layout/layout_path.h"

#define TMP_BYTES (256u << 20)
#define TMP_INODES 65536u
#define RUN_BYTES (1u << 20)
#define RUN_INODES 256u

static const char *const system_folders[] = {
	"/usr",   "/etc",   "/opt",    "/bin", "/sbin", "/lib",
	"/lib32", "/lib64", "/libx32", "/nix", "/gnu",
};

static void add_tmpfs(struct coop_builder *b, const char *path, uint64_t size, uint64_t inodes,
		      uint32_t mode)
{
	coop_builder_op(b,
			(struct coop_plan_op){.kind = COOP_OP_TMPFS,
					      .fd = -1,
					      .size = size,
					      .inodes = inodes,
					      .mode = mode},
			path);
	coop_builder_enter(b, path, COOP_ZONE_PRIVATE);
}

static void add_tree(struct coop_builder *b, const char *path)
{
	coop_builder_op(b, (struct coop_plan_op){.kind = COOP_OP_TREE, .fd = -1}, path);
	coop_builder_enter(b, path, COOP_ZONE_READABLE);
}

/* Names are looked up through this file, which often is a link to where the view has nothing. */
static void add_resolver(struct coop_builder *b)
{
	char real[COOP_PATH_SIZE];
	bool exists;

	if (b->input->policy->network != COOP_NET_HOST ||
	    coop_path_resolve("/etc/resolv.conf", real, &exists) < 0 || !exists ||
	    coop_builder_zone(b, real, NULL) != COOP_ZONE_PRIVATE)
		return;
	coop_builder_op(
		b, (struct coop_plan_op){.kind = COOP_OP_TREE, .flags = COOP_OP_OPTIONAL, .fd = -1},
		real);
	coop_builder_enter(b, real, COOP_ZONE_READABLE);
}

/* A top-level folder of the system, or the link that stands for it. */
static void add_system(struct coop_builder *b, const char *path)
{
	char target[COOP_PATH_SIZE];
	struct stat st;

	if (lstat(path, &st) < 0)
		return;
	if (S_ISDIR(st.st_mode)) {
		add_tree(b, path);
		return;
	}
	ssize_t size = S_ISLNK(st.st_mode) ? readlink(path, target, sizeof target - 1) : -1;
	if (size <= 0)
		return;
	target[size] = 0;
	coop_builder_op(b,
			(struct coop_plan_op){.kind = COOP_OP_LINK,
					      .fd = -1,
					      .data = coop_builder_string(b, target)},
			path);
}

static void add_minimal_root(struct coop_builder *b)
{
	coop_builder_op(b, (struct coop_plan_op){.kind = COOP_OP_ROOT_EMPTY, .fd = -1}, NULL);
	coop_builder_enter(b, "/", COOP_ZONE_PRIVATE);
	for (size_t i = 0; i < sizeof system_folders / sizeof system_folders[0]; i++)
		add_system(b, system_folders[i]);
}

bool coop_layout_is_system(const char *path)
{
	for (size_t i = 0; i < sizeof system_folders / sizeof system_folders[0]; i++) {
		if (coop_path_below(path, system_folders[i]))
			return true;
	}
	return false;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* /tmp comes first: covers are made with the first private file system. */
static void add_private(struct coop_builder *b, bool minimal)
{
	int64_t tmp = b->input->policy->limits.tmp_bytes;

	add_tmpfs(b, COOP_LAYOUT_TMP, tmp > 0 ? (uint64_t)tmp : TMP_BYTES, TMP_INODES, 01777);
	/* Connecting to a socket is no write: those of the host are out of reach only where they
	 * are not seen. */
	if (minimal || is_folder("/run"))
		add_tmpfs(b, "/run", RUN_BYTES, RUN_INODES, 0755);
	add_resolver(b);
	coop_builder_op(b, (struct coop_plan_op){.kind = COOP_OP_DEV, .fd = -1}, "/dev");
	coop_builder_enter(b, "/dev", COOP_ZONE_OWN);
	if (b->input->host->error[COOP_CAN_PIDNS] == 0) {
		coop_builder_op(b, (struct coop_plan_op){.kind = COOP_OP_PROC, .fd = -1}, "/proc");
		coop_builder_enter(b, "/proc", COOP_ZONE_OWN);
	} else if (minimal) {
		add_tree(b, "/proc");
	}
}

/* Sources that are found by path must be looked up before the old root is gone. */
static bool pivots_early(const struct coop_layout_input *input)
{
	for (size_t i = 0; i < input->writable_count; i++) {
		if (input->writable[i].fd < 0)
			return false;
	}
	for (size_t i = 0; i < input->readable_count; i++) {
		if (input->readable[i].fd < 0)
			return false;
	}
	return input->root_keeper && !(input->tmp && input->tmp->fd < 0);
}

void coop_layout_pivot(struct coop_builder *b, bool early)
{
	if (b->input->policy->root == COOP_ROOT_MINIMAL && pivots_early(b->input) == early)
		coop_builder_op(b, (struct coop_plan_op){.kind = COOP_OP_PIVOT, .fd = -1}, NULL);
}

bool coop_layout_pivots_late(const struct coop_builder *b)
{
	return b->input->policy->root == COOP_ROOT_MINIMAL && !pivots_early(b->input);
}

void coop_layout_base(struct coop_builder *b)
{
	bool minimal = b->input->policy->root == COOP_ROOT_MINIMAL;

	if (b->degraded) {
		coop_builder_enter(b, "/", COOP_ZONE_HOST);
		return;
	}
	if (minimal) {
		add_minimal_root(b);
	} else {
		coop_builder_op(b, (struct coop_plan_op){.kind = COOP_OP_ROOT_READONLY, .fd = -1},
				NULL);
		coop_builder_enter(b, "/", COOP_ZONE_HOST);
	}
	add_private(b, minimal);
}
