#include "policy/match.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/paths.h"

_Static_assert(PATH_MAX <= 4096, "realpath writes up to PATH_MAX");

static bool executable(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* As execvp would look, from the command's own directory. */
static bool search(struct coop_match *match)
{
	const char *at = match->path;

	while (at) {
		size_t size = strcspn(at, ":");
		char folder[COOP_PATH_MAX];
		struct coop_path path;

		/* An empty part is the working directory. */
		if (size < sizeof folder) {
			(void)snprintf(folder, sizeof folder, "%.*s", (int)size, at);
			if (coop_path_make(&path, match->cwd, folder) &&
			    snprintf(match->found, sizeof match->found, "%s/%s", path.text,
				     match->run->typed) < (int)sizeof match->found &&
			    executable(match->found))
				return true;
		}
		at = at[size] ? at + size + 1 : NULL;
	}
	match->found[0] = '\0';
	return false;
}

static void look(struct coop_match *match)
{
	struct coop_path path;

	if (match->looked)
		return;
	match->looked = true;
	match->found[0] = match->resolved[0] = '\0';
	if (match->run->flags & COOP_WORD_COMPUTED)
		return;
	if (strchr(match->run->typed, '/')) {
		/* Not the plain path: link/../x is not x for the kernel. */
		const char *typed = match->run->typed;
		int size = *typed == '/' ? snprintf(match->found, sizeof match->found, "%s", typed)
			   : match->cwd  ? snprintf(match->found, sizeof match->found, "%s/%s",
						    match->cwd, typed)
					 : -1;
		if (size < 0 || size >= (int)sizeof match->found)
			match->found[0] = '\0';
	} else if (!search(match)) {
		return;
	}
	if (!match->found[0] || !realpath(match->found, match->resolved))
		match->resolved[0] = '\0';
	/* For comparison with paths as people write them. */
	if (match->found[0] && coop_path_make(&path, NULL, match->found))
		memcpy(match->found, path.text, strlen(path.text) + 1);
}

/* A hard link is the same file under a name that realpath cannot see through. */
static bool same_file(const char *one, const char *other)
{
	struct stat first, second;

	return stat(one, &first) == 0 && stat(other, &second) == 0 &&
	       first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

static bool fits(const char *entry, struct coop_match *match)
{
	if (!strchr(entry, '/')) {
		if (!strcmp(entry, match->run->name))
			return true;
		look(match);
		return match->resolved[0] && !strcmp(entry, coop_path_name(match->resolved));
	}
	if (!strcmp(entry, match->run->typed))
		return true;
	look(match);
	return match->found[0] &&
	       (!strcmp(entry, match->found) || !strcmp(entry, match->resolved) ||
		same_file(entry, match->found));
}

const struct coop_rule *coop_match_find(const struct coop_rules *rules, struct coop_match *match)
{
	for (size_t i = 0; i < rules->count; i++) {
		if (fits(rules->items[i].text, match))
			return &rules->items[i];
	}
	return NULL;
}

bool coop_match_exists(struct coop_match *match)
{
	look(match);
	return match->resolved[0] != '\0';
}
