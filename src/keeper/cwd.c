#include "keeper/cwd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/agent.h"
#include "keeper/agent_folder.h"
#include "keeper/confine_private.h"
#include "keeper/env.h"
#include "keeper/keeper.h"
#include "policy/paths.h"

int coop_cwd_closed(const struct coop_agent *agent, const char *path, struct coop_err *err)
{
	bool user = agent == agent->keeper->main;

	return coop_err_field(err, COOP_INVALID_INPUT, "cwd",
			      "cwd %.300s cannot be entered by the command: it is %snot seen in "
			      "its sandbox, or closed to whom it runs as%s",
			      path, user ? "" : "not there, ",
			      user ? " (--workspace DIR makes it the workspace)" : "");
}

static int not_there(struct coop_err *err, const char *path, int error)
{
	int r;

	if (error == EMFILE || error == ENFILE) {
		r = coop_err_set(err, COOP_SPAWN_FAILED,
				 "no file descriptor is left for the working directory");
		coop_err_detail(err, "step", "chdir");
	} else {
		r = coop_err_field(err, COOP_INVALID_INPUT, "cwd", "cwd %.300s: %s", path,
				   strerror(error));
	}
	coop_err_detail(err, "errno", coop_err_errno_name(error));
	return r;
}

static int make_path(const struct coop_agent *agent, const char *given, char *ret, size_t size,
		     struct coop_err *err)
{
	char *const *roots = coop_agent_workspace(agent);
	const char *start = roots && *roots ? *roots : coop_env_home();

	if (!given)
		given = start;
	if (!*given)
		return coop_err_field(err, COOP_INVALID_INPUT, "cwd", "cwd must not be empty");
	int n = *given == '/' ? snprintf(ret, size, "%s", given)
			      : snprintf(ret, size, "%s/%s", start, given);
	if (n < 0 || (size_t)n >= size)
		return coop_err_field(err, COOP_INVALID_INPUT, "cwd", "cwd is too long");
	return 0;
}

/* Where the descriptor really is. */
static int resolve(struct coop_cwd *cwd, struct coop_err *err)
{
	char link[64];

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", cwd->fd);
	ssize_t size = readlink(link, cwd->path, sizeof cwd->path - 1);
	if (size < 0) {
		(void)close(cwd->fd);
		cwd->fd = -1;
		return coop_err_field(err, COOP_INVALID_INPUT, "cwd", "cwd cannot be resolved");
	}
	cwd->path[size] = 0;
	return 0;
}

/* Its place in the /tmp that the agent's commands share: the descriptor or -errno. Links that lead out of it are not followed (-EXDEV).
 * False: it has no such place. */
static bool open_in_tmp(const struct coop_agent *agent, const char *path, int *ret_fd)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};

	if (!coop_path_within(path, "/tmp") || coop_grants_in_roots(agent, path))
		return false;
	COOP_AUTO_FREE char *tmp = coop_agent_folder_tmp(agent);
	COOP_AUTO_FD int top = tmp ? open(tmp, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (top < 0)
		return false;
	path += strlen("/tmp");
	*ret_fd = (int)syscall(SYS_openat2, top, *path ? path + 1 : ".", &how, sizeof how);
	if (*ret_fd < 0)
		*ret_fd = -errno;
	return true;
}

int coop_cwd_open(const struct coop_agent *agent, const char *given, struct coop_cwd *ret,
		  struct coop_err *err)
{
	struct coop_path plain;

	*ret = (struct coop_cwd){.fd = -1};
	int r = make_path(agent, given, ret->path, sizeof ret->path, err);
	if (r < 0) {
		*ret->path = 0;
		return r;
	}
	bool known = coop_path_make(&plain, NULL, ret->path);
	int fd = -1, error = 0;
	bool tmp = known && open_in_tmp(agent, plain.text, &fd);
	if (!tmp)
		fd = open(ret->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		error = tmp ? -fd : errno;
	else
		ret->fd = fd;
	if (ret->fd >= 0)
		return resolve(ret, err);
	if (error == EMFILE || error == ENFILE ||
	    (tmp ? error != EXDEV : known && coop_grants_may_read(agent, plain.text)))
		return not_there(err, ret->path, error);
	r = coop_cwd_closed(agent, ret->path, err);
	*ret->path = 0;
	return r;
}
