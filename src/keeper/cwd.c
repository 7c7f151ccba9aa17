#include "keeper/cwd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "keeper/agent.h"
#include "keeper/env.h"
#include "policy/paths.h"

static int escape(struct coop_err *err)
{
	return coop_err_field(err, COOP_BOUNDARY_ESCAPE, "cwd",
			      "cwd leads out of the workspace of this agent");
}

static bool inside(const struct coop_agent *agent, const char *path)
{
	for (; agent; agent = agent->parent) {
		if (agent->settings.workspace &&
		    !coop_workspace_holds(agent->settings.workspace, path))
			return false;
	}
	return true;
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
	if (size < 0)
		return coop_err_field(err, COOP_INVALID_INPUT, "cwd", "cwd cannot be resolved");
	cwd->path[size] = 0;
	return 0;
}

int coop_cwd_open(const struct coop_agent *agent, const char *given, struct coop_cwd *ret,
		  struct coop_err *err)
{
	bool bound = coop_agent_workspace(agent) != NULL;
	struct coop_path plain;

	*ret = (struct coop_cwd){.fd = -1};
	int r = make_path(agent, given, ret->path, sizeof ret->path, err);
	if (r < 0) {
		*ret->path = 0;
		return r;
	}
	ret->fd = open(ret->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int error = errno;
	/* Of what is outside by its words it is not said whether it is there. */
	if (ret->fd < 0 && bound &&
	    !(coop_path_make(&plain, NULL, ret->path) && inside(agent, plain.text))) {
		*ret->path = 0;
		return escape(err);
	}
	if (ret->fd < 0)
		return not_there(err, ret->path, error);
	r = resolve(ret, err);
	/* A link may lead out, and what was checked is what will be entered. */
	if (r == 0 && bound && !inside(agent, ret->path)) {
		*ret->path = 0;
		r = escape(err);
	}
	if (r < 0) {
		(void)close(ret->fd);
		ret->fd = -1;
	}
	return r;
}
