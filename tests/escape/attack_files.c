/* Files: what lies outside the workspace, what is protected inside it, what is hidden; and what
 * must work. */
#include "attack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct attack_outcome create(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		return attack_refused(errno);
	struct attack_outcome outcome = attack_from(write(fd, "attack\n", 7));
	(void)close(fd);
	return outcome;
}

/* Refused, "empty", or let in. */
static struct attack_outcome list(const char *path)
{
	int count = 0;
	DIR *folder = opendir(path);
	if (!folder)
		return attack_refused(errno);
	for (struct dirent *entry; (entry = readdir(folder));)
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	(void)closedir(folder);
	return count ? attack_succeeded() : attack_looked("empty");
}

static struct attack_outcome create_outside(const struct attack_context *context)
{
	return create(attack_path(context, "OUTSIDE", "/made-by-attack"));
}

static struct attack_outcome create_outside_by_dots(const struct attack_context *context)
{
	char path[PATH_MAX] = "";
	const char *workspace = attack_param(context, "WORKSPACE");
	size_t used = (size_t)snprintf(path, sizeof(path), "%s", workspace);
	for (const char *c = workspace; *c; c++) {
		if (*c == '/')
			used += (size_t)snprintf(path + used, sizeof(path) - used, "/..");
	}
	(void)snprintf(path + used, sizeof(path) - used, "%s",
		       attack_path(context, "OUTSIDE", "/made-by-dots"));
	return create(path);
}

static struct attack_outcome create_in_etc(const struct attack_context *context)
{
	(void)context;
	return create("/etc/coop-attack");
}

static struct attack_outcome write_through_link(const struct attack_context *context)
{
	return create(attack_path(context, "WORKSPACE", "/link-out"));
}

static struct attack_outcome link_outside_in(const struct attack_context *context)
{
	return attack_from(link(attack_path(context, "OUTSIDE", "/file"),
				attack_path(context, "WORKSPACE", "/stolen")));
}

static struct attack_outcome read_shadow(const struct attack_context *context)
{
	(void)context;
	return attack_open("/etc/shadow", O_RDONLY);
}

static struct attack_outcome read_roots_home(const struct attack_context *context)
{
	return attack_open(attack_param(context, "ROOTS_FILE"), O_RDONLY);
}

static struct attack_outcome chmod_outside(const struct attack_context *context)
{
	return attack_from(chmod(attack_path(context, "OUTSIDE", "/file"), 0600));
}

static struct attack_outcome xattr_outside(const struct attack_context *context)
{
	return attack_from(
		setxattr(attack_path(context, "OUTSIDE", "/file"), "user.attack", "1", 1, 0));
}

static struct attack_outcome rename_out(const struct attack_context *context)
{
	const char *from = attack_path(context, "WORKSPACE", "/to-be-moved");
	struct attack_outcome made = create(from);
	return made.kind == ATTACK_OK
		       ? attack_from(rename(from, attack_path(context, "OUTSIDE", "/moved")))
		       : made;
}

static struct attack_outcome write_hook(const struct attack_context *context)
{
	return create(attack_path(context, "WORKSPACE", "/.git/hooks/pre-commit"));
}

static struct attack_outcome write_git_config(const struct attack_context *context)
{
	return create(attack_path(context, "WORKSPACE", "/.git/config"));
}

static struct attack_outcome replace_git_config(const struct attack_context *context)
{
	const char *own = attack_path(context, "WORKSPACE", "/own-config");
	(void)create(own);
	return attack_from(rename(own, attack_path(context, "WORKSPACE", "/.git/config")));
}

static struct attack_outcome rename_parent(const struct attack_context *context)
{
	const char *away = attack_path(context, "WORKSPACE", "/.git-away");
	if (rename(attack_path(context, "WORKSPACE", "/.git"), away) != 0)
		return attack_refused(errno);
	return create(attack_path(context, "WORKSPACE", "/.git-away/hooks/pre-commit"));
}

static struct attack_outcome rename_hooks(const struct attack_context *context)
{
	return attack_from(rename(attack_path(context, "WORKSPACE", "/.git/hooks"),
				  attack_path(context, "WORKSPACE", "/.git/hooks-away")));
}

static struct attack_outcome exchange_parent(const struct attack_context *context)
{
	const char *other = attack_path(context, "WORKSPACE", "/other-git");
	(void)mkdir(other, 0755);
	return attack_from(renameat2(AT_FDCWD, attack_path(context, "WORKSPACE", "/.git"), AT_FDCWD,
				     other, RENAME_EXCHANGE));
}

static struct attack_outcome create_missing_file(const struct attack_context *context)
{
	return create(attack_path(context, "WORKSPACE", "/.mcp.json"));
}

static struct attack_outcome create_missing_folder(const struct attack_context *context)
{
	if (mkdir(attack_path(context, "WORKSPACE", "/.vscode"), 0755) != 0 && errno != EEXIST)
		return attack_refused(errno);
	return create(attack_path(context, "WORKSPACE", "/.vscode/settings.json"));
}

static struct attack_outcome rename_over_missing(const struct attack_context *context)
{
	const char *own = attack_path(context, "WORKSPACE", "/own-mcp");
	(void)create(own);
	return attack_from(rename(own, attack_path(context, "WORKSPACE", "/.mcp.json")));
}

static struct attack_outcome link_over_missing(const struct attack_context *context)
{
	if (unlink(attack_path(context, "WORKSPACE", "/.gitmodules")) != 0 && errno != ENOENT)
		return attack_refused(errno);
	return attack_from(symlink("evil", attack_path(context, "WORKSPACE", "/.gitmodules")));
}

static struct attack_outcome write_missing_denied(const struct attack_context *context)
{
	return create(attack_param(context, "DENY_WRITE_MISSING"));
}

