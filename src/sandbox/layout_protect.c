/* What stays read-only inside writable roots. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/layout_builder.h"

#define LINK_DEPTH 8
#define GITFILE_MAX 4200

static const char *const defaults[] = {
	".git/hooks", ".git/config", ".gitmodules", ".gitconfig", ".bashrc", ".bash_profile",
	".profile",   ".zshrc",      ".zprofile",   ".mcp.json",  ".vscode", ".idea",
};

static void seal_in(struct coop_builder *b, const char *root, const char *path,
		    enum coop_seal_kind kind, bool folder, int depth);

/* A link is pinned as it is, and still leads on; where it leads is sealed if it could be written there. */
static void seal_link(struct coop_builder *b, const char *link, const char *path,
		      enum coop_seal_kind kind, bool folder, int depth)
{
	char real[COOP_PATH_SIZE];
	const char *top;
	bool exists;

	coop_builder_seal(b, link, COOP_SEAL_PIN, 0);
	if (depth >= LINK_DEPTH || coop_path_resolve(path, real, &exists) < 0)
		return;
	if (coop_builder_zone(b, real, &top) == COOP_ZONE_WRITABLE)
		seal_in(b, top, real, kind, folder, depth + 1);
	else if (exists && kind == COOP_SEAL_COVER)
		coop_builder_seal(b, real, kind, 0);
}

static void seal_in(struct coop_builder *b, const char *root, const char *path,
		    enum coop_seal_kind kind, bool folder, int depth)
{
	char part[COOP_PATH_SIZE];
	struct stat st;
	const char *end = path + (root[1] ? strlen(root) : 0);
	uint32_t flags = 0;

	if (!*end) {
		coop_builder_seal(b, path, kind, 0);
		return;
	}
	while (*end && !b->failed) {
		size_t before = (size_t)(end - path);
		end = strchrnul(end + 1, '/');
		size_t size = (size_t)(end - path);
		memcpy(part, path, size);
		part[size] = 0;
		int r = coop_builder_look(b, part, &st);
		if (r == -ENOENT) {
			coop_builder_ghost(b, part, *end || folder);
			coop_builder_seal(b, part, kind, COOP_OP_OPTIONAL);
			return;
		}
		if (r < 0) {
			/* Closed to us, so to the process; but its owner could open it. */
			part[before ? before : 1] = 0;
			coop_builder_seal(b, part, COOP_SEAL_READONLY, 0);
			return;
		}
		if (S_ISLNK(st.st_mode)) {
			seal_link(b, part, path, kind, folder, depth);
			return;
		}
		if (*end && !S_ISDIR(st.st_mode)) {
			coop_builder_seal(b, part, COOP_SEAL_READONLY, 0);
			return;
		}
		coop_builder_seal(b, part, *end ? COOP_SEAL_PIN : kind, flags);
		if (b->input->root_keeper && !(st.st_mode & S_IXOTH))
			flags = COOP_OP_OPTIONAL;
	}
}

void coop_layout_seal_in(struct coop_builder *b, const char *root, const char *path,
			 enum coop_seal_kind kind, bool folder)
{
	seal_in(b, root, path, kind, folder, 0);
}

/* The one line of a small file, without what stands before it. */
static bool read_line(const char *path, const char *prefix, char *ret)
{
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char line[GITFILE_MAX];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	ssize_t size = read(fd, line, sizeof line - 1);
	size_t skip = strlen(prefix);
	if (size <= 0)
		return false;
	line[size] = 0;
	line[strcspn(line, "\r\n")] = 0;
	if (strncmp(line, prefix, skip) != 0 || !line[skip])
		return false;
	int n = snprintf(ret, COOP_PATH_SIZE, "%s", line + skip);
	return n > 0 && (size_t)n < COOP_PATH_SIZE;
}

/* What a line says, seen from that folder. */
static bool resolve_from(const char *folder, const char *name, char *ret)
{
	char path[COOP_PATH_SIZE];
	bool exists;

	if (*name == '/')
		return coop_path_resolve(name, ret, &exists) == 0;
	return coop_path_join(folder, name, path) == 0 &&
	       coop_path_resolve(path, ret, &exists) == 0;
}

static void seal_repository(struct coop_builder *b, const char *folder)
{
	static const char *const parts[] = {"hooks", "config"};
	char path[COOP_PATH_SIZE];
	const char *top;

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (coop_path_join(folder, parts[i], path) == 0 &&
		    coop_builder_zone(b, path, &top) == COOP_ZONE_WRITABLE)
			coop_layout_seal_in(b, top, path, COOP_SEAL_READONLY, i == 0);
	}
}

