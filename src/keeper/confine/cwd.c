#include "keeper/confine/cwd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/conf/env.h"
#include "keeper/conf/homes.h"
#include "keeper/confine/confine_private.h"
#include "keeper/confine/reach.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_folder.h"
#include "policy/paths.h"
#include "sandbox/layout/path_walk.h"

int coop_cwd_closed(const struct coop_agent *agent, const char *name, struct coop_err *err)
{
	bool user = coop_agent_is_main(agent);

	int r = coop_err_field(err, COOP_INVALID_INPUT, "cwd",
			       "cwd %.300s cannot be entered by the command: it is %snot seen in "
			       "its sandbox, or closed to whom it runs as%s",
			       name, user ? "" : "not there, ",
			       user ? " (--workspace DIR makes it the workspace)" : "");
	coop_err_detail_raw(err, "advised", user ? "true" : "false");
	return r;
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

/* Its place in the /tmp that the agent's commands share: the descriptor or -errno. Links that lead
 * out of it are not followed (-EXDEV). False: it has no such place. */
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

/* Whether somebody whom the keeper does not know gets there: the commands of root's are somebody
 * else. What leads to an agent's roots is in every view, and the home is a private one. */
static bool open_to_all(const struct coop_lookable *seen, const char *path)
{
	struct stat status;

	return seen->leads(seen, path) || !strcmp(path, coop_homes_own()) ||
	       (lstat(path, &status) == 0 && status.st_mode & S_IXOTH);
}

/* Whether the command could enter it as far as its user goes. */
static bool may_enter(const struct coop_keeper *keeper, const struct coop_lookable *seen,
		      const char *place)
{
	char path[COOP_PATH_SIZE];

	if (!coop_host_of(keeper)->root_keeper)
		return access(place, X_OK) == 0;
	for (const char *end = strchr(place + 1, '/'); end; end = strchr(end + 1, '/')) {
		(void)snprintf(path, sizeof path, "%.*s", (int)(end - place), place);
		if (!open_to_all(seen, path))
			return false;
	}
	return open_to_all(seen, place);
}

/* The descriptor; -EXDEV where nothing is said of the reason; else -errno. */
static int open_named(const struct coop_agent *agent, const char *name)
{
	struct coop_reach reach;
	const struct coop_lookable *seen = coop_reach_of(agent, &reach);
	char place[COOP_PATH_SIZE];
	int fd = coop_path_open(seen, name, O_DIRECTORY, place);

	/* What its view shows it may stand in, wherever that is: the command looks there itself. */
	if (fd != -EXDEV || !*place || !may_enter(agent->keeper, seen, place))
		return fd;
	fd = coop_path_open_plain(place, O_DIRECTORY);
	return fd >= 0 || fd == -EMFILE || fd == -ENFILE ? fd : -EXDEV;
}

/* Where it begins without a word of the request. */
static int open_own(const char *name)
{
	int fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int coop_cwd_open(const struct coop_agent *agent, const char *given, struct coop_cwd *ret,
		  struct coop_err *err)
{
	struct coop_path plain;

	*ret = (struct coop_cwd){.fd = -1};
	int r = make_path(agent, given, ret->name, sizeof ret->name, err), fd = -1;
	if (r < 0) {
		*ret->name = 0;
		return r;
	}
	if (!coop_path_make(&plain, NULL, ret->name) || !open_in_tmp(agent, plain.text, &fd))
		fd = given ? open_named(agent, ret->name) : open_own(ret->name);
	if (fd == -EXDEV)
		return coop_cwd_closed(agent, ret->name, err);
	if (fd >= 0) {
		ret->fd = fd;
		return resolve(ret, err);
	}
	(void)snprintf(ret->path, sizeof ret->path, "%s", ret->name);
	return not_there(err, ret->name, -fd);
}