static struct attack_outcome write_denied(const struct attack_context *context)
{
	return create(attack_param(context, "DENY_WRITE"));
}

static struct attack_outcome read_denied_hard_link(const struct attack_context *context)
{
	return attack_read_secret(context, attack_param(context, "DENIED_HARD_LINK"));
}

static struct attack_outcome write_protected_hard_link(const struct attack_context *context)
{
	return create(attack_param(context, "PROTECTED_HARD_LINK"));
}

static struct attack_outcome read_denied(const struct attack_context *context)
{
	return attack_read_secret(context, attack_param(context, "DENIED"));
}

static struct attack_outcome read_denied_by_root(const struct attack_context *context)
{
	char path[PATH_MAX];
	(void)snprintf(path, sizeof(path), "/proc/self/root%s", attack_param(context, "DENIED"));
	return attack_read_secret(context, path);
}

static struct attack_outcome read_denied_by_cwd(const struct attack_context *context)
{
	char path[PATH_MAX];
	(void)snprintf(path, sizeof(path), "/proc/self/cwd/../../../../../../../../../../../..%s",
		       attack_param(context, "DENIED"));
	return attack_read_secret(context, path);
}

static struct attack_outcome read_denied_by_link(const struct attack_context *context)
{
	return attack_read_secret(context, attack_param(context, "DENIED_LINK"));
}

static struct attack_outcome read_denied_by_alias(const struct attack_context *context)
{
	return attack_read_secret(context, attack_param(context, "DENIED_ALIAS"));
}

static struct attack_outcome list_denied_folder(const struct attack_context *context)
{
	return list(attack_param(context, "DENIED_FOLDER"));
}

static struct attack_outcome read_by_glob(const struct attack_context *context)
{
	return attack_read_secret(context, attack_param(context, "DENIED_GLOB_MATCH"));
}

static struct attack_outcome create_denied_missing(const struct attack_context *context)
{
	struct attack_outcome made = create(attack_param(context, "DENIED_MISSING"));
	return made.kind == ATTACK_OK
		       ? made
		       : attack_worse(made, attack_open(attack_param(context, "DENIED_MISSING"),
							O_WRONLY));
}

static struct attack_outcome read_ssh(const struct attack_context *context)
{
	return attack_read_secret(context, attack_path(context, "HOME", "/.ssh/id"));
}

static struct attack_outcome list_ssh(const struct attack_context *context)
{
	return list(attack_path(context, "HOME", "/.ssh"));
}

static struct attack_outcome read_netrc(const struct attack_context *context)
{
	return attack_read_secret(context, attack_path(context, "HOME", "/.netrc"));
}

static struct attack_outcome read_aws(const struct attack_context *context)
{
	return attack_read_secret(context, attack_path(context, "HOME", "/.aws/credentials"));
}

static struct attack_outcome write_cache(const struct attack_context *context)
{
	const char *folder = attack_path(context, "HOME", "/.cache");
	if (mkdir(folder, 0700) != 0 && errno != EEXIST)
		return attack_refused(errno);
	return create(attack_path(context, "HOME", "/.cache/made-by-attack"));
}

static struct attack_outcome write_workspace(const struct attack_context *context)
{
	return create(attack_path(context, "WORKSPACE", "/made-inside"));
}

static struct attack_outcome write_tmp(const struct attack_context *context)
{
	(void)context;
	return create("/tmp/coop-attack-made-inside");
}

static struct attack_outcome list_run(const struct attack_context *context)
{
	(void)context;
	return list("/run");
}

/* The private /run can be written as far as its mount goes: it is Landlock, behind the mounts, that
 * gives no right to. */
static struct attack_outcome create_behind_the_mounts(const struct attack_context *context)
{
	(void)context;
	struct attack_outcome outcome = create("/run/coop-attack-made");
	(void)unlink("/run/coop-attack-made");
	return outcome;
}

const struct attack attack_files[] = {
	{"S-001", create_outside},
	{"S-001.dots", create_outside_by_dots},
	{"S-002", create_in_etc},
	{"S-003", write_through_link},
	{"S-004", link_outside_in},
	{"S-005", read_shadow},
	{"S-006", read_roots_home},
	{"S-007", chmod_outside},
	{"S-008", xattr_outside},
	{"S-009", rename_out},
	{"S-082", write_hook},
	{"S-082.config", write_git_config},
	{"S-082.replace", replace_git_config},
	{"S-082.deny-write", write_denied},
	{"S-098", rename_parent},
	{"S-098.hooks", rename_hooks},
	{"S-098.exchange", exchange_parent},
	{"S-099", create_missing_file},
	{"S-099.folder", create_missing_folder},
	{"S-099.rename", rename_over_missing},
	{"S-099.link", link_over_missing},
	{"S-099.deny-write", write_missing_denied},
	{"S-099.deny-read", create_denied_missing},
	{"S-100.denied", read_denied_hard_link, .alone = true},
	{"S-100.protected", write_protected_hard_link, .alone = true},
	{"S-101", read_denied},
	{"S-101.root", read_denied_by_root},
	{"S-101.cwd", read_denied_by_cwd},
	{"S-101.link", read_denied_by_link},
	{"S-101.alias", read_denied_by_alias},
	{"S-101.folder", list_denied_folder},
	{"S-101.glob", read_by_glob},
	{"S-132", read_ssh},
	{"S-132.list", list_ssh},
	{"S-132.netrc", read_netrc},
	{"S-132.aws", read_aws},
	{"S-133", write_cache},
	{"S-081", write_workspace},
	{"S-081.tmp", write_tmp},
	{"S-027.list", list_run},
	{"second-wall", create_behind_the_mounts},
	{0},
};
