#include "sandbox/layout/protected.h"

#include <string.h>

#include "sandbox/layout/layout_path.h"

/* Sorted as found.h wants it. Why they are here:
 * git: hooks are run; of a `.git` that is there layout_git.c knows the rest. An empty folder
 * stands for one that is missing, as git may stumble over anything else.
 * Mercurial, Sapling (.sl), Jujutsu (.jj): settings name hooks, pagers and extensions;
 * requirements and sharedpath lead to further settings; Jujutsu's `repo` may be a file that leads
 * elsewhere, and holds a repository of git's.
 * Shells, where the folder is somebody's home; direnv and mise at the prompt, of which mise trusts
 * by the path, whatever is in the file.
 * Agents: servers, hooks, permissions, commands and plug-ins that they start with.
 * Editors: tasks, programs that they start for a language, settings that are code. Some ask before
 * they take new ones.
 *
 * Held where they are missing, which costs every start a mount each, is what is run without a
 * question and often enough.
 *
 * Not here, as nothing in them is run by itself: .svn, .tool-versions, .editorconfig,
 * .gitattributes, which only chooses among what the settings define. */
static const struct coop_protected rows[] = {
	{".aider.conf.yml"},
	{".amazonq"},
	{".amp"},
	{".bash_login", .held = true},
	{".bash_logout"},
	{".bash_profile", .held = true},
	{".bashrc", .held = true},
	{".claude", .held = true},
	{".codex"},
	{".config/fish"},
	{".config/mise"},
	{".config/mise.toml"},
	{".continue"},
	{".crush"},
	{".crush.json"},
	{".cshrc"},
	{".cursor", .held = true},
	{".devcontainer"},
	{".devcontainer.json"},
	{".dir-locals-2.el"},
	{".dir-locals.el"},
	{".envrc", .held = true},
	{".exrc"},
	{".factory"},
	{".fleet"},
	{".gemini", .held = true},
	{".git/hooks", .held = true, .folder = true},
	{".gitconfig", .held = true},
	{".github/hooks"},
	{".gitmodules", .held = true},
	{".helix"},
	{".hg/hgrc", .held = true, .content = ""},
	{".hg/hgrc-not-shared", .held = true, .content = ""},
	{".hg/requires", .held = true, .content = ""},
	{".hg/sharedpath"},
	{".idea", .held = true},
	{".inputrc"},
	{".jj/repo/config.toml", .held = true, .content = ""},
	{".jj/repo/store/git/config"},
	{".jj/repo/store/git/hooks"},
	{".jj/repo/store/git_target"},
	{".jj/workspace-config.toml", .held = true, .content = ""},
	{".junie"},
	{".kiro"},
	{".kshrc"},
	{".login"},
	{".lvimrc"},
	{".mcp.json", .held = true},
	{".mise"},
	{".mise.toml"},
	{".nvim.lua"},
	{".nvimrc"},
	{".opencode", .held = true},
	{".profile", .held = true},
	{".qwen"},
	{".roo"},
	{".sl/config"},
	{".sl/requires"},
	{".sl/sharedpath"},
	{".tcshrc"},
	{".trae"},
	{".vimrc"},
	{".vscode", .held = true, .folder = true},
	{".windsurf"},
	{".zed"},
	{".zlogin", .held = true},
	{".zlogout"},
	{".zprofile", .held = true},
	{".zshenv", .held = true},
	{".zshrc", .held = true},
	{"crush.json"},
	{"mise.local.toml"},
	{"mise.toml"},
	{"opencode.json"},
	{"opencode.jsonc"},
};

_Static_assert(sizeof rows / sizeof rows[0] <= COOP_PROTECTED_MAX, "room");

const struct coop_protected *coop_protected_look(const char *root, struct coop_found *ret,
						 size_t *ret_count)
{
	static const struct coop_rows table = {rows, sizeof rows[0], sizeof rows / sizeof rows[0]};

	coop_found_look(root, &table, ret);
	*ret_count = sizeof rows / sizeof rows[0];
	return rows;
}

bool coop_protected_within(const char *root, const char *path)
{
	char place[COOP_PATH_SIZE];

	if (!coop_path_below(path, root))
		return false;
	if (coop_protected_repository(path + (root[1] ? strlen(root) : 0)))
		return true;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (coop_path_join(root, rows[i].name, place) == 0 && coop_path_below(path, place))
			return true;
	}
	return false;
}

bool coop_protected_repository(const char *path)
{
	static const char *const names[] = {".git", ".hg", ".jj", ".sl"};

	for (const char *at = path; at && *at == '/'; at = strchr(at + 1, '/')) {
		size_t size = strcspn(at + 1, "/");
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
			if (strlen(names[i]) == size && !strncmp(at + 1, names[i], size))
				return true;
		}
	}
	return false;
}
