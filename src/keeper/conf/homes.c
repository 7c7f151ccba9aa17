#include "keeper/conf/homes.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interface/schema.h"
#include "keeper/conf/env.h"
#include "policy/paths.h"
#include "sandbox/layout/path_walk.h"
#include "sandbox/policy/pathlist.h"

const char *coop_homes_own(void)
{
	static char home[PATH_MAX];
	static bool resolved;
	struct coop_path plain;

	if (resolved)
		return home;
	if (realpath(coop_env_home(), home)) {
		resolved = true;
		return home;
	}
	/* One that is not there yet may come, as with automounts: it is looked for again. */
	(void)snprintf(home, sizeof home, "%s",
		       coop_path_make(&plain, NULL, coop_env_home()) ? plain.text : "/");
	return home;
}

/* What belongs to the system is nobody's home: a private layer there would bring back what is
 * hidden. */
static bool is_system(const char *path)
{
	static const char *const places[] = {"/proc", "/sys", "/dev", "/run"};

	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		if (coop_path_within(path, places[i]))
			return true;
	}
	return !path[1];
}

static void add(struct coop_homes *homes, const char *path)
{
	if (homes->count < COOP_HOMES_MAX && path[1] && !coop_homes_has(homes, path))
		(void)snprintf(homes->list[homes->count++], sizeof homes->list[0], "%s", path);
}

/* A variable's word counts if it is a folder that is there, and is ours. */
static bool real_folder(const char *word, char ret[PATH_MAX])
{
	struct stat status;

	return word && *word == '/' && realpath(word, ret) && stat(ret, &status) == 0 &&
	       S_ISDIR(status.st_mode) && (geteuid() == 0 || status.st_uid == geteuid()) &&
	       !is_system(ret);
}

static bool removes_home(const json_t *args)
{
	const json_t *names = coop_arg(args, "env_remove");

	for (size_t i = 0; i < json_array_size(names); i++) {
		if (!strcmp(json_string_value(json_array_get(names, i)), "HOME"))
			return true;
	}
	return false;
}

/* The HOME that the command will have, as coop_env_build makes it; NULL: the standard one, or
 * none. `ret_theirs`: whoever asks says so, and not the operator. */
static const char *asked_home(const json_t *args, const struct coop_env_rules *rules,
			      bool *ret_theirs)
{
	const char *home = json_string_value(json_object_get(coop_arg(args, "env"), "HOME"));

	*ret_theirs = home;
	if (home || removes_home(args) ||
	    !strcmp(coop_arg_string(args, "env_mode", "patch"), "replace"))
		return home;
	home = json_string_value(json_object_get(coop_arg(args, "base_env"), "HOME"));
	*ret_theirs = home;
	for (size_t i = 0; !home && i < rules->set.count; i++) {
		if (!strncmp(rules->set.items[i], "HOME=", 5))
			home = rules->set.items[i] + 5;
	}
	return home;
}

/* The asked one, as far as it may be looked at: in what the agent may read, or one that is known
 * anyway. Of others it is not found out whether they are there; there is nothing in them to be
 * hidden from somebody who need not call them his home. */
static bool asked_folder(const char *word, const struct coop_lookable *seen, const char *started,
			 char ret[PATH_MAX])
{
	char place[COOP_PATH_SIZE];
	int r = word && *word == '/' ? coop_path_walk(seen, word, place) : -ENOENT;

	return (r == 0 || (r == -EXDEV && *place &&
			   (!strcmp(place, coop_homes_own()) || !strcmp(place, started)))) &&
	       real_folder(place, ret);
}

void coop_homes_find(const json_t *args, const struct coop_env_rules *rules, bool trusted,
		     const struct coop_lookable *seen, struct coop_homes *ret)
{
	char asked[PATH_MAX], started[PATH_MAX] = "";
	bool theirs, starts = real_folder(getenv("HOME"), started);
	const char *word = asked_home(args, rules, &theirs);
	bool asks = seen && theirs ? asked_folder(word, seen, started, asked)
				   : real_folder(word, asked);

	ret->count = 0;
	ret->memory = NULL;
	if (asks &&
	    (trusted || !strcmp(asked, coop_homes_own()) || (starts && !strcmp(asked, started))))
		add(ret, asked);
	add(ret, coop_homes_own());
	if (starts)
		add(ret, started);
	ret->known = ret->count;
	if (asks)
		add(ret, asked);
}

void coop_homes_yield(struct coop_homes *homes, const char *folder)
{
	char first[COOP_PATH_SIZE];

	if (!homes->count || !coop_path_within(homes->list[0], folder))
		return;
	for (size_t i = 1; i < homes->count; i++) {
		if (strcmp(homes->list[i], coop_homes_own()) != 0)
			continue;
		memcpy(first, homes->list[0], sizeof first);
		memcpy(homes->list[0], homes->list[i], sizeof first);
		memcpy(homes->list[i], first, sizeof first);
	}
}

const char *coop_homes_first(const struct coop_homes *homes)
{
	return homes->count ? homes->list[0] : "/";
}

bool coop_homes_has(const struct coop_homes *homes, const char *path)
{
	for (size_t i = 0; i < homes->count; i++) {
		if (!strcmp(homes->list[i], path))
			return true;
	}
	return false;
}

bool coop_homes_hold(const struct coop_homes *homes, const char *path)
{
	for (size_t i = 0; i < homes->count; i++) {
		if (coop_path_within(path, homes->list[i]))
			return true;
	}
	return false;
}

/* The first home stands in the lists as `~/` already; the others get the same names of their
 * own. */
static int spread(const struct coop_homes *homes, enum coop_pathlist_kind kind, char ***list,
		  struct coop_err *err)
{
	size_t count = coop_pathlist_count(*list);
	char path[COOP_PATH_SIZE];
	int r = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 1; r == 0 && j < homes->count; j++) {
			if (!strncmp((*list)[i], "~/", 2) &&
			    coop_path_expand((*list)[i], homes->list[j], path) == 0)
				r = coop_pathlist_add(list, kind, path, "sandbox", err);
		}
	}
	return r;
}

int coop_homes_spread(const struct coop_homes *homes, struct coop_sandbox_policy *policy,
		      struct coop_err *err)
{
	int r = spread(homes, COOP_PATHLIST_PATTERN, &policy->deny_read, err);

	if (r == 0)
		r = spread(homes, COOP_PATHLIST_PLAIN, &policy->deny_write, err);
	return r < 0 ? r : spread(homes, COOP_PATHLIST_PROTECTED, &policy->protect, err);
}
