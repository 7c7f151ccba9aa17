/* Repositories: what git takes hooks and settings from, wherever `.git` leads. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "interface/err.h"
#include "sandbox/layout/layout_builder.h"
#include "sandbox/layout/layout_path.h"

#define GITFILE_MAX 4200
#define DEPTH_MAX 8
/* So many work trees and modules can be worked in, which costs each of them names that are held. */
#define FOLDERS_MAX 128u
#define LOOKED_MAX 2048u

struct search {
	struct coop_builder *b;
	const char *root;
	size_t budget; /* folders that may still be worked in */
	size_t looked;
	bool whole; /* nothing can be written where it looks: only what settings include matters */
};

static void seal_nested(struct search *search, const char *folder, int depth);

/* The one line of a small file, without what stands before it. Links are followed, as git does. */
static bool read_line(const char *path, const char *prefix, char *ret)
{
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
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

/* What a line says, seen from that folder. Links and dots stay in it: each is looked at when it is
 * sealed. */
static bool path_from(const char *folder, const char *name, char *ret)
{
	int n = snprintf(ret, COOP_PATH_SIZE, "%s%s%s", *name == '/' ? "" : folder,
			 *name == '/' ? "" : "/", name);

	return n > 0 && (size_t)n < COOP_PATH_SIZE;
}

static const struct coop_stand_in a_socket = {0}, a_folder = {.folder = true},
				  a_name = {.never_folder = true};
/* Files that git reads where it finds them, and which must then change nothing: "." is the folder
 * itself. */
static const struct coop_stand_in a_dot = {.content = ".\n"}, an_empty_file = {.content = ""};

static void seal_part(const struct search *search, const char *folder, const char *name,
		      struct coop_stand_in missing)
{
	char path[COOP_PATH_SIZE];

	/* What lies in the root, as nearly all does, needs no look at the way to it. */
	if (coop_path_join(folder, name, path) == 0)
		coop_layout_seal_in(search->b,
				    coop_path_below(path, search->root) ? search->root : "/", path,
				    COOP_SEAL_READONLY, missing);
}

/* What leads to other settings. */
static void seal_ways(const struct search *search, const char *folder)
{
	seal_part(search, folder, "commondir", a_dot);
	seal_part(search, folder, "config.worktree", an_empty_file);
}

static void seal_included(const struct search *search, const char *folder)
{
	static const char *const files[] = {"config", "config.worktree"};
	char path[COOP_PATH_SIZE];

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		if (coop_path_join(folder, files[i], path) == 0)
			coop_layout_includes(search->b, path);
	}
}

static void seal_settings(const struct search *search, const char *folder)
{
	seal_part(search, folder, "hooks", a_folder);
	seal_part(search, folder, "config", a_socket);
	seal_included(search, folder);
}

/* Where `commondir` says that hooks and settings are. A placeholder says nothing. */
static bool common_folder(struct coop_builder *b, const char *folder, char *ret)
{
	char file[COOP_PATH_SIZE], line[COOP_PATH_SIZE];
	struct stat st;

	return coop_path_join(folder, "commondir", file) == 0 &&
	       coop_builder_look(b, file, &st) == 0 && read_line(file, "", line) &&
	       path_from(folder, line, ret);
}

/* A folder with hooks and settings; or one that leads to it, whose own git does not read. */
static void seal_repository(struct search *search, const char *folder, int depth)
{
	struct coop_builder *b = search->b;
	char common[COOP_PATH_SIZE];

	seal_ways(search, folder);
	if (!common_folder(b, folder, common)) {
		seal_settings(search, folder);
		seal_nested(search, folder, depth);
	} else if (depth < DEPTH_MAX) {
		seal_ways(search, common);
		seal_settings(search, common);
		seal_nested(search, common, depth + 1);
	}
}

static bool there(struct coop_builder *b, const char *folder, const char *name)
{
	char path[COOP_PATH_SIZE];
	struct stat st;

	return coop_path_join(folder, name, path) == 0 && coop_builder_look(b, path, &st) == 0;
}

static bool is_repository(struct coop_builder *b, const char *folder)
{
	return there(b, folder, "HEAD");
}

/* As git makes them. Nobody works in what is only the beginning of one, but somebody could
 * complete it. */
static bool is_complete(struct coop_builder *b, const char *folder, bool worktree)
{
	return worktree ? there(b, folder, "commondir")
			: there(b, folder, "config") && there(b, folder, "objects") &&
				  there(b, folder, "refs");
}

/* All of a folder that is there: that takes one mount, and no names are held. */
static void seal_whole(const struct search *search, const char *folder)
{
	coop_layout_seal_in(search->b, coop_path_below(folder, search->root) ? search->root : "/",
			    folder, COOP_SEAL_READONLY, a_folder);
}

static bool may_be_folder(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
	       (entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN);
}

