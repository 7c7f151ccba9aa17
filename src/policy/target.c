#include "policy/target.h"

#include <string.h>

#include "policy/paths.h"
#include "policy/runs.h"

static const char *const temporary[] = {"/tmp", "/var/tmp", "/dev/shm", NULL};

/* * ? .* and the like: all that a folder holds. */
static bool takes_all(const char *name)
{
	return strchr(name, '*') && name[strspn(name, "*?.[]!")] == '\0';
}

bool coop_target_make(const struct coop_scene *scene, const struct coop_run *run,
		      const struct coop_word *word, struct coop_target *ret)
{
	const char *cwd = coop_runs_command(scene->runs, run)->cwd;

	/* A known beginning says enough; without one nothing is known. */
	if (word->flags & COOP_WORD_COMPUTED && (word->text[0] == '$' || word->text[0] == '~'))
		return false;
	if (!*word->text || !coop_path_make(&ret->path, cwd, word->text))
		return false;
	ret->glob = word->flags & COOP_WORD_GLOB;
	char *name = ret->path.text + (coop_path_name(ret->path.text) - ret->path.text);
	while (ret->glob && takes_all(name)) {
		/* The last slash goes too, unless it is the root's. */
		name -= name - ret->path.text > 1;
		*name = '\0';
		while (name > ret->path.text && name[-1] != '/')
			name--;
	}
	ret->glob = ret->glob && strpbrk(ret->path.text, "*?[");
	return true;
}

/* A command that runs in / or /usr does not make all of that its own. */
static bool own_cwd(const struct coop_scene *scene)
{
	const char *cwd = scene->command->cwd, *home = scene->command->home;

	return cwd && strcmp(cwd, "/") != 0 &&
	       (!coop_path_system(cwd) || (home && !strcmp(cwd, home)));
}

bool coop_target_inside(const struct coop_scene *scene, const struct coop_target *target)
{
	const char *path = target->path.text;
	const char *const *roots = scene->command->workspace;

	for (size_t i = 0; roots && roots[i]; i++) {
		if (coop_path_within(path, roots[i]))
			return true;
	}
	for (size_t i = 0; temporary[i]; i++) {
		if (coop_path_within(path, temporary[i]))
			return true;
	}
	return own_cwd(scene) && coop_path_within(path, scene->command->cwd);
}

/* Whether removing the target takes `folder` with it. */
static bool takes(const struct coop_target *target, const char *folder)
{
	return folder && *folder && coop_path_within(folder, target->path.text);
}

bool coop_target_expendable(const struct coop_scene *scene, const struct coop_target *target)
{
	const char *const *roots = scene->command->workspace;

	if (!coop_target_inside(scene, target) || takes(target, scene->command->cwd) ||
	    takes(target, scene->command->home))
		return false;
	for (size_t i = 0; roots && roots[i]; i++) {
		if (takes(target, roots[i]))
			return false;
	}
	for (size_t i = 0; temporary[i]; i++) {
		if (takes(target, temporary[i]))
			return false;
	}
	return true;
}

bool coop_target_vital(const struct coop_scene *scene, const struct coop_target *target)
{
	const char *path = target->path.text, *home = scene->command->home;
	struct coop_path plain;

	if (!strcmp(path, "/") || coop_path_system(path))
		return true;
	return home && *home == '/' && coop_path_make(&plain, NULL, home) &&
	       !strcmp(path, plain.text);
}
