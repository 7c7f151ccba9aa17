#include "doors/cli/sibling.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The folder that this program lies in, without the last "/". */
static int own_folder(char *folder, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", folder, size - 1);
	if (n < 0)
		return -errno;
	folder[n] = '\0';
	char *slash = strrchr(folder, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

static int try_exec(const char *folder, const char *between, const char *program, char **argv)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%s/%s", folder, between, program);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	(void)execv(path, argv);
	return -errno;
}

static int try_places(const char *program, char **argv)
{
	static const char *const places[] = {"", "/../libexec/coop"};
	char folder[PATH_MAX];
	if (own_folder(folder, sizeof(folder)) == 0)
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			int r = try_exec(folder, places[i], program, argv);
			if (r != -ENOENT && r != -ENOTDIR)
				return r;
		}
	(void)execvp(program, argv);
	return -errno;
}

int cli_sibling_exec(const char *name, char **argv)
{
	char program[NAME_MAX + 1], *before = argv[0];
	int n = snprintf(program, sizeof(program), "coop-%s", name);
	/* A name with a "/" would lead somewhere else. */
	if (n < 0 || (size_t)n >= sizeof(program) || strchr(name, '/'))
		return -ENOENT;
	argv[0] = program;
	int r = try_places(program, argv);
	argv[0] = before;
	return r;
}