/* "gitdir: X": a linked work tree or a submodule. Its hooks and settings are X's, or those of the repository that X is a part of. */
static void seal_gitfile(struct coop_builder *b, const char *root)
{
	char file[COOP_PATH_SIZE], line[COOP_PATH_SIZE], folder[COOP_PATH_SIZE],
		common[COOP_PATH_SIZE];

	if (coop_path_join(root, ".git", file) < 0 || !read_line(file, "gitdir: ", line) ||
	    !resolve_from(root, line, folder))
		return;
	seal_repository(b, folder);
	if (coop_path_join(folder, "commondir", file) == 0 && read_line(file, "", line) &&
	    resolve_from(folder, line, common))
		seal_repository(b, common);
}

/* Folders by nature, should they be missing. */
static bool names_folder(const char *path)
{
	static const char *const names[] = {".git", "hooks", ".vscode", ".idea"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

static void protect_in(struct coop_builder *b, const char *root, const char *name)
{
	char path[COOP_PATH_SIZE];
	const char *top;

	if (coop_path_join(root, name, path) < 0 || !coop_path_normal(path))
		return;
	/* A tree or layer inside may have taken its place. */
	if (coop_builder_zone(b, path, &top) == COOP_ZONE_WRITABLE)
		coop_layout_seal_in(b, top, path, COOP_SEAL_READONLY, names_folder(name));
}

static void protect_root(struct coop_builder *b, const char *root)
{
	const struct coop_sandbox_policy *policy = b->input->policy;

	if (!policy->protect_replaces) {
		for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
			protect_in(b, root, defaults[i]);
		seal_gitfile(b, root);
	}
	for (char *const *p = policy->protect; p && *p; p++) {
		if (**p != '/')
			protect_in(b, root, *p);
	}
}

/* An absolute path, of `protect` or of deny_write: it matters where something can be written. */
static void protect_absolute(struct coop_builder *b, const char *given)
{
	char path[COOP_PATH_SIZE], real[COOP_PATH_SIZE];
	const char *top;
	bool exists;

	if (coop_path_expand(given, b->input->home, path) < 0 || !coop_path_normal(path))
		return;
	if (coop_builder_zone(b, path, &top) == COOP_ZONE_WRITABLE) {
		coop_layout_seal_in(b, top, path, COOP_SEAL_READONLY, names_folder(path));
		return;
	}
	if (coop_path_resolve(path, real, &exists) < 0)
		return;
	enum coop_zone zone = coop_builder_zone(b, real, &top);
	if (zone == COOP_ZONE_WRITABLE)
		coop_layout_seal_in(b, top, real, COOP_SEAL_READONLY, names_folder(real));
	else if (zone == COOP_ZONE_LAYER && exists)
		coop_builder_seal(b, real, COOP_SEAL_READONLY, COOP_OP_OPTIONAL);
}

/* The same folder under another mount that is writable as well. Elsewhere it is read-only anyway. */
static void protect_alias(void *context, const char *alias)
{
	struct coop_builder *b = context;
	const char *top;

	if (coop_path_normal(alias) && coop_builder_zone(b, alias, &top) == COOP_ZONE_WRITABLE &&
	    !coop_builder_sealed(b, alias, COOP_SEAL_READONLY))
		coop_layout_seal_in(b, top, alias, COOP_SEAL_READONLY, false);
}

/* Seals grow while they are looked at: those that were there at the start count. */
static void protect_aliases(struct coop_builder *b)
{
	size_t count = coop_buf_size(&b->seals) / sizeof(struct coop_seal);
	char path[COOP_PATH_SIZE];

	for (size_t i = 0; i < count; i++) {
		const struct coop_seal *list = (const void *)coop_buf_front(&b->seals);
		/* The list may move when it grows. */
		(void)snprintf(path, sizeof path, "%s", list[i].path);
		if (list[i].kind == COOP_SEAL_READONLY && !(list[i].flags & COOP_OP_OPTIONAL))
			coop_layout_aliases(b, path, protect_alias, b);
	}
}

void coop_layout_protect(struct coop_builder *b)
{
	const struct coop_sandbox_policy *policy = b->input->policy;

	for (size_t i = 0; i < b->input->writable_count; i++)
		protect_root(b, b->input->writable[i].path);
	for (char *const *p = policy->protect; p && *p; p++) {
		if (**p == '/' || !strncmp(*p, "~/", 2))
			protect_absolute(b, *p);
	}
	for (char *const *p = policy->deny_write; p && *p; p++)
		protect_absolute(b, *p);
	protect_aliases(b);
}
