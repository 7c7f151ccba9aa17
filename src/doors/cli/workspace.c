#include "doors/cli/workspace.h"

#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/paths.h"
#include "doors/cli/cli.h"
#include "doors/cli/record.h"

static bool same_folder(const char *canonical, const char *other)
{
	char path[PATH_MAX];
	return other && *other == '/' && realpath(other, path) && strcmp(canonical, path) == 0;
}

static const char *home_folder(void)
{
	const char *home = getenv("HOME");
	const struct passwd *entry = home && *home ? NULL : getpwuid(geteuid());
	return entry ? entry->pw_dir : home;
}

/* Does the path lie in the folder? Of one that is not there yet the nearest folder that is
 * counts. */
static bool holds(const char *folder, const char *path)
{
	char text[COOP_PATHS_MAX], canonical[PATH_MAX];
	const size_t length = strlen(folder);
	(void)snprintf(text, sizeof(text), "%s", path);
	while (!realpath(text, canonical)) {
		char *slash = strrchr(text, '/');
		if (!slash || slash == text)
			return false;
		*slash = '\0';
	}
	return strncmp(canonical, folder, length) == 0 &&
	       (canonical[length] == '/' || canonical[length] == '\0');
}

static bool in_repository(const char *folder)
{
	for (const char *at = folder; (at = strstr(at, "/.git")); at += strlen("/.git"))
		if (at[5] == '\0' || at[5] == '/')
			return true;
	return false;
}

/* Of root's home commands see nothing: they run as somebody else. Other homes take writes, which go
 * to a layer. */
static void say_read_only(const char *folder, const char *why, const char *home)
{
	const bool at_home = same_folder(folder, home_folder());
	const bool layer = at_home && (!home || strcmp(home, "cow") == 0);
	if (geteuid() == 0 && at_home)
		cli_say("read-only here: %s, and root's is hidden: it looks empty (--workspace DIR "
			"shows one and makes it writable, --profile full runs as root without "
			"protection)",
			why);
	else
		cli_say("read-only here: %s%s (--workspace DIR makes one writable)", why,
			layer ? ": what the command writes in it vanishes with it" : "");
}

const char *cli_workspace_refused(const char *folder)
{
	char path[COOP_PATHS_MAX];
	if (strcmp(folder, "/") == 0)
		return "/ itself is no workspace";
	if (same_folder(folder, home_folder()))
		return "the home folder itself is no workspace";
	if (in_repository(folder))
		return "the .git of a repository is no workspace";
	if ((coop_paths_socket(path, sizeof(path)) == 0 && holds(folder, path)) ||
	    (coop_paths_state(path, sizeof(path)) == 0 && holds(folder, path)))
		return "a folder that holds the keeper's own files is no workspace";
	return NULL;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

/* Which folders an agent may name: any, as the user himself, who needs no token; those it is bound
 * to, of which the keeper takes the right one; or none. */
enum grant { GRANT_ANY, GRANT_ROOTS, GRANT_NONE };

static enum grant find_grant(struct cli *cli, const char *agent, char *ret_agent, size_t size)
{
	const char *token = getenv("COOP_TOKEN");
	struct coop_error error;
	json_t *info = NULL, *shown = NULL;
	if (!agent && !cli->token_file && !(token && *token))
		return GRANT_ANY;
	if (!agent && cli_call(cli, "info", json_object(), &info, &error) == 0)
		agent = cli_text(json_object_get(info, "you"), "agent");
	if (agent)
		(void)cli_call(cli, "agent_show", json_pack("{s:s}", "agent", agent), &shown,
			       &error);
	const json_t *effective = json_object_get(json_object_get(shown, "agent"), "effective");
	const bool bound = json_array_size(json_object_get(effective, "workspace")) > 0;
	const char *path = cli_text(json_object_get(shown, "agent"), "path");
	const char *principal = cli_text(json_object_get(shown, "agent"), "principal");
	/* Other principals' names have no colon. */
	const bool user = path && strcmp(path, "main") == 0 && principal &&
			  strncmp(principal, "uid:", 4) == 0;
	(void)snprintf(ret_agent, size, "%s", path ? path : "");
	json_decref(shown);
	json_decref(info);
	if (user && !bound)
		return GRANT_ANY;
	return bound || !*ret_agent ? GRANT_ROOTS : GRANT_NONE;
}

static void set(json_t *args, const char *name, const char *text)
{
	json_t *sandbox = json_object_get(args, "sandbox");
	if (!sandbox) {
		sandbox = json_object();
		(void)json_object_set_new(args, "sandbox", sandbox);
	}
	(void)json_object_set_new(sandbox, name, json_string(text));
}

/* A command that stands outside of the workspace that was named would be refused: it runs in
 * there. */
static void move_inside(const char *cwd, json_t *args)
{
	const char *named = cli_text(json_object_get(args, "sandbox"), "workspace");
	const char *home = *named == '~' ? home_folder() : "";
	char text[COOP_PATHS_MAX], folder[PATH_MAX], here[PATH_MAX];
	(void)snprintf(text, sizeof(text), "%s%s", home ? home : "", named + (*named == '~'));
	if (!cwd && realpath(text, folder) && realpath(".", here) && !holds(folder, here))
		(void)json_object_set_new(args, "cwd", json_string(folder));
}

void cli_workspace_add(struct cli *cli, const struct cli_sandbox *sandbox, const char *cwd,
		       const char *agent, json_t *args)
{
	static const char *const without[] = {"read-only", "restricted", "full", "privileged",
					      NULL};
	static const char *const needs[] = {"workspace-write", "baseline", NULL};
	const char *profile = sandbox->profile;
	char folder[PATH_MAX], name[1024];
	if (profile && is_one_of(profile, without))
		return;
	if (sandbox->workspace) {
		move_inside(cwd, args);
		return;
	}
	/* A folder that is not there, or is not UTF-8, is told about as the one to run in. */
	const char *at = cli_text(args, "cwd");
	if (!realpath(cwd && *at ? at : cwd ? cwd : ".", folder))
		return;
	const enum grant grant = find_grant(cli, agent, name, sizeof(name));
	if (grant == GRANT_NONE)
		cli_say("nothing is writable here: this agent has no workspace (coop agent set %s "
			"--workspace DIR)",
			name);
	if (grant != GRANT_ANY)
		return;
	const char *why = cli_workspace_refused(folder);
	if (!why || (profile && is_one_of(profile, needs))) {
		set(args, "workspace", folder);
		set(args, "names", "resolved"); /* nobody typed it */
	} else if (!profile) {
		set(args, "profile", "read-only");
		say_read_only(folder, why, sandbox->home);
	}
}
