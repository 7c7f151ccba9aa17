#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/schema.h"
#include "keeper/agent.h"
#include "keeper/agent_folder.h"
#include "keeper/agent_sandbox.h"
#include "keeper/confine_private.h"
#include "keeper/keeper.h"
#include "keeper/process.h"
#include "policy/paths.h"
#include "sandbox/layout_path.h"
#include "sandbox/pathlist.h"

#define PATH_BYTES 4096

/* Where the descriptor really is. */
static char *resolve(int fd)
{
	char link[64], path[PATH_BYTES];

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t size = readlink(link, path, sizeof path - 1);
	if (size < 0)
		return NULL;
	path[size] = 0;
	return coop_mem_strdup(path);
}

/* `type`: O_DIRECTORY, or 0 for plain files, too. */
static int open_grant(const char *field, const char *path, int type, struct coop_grant *ret,
		      struct coop_err *err)
{
	struct stat status;
	COOP_AUTO_FD int fd = open(path, O_PATH | type | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) < 0)
		return coop_err_field(err, COOP_INVALID_INPUT, field, "%s %.300s: %s", field, path,
				      strerror(errno));
	if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
		return coop_err_field(err, COOP_INVALID_INPUT, field,
				      "%s %.300s is neither a folder nor a plain file", field,
				      path);
	char *resolved = resolve(fd);
	if (!resolved)
		return coop_err_no_memory(err);
	*ret = (struct coop_grant){.path = resolved,
				   .fd = COOP_TAKE_FD(fd),
				   .dev = status.st_dev,
				   .ino = status.st_ino,
				   .uid = status.st_uid,
				   .gid = status.st_gid};
	return 0;
}

/* And a folder in a root does not take away what is protected there by a longer name. */
static int keep_protected(struct coop_draft *draft, struct coop_sandbox_policy *policy)
{
	size_t count = coop_pathlist_count(policy->protect);
	char place[COOP_PATH_SIZE];
	int r = 0;

	for (const struct coop_agent *agent = draft->agent; agent; agent = agent->parent) {
		for (char *const *root = agent->settings.workspace; root && *root; root++) {
			for (size_t i = 0; r == 0 && i < count; i++) {
				const char *name = policy->protect[i];
				if (*name == '/' || *name == '~' ||
				    coop_path_join(*root, name, place) < 0)
					continue;
				r = coop_pathlist_add(&policy->protect, COOP_PATHLIST_PROTECTED,
						      place, "sandbox.protect", draft->err);
			}
		}
	}
	return r;
}

/* Devices, processes and the kernel's settings are no files to work on; memory that is shared is. */
static bool is_the_kernels(const char *path)
{
	return coop_path_within(path, "/proc") || coop_path_within(path, "/sys") ||
	       (coop_path_within(path, "/dev") && !coop_path_within(path, "/dev/shm"));
}

static int add_writable(struct coop_draft *draft, const char *field, const char *path,
			struct coop_grants *grants)
{
	struct coop_grant *grant = &grants->writable[grants->writable_count];

	if (grants->writable_count == COOP_GRANTS_MAX)
		return coop_err_field(draft->err, COOP_TOO_LARGE, field,
				      "%s: at most %u writable folders", field, COOP_GRANTS_MAX);
	int r = coop_grants_check_asked(draft->agent, field, path, draft->err);
	if (r == 0)
		r = open_grant(field, path, O_DIRECTORY, grant, draft->err);
	if (r < 0)
		return r;
	grants->writable_count++;
	if (is_the_kernels(grant->path))
		return coop_err_field(draft->err, COOP_INVALID_INPUT, field,
				      "%s %.300s is the kernel's own and cannot be given: name a "
				      "folder for the work",
				      field, grant->path);
	return coop_grants_check_writable(draft, &grants->homes, field, grant->path);
}

static int add_readable(struct coop_draft *draft, const char *field, const char *path,
			struct coop_grants *grants)
{
	struct coop_grant *grant = &grants->readable[grants->readable_count];

