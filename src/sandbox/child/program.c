#include "sandbox/child/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define CANDIDATE_MAX 4096

/* Lays out `count` pointers to the strings at *text and moves *text behind them. */
static char **point(char **vector, uint32_t count, char **text, const char *end)
{
	for (uint32_t i = 0; i < count; i++) {
		vector[i] = *text;
		char *nul = memchr(*text, 0, (size_t)(end - *text));
		if (!nul)
			return NULL;
		*text = nul + 1;
	}
	vector[count] = NULL;
	return vector + count + 1;
}

int coop_program_unpack(const struct coop_plan *plan, char *text, const char *end,
			struct coop_program *ret)
{
	size_t pointers = (size_t)plan->argc + plan->envc + 2;
	/* One more in front: room for "sh", should the program turn out to have no header. */
	char **vector = mmap(NULL, (pointers + 1) * sizeof(char *), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (vector == MAP_FAILED)
		return -errno;
	ret->argv = vector + 1;
	ret->envp = point(ret->argv, plan->argc, &text, end);
	if (!ret->envp || !point(ret->envp, plan->envc, &text, end))
		return -EPROTO;
	return 0;
}

static const char *search_path(char *const *envp)
{
	for (; *envp; envp++) {
		if (!strncmp(*envp, "PATH=", 5))
			return *envp + 5;
	}
	return DEFAULT_PATH;
}

/* A text file without #! is run by the shell, as every shell and execvp do. */
static void execute(const char *path, const struct coop_program *program)
{
	execve(path, program->argv, program->envp);
	if (errno != ENOEXEC)
		return;
	char **argv = program->argv - 1;
	char shell[] = "/bin/sh";
	char *script = program->argv[0];
	argv[0] = shell;
	argv[1] = (char *)(uintptr_t)path;
	execve(shell, argv, program->envp);
	argv[1] = script;
	errno = ENOEXEC;
}

static void execute_from_path(const struct coop_program *program)
{
	const char *name = program->argv[0], *path = search_path(program->envp);
	size_t name_size = strlen(name);
	char candidate[CANDIDATE_MAX];
	bool denied = false;

	if (name_size >= sizeof candidate) {
		errno = ENAMETOOLONG;
		return;
	}
	for (const char *end; path; path = *end ? end + 1 : NULL) {
		end = strchrnul(path, ':');
		size_t size = (size_t)(end - path);
		if (size + name_size + 2 > sizeof candidate)
			continue;
		memcpy(candidate, path, size);
		if (size)
			candidate[size++] = '/';
		memcpy(candidate + size, name, name_size + 1);
		execute(candidate, program);
		/* A folder that may not be searched says EACCES too: that is no sign of a
		 * program. */
		if (errno == EACCES)
			denied = denied || access(candidate, F_OK) == 0;
		else if (errno != ENOENT && errno != ENOTDIR)
			return;
	}
	errno = denied ? EACCES : ENOENT;
}

void coop_program_execute(const struct coop_program *program)
{
	if (strchr(program->argv[0], '/'))
		execute(program->argv[0], program);
	else
		execute_from_path(program);
}

void coop_program_execute_fd(const struct coop_program *program, int fd)
{
	/* The descriptor closes with it: the program finds nothing open that was not given to
	 * it. */
	(void)syscall(SYS_execveat, fd, "", program->argv, program->envp, AT_EMPTY_PATH);
}
