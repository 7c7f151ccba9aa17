#include "doors/cli/place.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/paths.h"
#include "coop.h"
#include "doors/cli/parse.h"
#include "doors/cli/typed.h"

extern char **environ;

json_t *cli_place_path(const char *path, struct coop_error *error)
{
	char here[PATH_MAX] = "", whole[2 * PATH_MAX];
	const bool absolute = path && path[0] == '/';
	if (!absolute && !getcwd(here, sizeof(here))) {
		cli_error(error, "invalid_input",
			  "the current folder cannot be used: %s (name another)", strerror(errno));
		return NULL;
	}
	(void)snprintf(whole, sizeof(whole), "%s%s%s", here, path && !absolute ? "/" : "",
		       path ? path : "");
	json_t *value = json_string(whole);
	if (!value)
		cli_error(error, "invalid_input", "the folder's name is not valid UTF-8");
	return value;
}

json_t *cli_place_resolve(const char *path, enum cli_presence presence, struct coop_error *error)
{
	char whole[PATH_MAX], plain[2 * PATH_MAX];
	if (strcmp(path, "~") == 0 || strncmp(path, "~/", 2) == 0)
		return json_string(path);
	if (presence == CLI_MUST_EXIST) {
		const int fd = cli_typed_open(path, whole, error);
		if (fd >= 0)
			(void)close(fd);
		else if (!*error->message)
			cli_error(error, "invalid_input", "%s", strerror(-fd));
		return fd < 0 ? NULL : cli_place_path(whole, error);
	}
	if (presence == CLI_MAY_BE_MISSING && realpath(path, whole))
		return cli_place_path(whole, error);
	if (!*path) {
		cli_error(error, "invalid_input", "%s", strerror(ENOENT));
		return NULL;
	}
	json_t *absolute = cli_place_path(path, error);
	if (!absolute)
		return NULL;
	(void)snprintf(plain, sizeof(plain), "%s", json_string_value(absolute));
	json_decref(absolute);
	coop_paths_plain(plain);
	return json_string(plain);
}

/* One that is not there is for the keeper to tell of. */
int cli_place_cwd(const char *path, json_t *args, struct coop_error *error)
{
	char whole[PATH_MAX];
	const int fd = path ? cli_typed_open(path, whole, error) : -1;
	if (fd >= 0) {
		(void)close(fd);
		path = whole;
	} else if (path && *error->message) {
		char why[sizeof(error->message)];
		(void)snprintf(why, sizeof(why), "%s", error->message);
		cli_error(error, "invalid_input", "--cwd %.60s: %.420s", path, why);
		return -EXDEV;
	}
	json_t *value = cli_place_path(path, error);
	return value && json_object_set_new(args, "cwd", value) == 0 ? 0 : -EINVAL;
}

json_t *cli_place_env(const struct coop *coop)
{
	json_t *env = json_object();
	for (char **entry = environ; entry && *entry; entry++) {
		char name[CLI_ENV_NAME_MAX];
		const char *value;
		/* Values that are not UTF-8 cannot travel; nobody asked for these by name, so they
		 * are left out. */
		if (cli_parse_env(*entry, name, &value) == 0 && value &&
		    coop_inherits(coop, name) && !json_object_get(env, name))
			(void)json_object_set_new(env, name, json_string(value));
	}
	return env;
}

json_t *cli_place_words(size_t count, char *const *words)
{
	size_t size = 1;
	for (size_t i = 0; i < count; i++)
		size += strlen(words[i]) + 1;
	char *text = calloc(1, size), *at = text;
	if (!text)
		return NULL;
	for (size_t i = 0; i < count; i++)
		at = stpcpy(stpcpy(at, i ? " " : ""), words[i]);
	json_t *joined = json_string(text);
	free(text);
	return joined;
}