	if (grants->readable_count == COOP_GRANTS_MAX)
		return coop_err_field(draft->err, COOP_TOO_LARGE, field, "%s: at most %u", field,
				      COOP_GRANTS_MAX);
	int r = open_grant(field, path, 0, grant, draft->err);
	if (r < 0)
		return r;
	grants->readable_count++;
	return coop_grants_check_ceilings(draft, field, grant->path, false);
}

/* Whether the request itself named the path, and as which of its list. */
static bool asked_for(const struct coop_draft *draft, const char *list, const char *path,
		      char *ret_field, size_t size)
{
	const json_t *given = coop_arg(coop_arg(draft->args, "sandbox"), list);
	struct coop_err ignored;

	for (size_t i = 0; i < json_array_size(given); i++) {
		(void)snprintf(ret_field, size, "sandbox.%s[%zu]", list, i);
		COOP_AUTO_FREE char *plain = coop_pathlist_plain(
			COOP_PATHLIST_PLAIN, json_string_value(json_array_get(given, i)), ret_field,
			&ignored);
		if (plain && !strcmp(plain, path))
			return true;
	}
	(void)snprintf(ret_field, size, "sandbox.%s", list);
	return false;
}

/* All of a list. The operator's own words are for many commands and hosts: what of them is not there is left out. */
static int add_list(struct coop_draft *draft, const char *list, char *const *paths,
		    int (*add)(struct coop_draft *draft, const char *field, const char *path,
			       struct coop_grants *grants),
		    struct coop_grants *grants)
{
	char field[64], expanded[COOP_PATH_SIZE];
	int r = 0;

	for (; r == 0 && paths && *paths; paths++) {
		bool asked = asked_for(draft, list, *paths, field, sizeof field);
		/* Nor are they for an agent that may write nowhere. */
		if (!asked && add == add_writable && !coop_grants_may_write(draft->agent))
			continue;
		if (coop_path_expand(*paths, coop_homes_first(&grants->homes), expanded) < 0)
			r = coop_err_field(draft->err, COOP_INVALID_INPUT, field,
					   "%s %.300s is too long", field, *paths);
		else if (asked || access(expanded, F_OK) == 0 ||
			 (errno != ENOENT && errno != ENOTDIR))
			r = add(draft, field, expanded, grants);
	}
	return r;
}

/* The workspace of an agent that is bound to roots: the one that its working directory lies in, else the first. */
static const char *own_root(const struct coop_draft *draft)
{
	char *const *roots = coop_agent_workspace(draft->agent);
	const char *cwd = draft->process->labels.cwd;

	for (char *const *root = roots; root && *root; root++) {
		if (cwd && coop_path_within(cwd, *root))
			return *root;
	}
	return roots ? *roots : NULL;
}

static int by_length(const void *a, const void *b)
{
	size_t left = strlen(((const struct coop_grant *)a)->path),
	       right = strlen(((const struct coop_grant *)b)->path);

	return left < right ? -1 : left > right;
}

static int open_writable(struct coop_draft *draft, struct coop_confine *confine,
			 struct coop_grants *ret)
{
	struct coop_sandbox_policy *policy = &confine->policy;
	const char *workspace = policy->workspace ? policy->workspace : own_root(draft);
	int r = 0;

	if (policy->profile != COOP_PROFILE_WORKSPACE_WRITE)
		return 0;
	/* One that stands in its settings bounds an agent; it is no grant by itself. */
	if (workspace && !coop_grants_may_write(draft->agent) &&
	    !coop_arg(coop_arg(draft->args, "sandbox"), "workspace")) {
		free(policy->workspace);
		policy->workspace = NULL;
		workspace = NULL;
	}
	if (workspace)
		r = add_writable(draft, "sandbox.workspace", workspace, ret);
	/* From here on it is the folder that was opened, whatever its name leads to later. */
	if (r == 0 && workspace) {
		char *resolved = coop_mem_strdup(ret->writable[0].path);
		free(policy->workspace);
		policy->workspace = resolved;
		r = resolved ? 0 : coop_err_no_memory(draft->err);
	}
	if (r == 0)
		r = add_list(draft, "allow_write", policy->allow_write, add_writable, ret);
	if (r == 0)
		r = keep_protected(draft, policy);
	for (size_t i = 0; r == 0 && i < ret->writable_count; i++)
		coop_homes_yield(&ret->homes, ret->writable[i].path);
	qsort(ret->writable, ret->writable_count, sizeof ret->writable[0], by_length);
	return r;
}