static bool has_too_many(const struct search *search, DIR *dir)
{
	size_t count = 0;

	for (const struct dirent *entry; count <= search->budget && (entry = readdir(dir));)
		count += may_be_folder(entry);
	rewinddir(dir);
	return count > search->budget;
}

static void seal_all_in(struct search *search, const char *folder, bool worktrees, int depth);

/* Names of modules may have slashes: a folder that is no repository may hold some. */
static void seal_one(struct search *search, const char *path, bool worktree, int depth)
{
	if (!worktree && !is_repository(search->b, path)) {
		seal_all_in(search, path, false, depth + 1);
	} else if (search->whole) {
		seal_included(search, path);
		seal_nested(search, path, depth + 1);
	} else if (!is_complete(search->b, path, worktree)) {
		seal_whole(search, path);
	} else if (worktree) {
		seal_ways(search, path);
		seal_included(search, path);
	} else {
		seal_repository(search, path, depth + 1);
	}
}

static void seal_each(struct search *search, const char *folder, DIR *dir, bool worktrees,
		      int depth)
{
	struct coop_builder *b = search->b;
	char path[COOP_PATH_SIZE];

	for (const struct dirent *entry; !b->failed && (entry = readdir(dir));) {
		if (!may_be_folder(entry) || coop_path_join(folder, entry->d_name, path) < 0)
			continue;
		if (search->looked++ == LOOKED_MAX) {
			coop_builder_fail(
				b, coop_err_set(b->err, COOP_TOO_LARGE,
						"more than %u repositories are kept in %.300s",
						LOOKED_MAX, folder));
			return;
		}
		if (!search->whole && search->budget == 0)
			return; /* it has come since they were counted */
		search->budget -= !search->whole;
		seal_one(search, path, worktrees, depth);
	}
}

/* Where there are too many, or they lie too deep, nothing can be changed at all. */
static void seal_all_in(struct search *search, const char *folder, bool worktrees, int depth)
{
	DIR *dir = depth <= DEPTH_MAX ? opendir(folder) : NULL;
	bool outer = search->whole;

	if (!dir)
		return;
	if (!outer && (depth == DEPTH_MAX || has_too_many(search, dir))) {
		seal_whole(search, folder);
		search->whole = true;
	}
	seal_each(search, folder, dir, worktrees, depth);
	search->whole = outer;
	(void)closedir(dir);
}

/* The linked work trees and modules that are there; where nothing of it can be written they need no
 * look. */
static void seal_nested(struct search *search, const char *folder, int depth)
{
	char path[COOP_PATH_SIZE], real[COOP_PATH_SIZE];
	bool exists;

	if (coop_path_resolve(folder, real, &exists) < 0 || !exists ||
	    (coop_builder_zone(search->b, real, NULL) != COOP_ZONE_WRITABLE &&
	     !coop_builder_holds_tree(search->b, real)))
		return;
	if (coop_path_join(folder, "worktrees", path) == 0)
		seal_all_in(search, path, true, depth);
	if (coop_path_join(folder, "modules", path) == 0)
		seal_all_in(search, path, false, depth);
}

/* The folder itself is a repository without a `.git`, or could be made one: git takes any folder
 * for one that has HEAD, objects and refs, the latter two perhaps where `commondir` says, and runs
 * what its settings name. Nothing but one of those needs to be missing for good. HEAD will not do:
 * while a file of that name stands there git takes the word for ambiguous and refuses `git diff
 * HEAD`. Of the others `refs` is what projects have least. */
static void seal_bare(struct search *search, const char *root)
{
	struct coop_builder *b = search->b;

	/* A layer inside of a root takes what is written there away with it. */
	if (coop_builder_zone(b, root, NULL) != COOP_ZONE_WRITABLE)
		return;
	bool refs = there(b, root, "refs");
	if (refs && there(b, root, "objects") && is_repository(b, root)) {
		seal_repository(search, root, 0);
		return;
	}
	seal_part(search, root, "commondir", a_name);
	if (!refs)
		seal_part(search, root, "refs", a_name);
	else if (!there(b, root, "objects"))
		seal_part(search, root, "objects", a_name);
	else
		seal_settings(search, root);
}

void coop_layout_git(struct coop_builder *b, const char *root)
{
	struct search search = {.b = b, .root = root, .budget = FOLDERS_MAX};
	char path[COOP_PATH_SIZE], line[COOP_PATH_SIZE], folder[COOP_PATH_SIZE];
	struct stat st;

	seal_bare(&search, root);
	if (coop_path_join(root, ".git", path) < 0 || coop_builder_look(b, path, &st) < 0 ||
	    stat(path, &st) < 0)
		return;
	if (S_ISDIR(st.st_mode))
		seal_repository(&search, path, 0);
	else if (read_line(path, "gitdir: ", line) && path_from(root, line, folder))
		seal_repository(&search, folder, 0);
}
