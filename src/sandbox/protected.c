#include "sandbox/protected.h"

#include <string.h>

#include "sandbox/layout_path.h"

/* What git needs beside these (`.git` that leads elsewhere, modules, work trees, repositories without a `.git`) is in layout_git.c.
 * Not here, as nothing in them is run by itself: .svn, .tool-versions, .editorconfig, .gitattributes, which only chooses among what the
 * settings define. */
static const struct coop_protected rows[] = {
	/* git: hooks are run; of a `.git` that is there layout_git.c knows the rest. An empty folder stands for one that is missing, as
	 * git may stumble over anything else. */
	{".git/hooks", .held = true, .folder = true},
	{".gitmodules", .held = true},
	{".gitconfig", .held = true},
	/* Mercurial and Sapling: settings name hooks, pagers and extensions; requirements and sharedpath lead to further settings. */
	{".hg/hgrc", .held = true, .content = ""},
	{".hg/hgrc-not-shared", .held = true, .content = ""},
	{".hg/requires", .held = true, .content = ""},
	{".hg/sharedpath"},
	{".sl/config"},
	{".sl/requires"},
	{".sl/sharedpath"},
	/* Jujutsu: settings name pagers and tools; `repo` may be a file that leads elsewhere, and holds a repository of git's. */
	{".jj/repo/config.toml", .held = true, .content = ""},
	{".jj/workspace-config.toml", .held = true, .content = ""},
	{".jj/repo/store/git_target"},
	{".jj/repo/store/git/config"},
	{".jj/repo/store/git/hooks"},
	/* Shells, where the folder is somebody's home. */
	{".bashrc", .held = true},
	{".bash_profile", .held = true},
	{".bash_login", .held = true},
	{".bash_logout", .held = true},
	{".profile", .held = true},
	{".zshenv", .held = true},
	{".zshrc", .held = true},
	{".zprofile", .held = true},
	{".zlogin", .held = true},
	{".zlogout", .held = true},
	{".kshrc"},
	{".cshrc"},
	{".tcshrc"},
	{".login"},
	{".inputrc"},
	{".config/fish"},
	/* At the prompt: direnv; mise trusts by the path, whatever is in the file. */
	{".envrc", .held = true},
	{"mise.toml"},
	{"mise.local.toml"},
	{".mise.toml"},
	{".mise"},
	{".config/mise.toml"},
	{".config/mise"},
	/* Agents: servers, hooks, permissions, commands and plug-ins that they start with. */
	{".mcp.json", .held = true},
	{".claude", .held = true},
	{".codex", .held = true},
	{".cursor", .held = true},
	{".gemini", .held = true},
	{".kiro"},
	{".opencode", .held = true},
	{".windsurf"},
	{"opencode.json"},
	{"opencode.jsonc"},
	{"crush.json"},
	{".crush.json"},
	{".crush"},
	{".qwen"},
	{".factory"},
	{".roo"},
	{".continue"},
	{".junie"},
	{".amazonq"},
	{".amp"},
	{".trae"},
	{".aider.conf.yml"},
	{".github/hooks"},
	/* Editors: tasks, programs that they start for a language, settings that are code. Some ask before they take new ones. */
	{".vscode", .held = true, .folder = true},
	{".idea", .held = true},
	{".zed", .held = true},
	{".helix"},
	{".exrc", .held = true},
	{".vimrc", .held = true},
	{".nvim.lua"},
	{".dir-locals.el"},
	{".nvimrc"},
	{".lvimrc"},
	{".dir-locals-2.el"},
	{".fleet"},
	{".devcontainer"},
	{".devcontainer.json"},
};

const struct coop_protected *coop_protected_rows(size_t *ret_count)
{
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