int coop_grants_open(struct coop_draft *draft, struct coop_confine *confine,
		     struct coop_grants *ret)
{
	const struct coop_keeper *keeper = draft->agent->keeper;

	coop_homes_find(draft->args, &keeper->conf.env, draft->agent == keeper->main, &ret->homes);
	int r = open_writable(draft, confine, ret);
	return r < 0 ? r
		     : add_list(draft, "allow_read", confine->policy.allow_read, add_readable, ret);
}

int coop_grants_tmp(struct coop_draft *draft, const struct coop_confine *confine,
		    struct coop_grants *grants)
{
	struct coop_err why = {0};

	if (confine->policy.limits.tmp_bytes)
		return 0;
	COOP_AUTO_FREE char *path = coop_agent_folder_tmp(draft->agent);
	if (!path)
		return errno == ENOMEM ? coop_err_no_memory(draft->err) : 0;
	int r = open_grant("tmp", path, O_DIRECTORY | O_NOFOLLOW, &grants->tmp, &why);
	grants->tmp.shown = true;
	if (r == 0)
		return 0;
	r = coop_err_set(draft->err, COOP_SANDBOX_UNAVAILABLE,
			 "sandbox: files: what this agent has as /tmp cannot be opened: %.300s",
			 why.message);
	coop_err_detail(draft->err, "protection", "files");
	return r;
}

static bool within_any(const struct coop_grant *grants, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++) {
		if (coop_path_within(path, grants[i].path))
			return true;
	}
	return false;
}

/* The request says nothing of it: it begins in its workspace. */
static int move_cwd(struct coop_draft *draft, const char *workspace,
		    const struct coop_grants *grants)
{
	size_t i = 0;

	while (i + 1 < grants->writable_count && strcmp(grants->writable[i].path, workspace) != 0)
		i++;
	char *path = coop_mem_strdup(grants->writable[i].path);
	int fd = fcntl(grants->writable[i].fd, F_DUPFD_CLOEXEC, 3);
	if (!path || fd < 0) {
		int error = errno;
		if (fd >= 0)
			(void)close(fd);
		if (!path)
			return coop_err_no_memory(draft->err);
		free(path);
		return coop_err_field(draft->err, COOP_SPAWN_FAILED, "cwd", "cwd: %s",
				      strerror(error));
	}
	(void)close(draft->cwd_fd);
	draft->cwd_fd = fd;
	free(draft->process->labels.cwd);
	draft->process->labels.cwd = path;
	return 0;
}

/* Where there is a workspace the command works in it, or in what else it may write to. */
static int keep_inside(struct coop_draft *draft, const char *workspace,
		       const struct coop_grants *grants)
{
	bool own = draft->agent == draft->agent->keeper->main;
	const char *cwd = draft->process->labels.cwd;

	if (within_any(grants->writable, grants->writable_count, cwd))
		return 0;
	if (!coop_arg_string(draft->args, "cwd", NULL))
		return move_cwd(draft, workspace, grants);
	return coop_err_field(draft->err, own ? COOP_INVALID_INPUT : COOP_BOUNDARY_ESCAPE, "cwd",
			      "cwd %.300s lies outside the workspace %.300s: name one inside, or "
			      "--profile read-only",
			      cwd, workspace);
}

/* By its name in the view, if it has one. */
static int name_in_tmp(struct coop_draft *draft, const struct coop_confine *confine,
		       const struct coop_grant *tmp)
{
	char **cwd = &draft->process->labels.cwd;
	char name[COOP_PATH_SIZE];

	if (confine->kind != COOP_CONFINE_NAMESPACES)
		return 0;
	(void)snprintf(name, sizeof name, "/tmp%s", *cwd + strlen(tmp->path));
	free(*cwd);
	*cwd = coop_mem_strdup(name);
	return *cwd ? 0 : coop_err_no_memory(draft->err);
}

