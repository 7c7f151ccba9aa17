#include "client/locate.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/paths.h"

static int usable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* `<folder>/<below><name>`, the folder given by its length. */
static int try(const char *folder, size_t length, const char *below, const char *name,
	       char *ret_path, size_t size)
{
	int n = snprintf(ret_path, size, "%.*s/%s%s", (int)length, folder, below, name);

	return n > 0 && (size_t)n < size && usable(ret_path) ? 0 : -ENOENT;
}

/* Beside `file`, and where an installation or a build has programs seen from there. */
static int try_beside(const char *file, const char *name, char *ret_path, size_t size)
{
	static const char *const places[] = {"", "../bin/", "../libexec/", "../libexec/coop/",
					     "../../bin/" /* lib/<architecture> */};
	const char *slash = strrchr(file, '/');

	for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
		if (try(file, (size_t)(slash - file), places[i], name, ret_path, size) == 0)
			return 0;
	}
	return -ENOENT;
}

static int try_own_program(const char *name, char *ret_path, size_t size)
{
	char self[COOP_PATHS_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (n <= 0)
		return -ENOENT;
	self[n] = 0;
	return try_beside(self, name, ret_path, size);
}

static int try_own_library(const char *name, char *ret_path, size_t size)
{
	static const char anchor; /* any address inside this object */
	char real[COOP_PATHS_MAX];
	Dl_info info;

	if (!dladdr(&anchor, &info) || !info.dli_fname || !realpath(info.dli_fname, real))
		return -ENOENT;
	return try_beside(real, name, ret_path, size);
}

static int try_path(const char *name, char *ret_path, size_t size)
{
	const char *at = getenv("PATH");

	while (at && *at) {
		size_t length = strcspn(at, ":");
		/* An empty or relative entry means the current folder: no place to take a keeper
		 * from. */
		if (*at == '/' && try(at, length, "", name, ret_path, size) == 0)
			return 0;
		at += length + (at[length] == ':');
	}
	return -ENOENT;
}

int coop_locate_program(const char *name, const char *variable, char *ret_path, size_t size)
{
	const char *given = secure_getenv(variable);

	if (given && *given) {
		int n = snprintf(ret_path, size, "%s", given);
		return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
	}
	if (try_own_program(name, ret_path, size) == 0 ||
	    try_own_library(name, ret_path, size) == 0 || try_path(name, ret_path, size) == 0)
		return 0;
	return -ENOENT;
}