/* Of a folder of the agent's own all is shown, not only where it stands. */
static const char *to_be_shown(const struct coop_draft *draft)
{
	const char *cwd = draft->process->labels.cwd, *root = own_root(draft);
	const char *data = draft->agent->keeper->data_dir;

	return *data && root && coop_path_within(root, data) && coop_path_within(cwd, root) ? root
											    : cwd;
}

int coop_grants_cwd(struct coop_draft *draft, const struct coop_confine *confine,
		    struct coop_grants *grants)
{
	static const char *const covered[] = {"/tmp", "/run", "/dev"};
	const char *workspace = confine->policy.profile == COOP_PROFILE_WORKSPACE_WRITE
					? confine->policy.workspace
					: NULL;
	if (grants->tmp.path && coop_path_within(draft->process->labels.cwd, grants->tmp.path))
		return name_in_tmp(draft, confine, &grants->tmp);
	int r = workspace ? keep_inside(draft, workspace, grants) : 0;

	if (r < 0)
		return r;
	const char *cwd = draft->process->labels.cwd, *data = draft->agent->keeper->data_dir;
	bool hidden =
		confine->policy.root == COOP_ROOT_MINIMAL ||
		(*data && coop_path_within(cwd, data) && strcmp(cwd, data) != 0) ||
		(draft->agent->keeper->host.root_keeper && coop_homes_hold(&grants->homes, cwd) &&
		 !coop_homes_has(&grants->homes, cwd));

	if (within_any(grants->writable, grants->writable_count, cwd) ||
	    within_any(grants->readable, grants->readable_count, cwd))
		return 0;
	for (size_t i = 0; i < sizeof covered / sizeof covered[0]; i++)
		hidden = hidden ||
			 (coop_path_within(cwd, covered[i]) && strcmp(cwd, covered[i]) != 0);
	if (!hidden || grants->readable_count == COOP_GRANTS_MAX)
		return 0;
	/* The user himself may look where he stands, and an agent in its own roots; to name a folder gives nobody else a right. What the
	 * host's services keep there is nobody's to stand in. */
	bool shown = draft->agent == draft->agent->keeper->main ||
		     coop_agent_workspace(draft->agent) != NULL;
	if (!shown || coop_path_within(cwd, "/run") || coop_path_within(cwd, "/dev"))
		return coop_err_field(
			draft->err, COOP_INVALID_INPUT, "cwd",
			"cwd %.300s is not seen in the sandbox: name another, or make "
			"it the workspace (--workspace DIR)",
			cwd);
	struct coop_grant *grant = &grants->readable[grants->readable_count];
	r = open_grant("cwd", to_be_shown(draft), O_DIRECTORY, grant, draft->err);
	grants->readable_count += r == 0;
	grant->shown = true;
	return r;
}

/* What is on disk and cannot be written is of no use for it either. */
bool coop_grants_show_tmpdir(const struct coop_draft *draft, const struct coop_confine *confine,
			     const struct coop_grants *grants)
{
	const char *given =
		json_string_value(json_object_get(coop_arg(draft->args, "base_env"), "TMPDIR"));
	struct coop_path path;

	if (!given || confine->kind != COOP_CONFINE_NAMESPACES)
		return true;
	if (*given != '/' || !coop_path_make(&path, NULL, given))
		return false;
	return !strcmp(path.text, "/tmp") || !strcmp(path.text, "/dev/shm") ||
	       within_any(grants->writable, grants->writable_count, path.text) ||
	       (confine->start->layout.home == COOP_HOME_COW && access(path.text, F_OK) == 0 &&
		coop_path_within(path.text, coop_homes_first(&grants->homes)));
}

void coop_grants_close(struct coop_grants *grants)
{
	for (size_t i = 0; i < grants->writable_count; i++) {
		free(grants->writable[i].path);
		(void)close(grants->writable[i].fd);
	}
	for (size_t i = 0; i < grants->readable_count; i++) {
		free(grants->readable[i].path);
		(void)close(grants->readable[i].fd);
	}
	if (grants->tmp.path)
		(void)close(grants->tmp.fd);
	free(grants->tmp.path);
}
