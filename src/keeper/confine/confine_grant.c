#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/homes.h"
#include "keeper/confine/confine_private.h"
#include "keeper/confine/cwd.h"
#include "keeper/confine/reach.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_folder.h"
#include "keeper/owner/agent_sandbox.h"
#include "keeper/process/process.h"
#include "policy/paths.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/layout/path_walk.h"
#include "sandbox/policy/pathlist.h"

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

/* `type`: O_DIRECTORY, or 0 for plain files, too. -EXDEV where it leads out of what may be
 * looked at: then the refusal is the caller's. */
static int open_grant(const char *field, const char *path, const struct coop_lookable *seen,
		      int type, struct coop_grant *ret, struct coop_err *err)
{
	char place[COOP_PATH_SIZE];
	struct stat status;
	COOP_AUTO_FD int fd = coop_path_open(seen, path, type, place);

	if (fd == -EXDEV && seen)
		return -EXDEV;
	int error = fd < 0 ? -fd : fstat(fd, &status) < 0 ? errno : 0;
	if (error)
		return coop_err_field(err, COOP_INVALID_INPUT, field, "%s %.300s: %s", field, path,
				      strerror(error));
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

/* Whose words a path is. */
enum word { ASKED, OPERATORS, SETTINGS };

static void close_grant(struct coop_grant *grant)
{
	free(grant->path);
	(void)close(grant->fd);
}

/* A door looked at the name before: a link that came since is not what was meant. */
static int check_fixed(struct coop_draft *draft, const struct coop_grants *grants,
		       const char *field, const char *path, const struct coop_grant *grant)
{
	if (!grants->fixed || !strcmp(path, grant->path))
		return 0;
	return coop_err_field(draft->err, COOP_INVALID_INPUT, field,
			      "%s %.300s has a link on the way, and leads to %.300s: it was "
			      "replaced since it was looked at",
			      field, path, grant->path);
}

/* What can be read, and is missing outside of the roots, is outside first of all. */
static int refuse_missing(const struct coop_draft *draft, const struct coop_grants *grants,
			  const char *field, const char *path, int r)
{
	char place[COOP_PATH_SIZE];

	if (grants->seen && (coop_path_walk(grants->seen, path, place) == -EXDEV || !*place ||
			     !coop_grants_in_roots(draft->agent, place)))
		return coop_grants_outside(draft, field, path);
	return r;
}

static int add_writable(struct coop_draft *draft, const char *field, const char *path,
			enum word word, struct coop_grants *grants)
{
	struct coop_grant *grant = &grants->writable[grants->writable_count];

	/* What is not asked for is not for an agent that may write nowhere. */
	if (word != ASKED && !coop_grants_may_write(draft->agent))
		return 0;

	if (grants->writable_count == COOP_GRANTS_MAX)
		return coop_err_field(draft->err, COOP_TOO_LARGE, field,
				      "%s: at most %u writable folders", field, COOP_GRANTS_MAX);
	int r = coop_grants_check_asked(draft->agent, field, path, draft->err);
	if (r < 0)
		return r;
	r = open_grant(field, path, grants->seen, O_DIRECTORY, grant, draft->err);
	/* What is not in its roots is refused before anything else is said of it. Nobody asked
	 * for what settings alone name. */
	if (r == 0 && grants->seen && !coop_grants_in_roots(draft->agent, grant->path)) {
		close_grant(grant);
		r = -EXDEV;
	}
	if (r == -EXDEV)
		return word == SETTINGS ? 0 : coop_grants_outside(draft, field, path);
	if (r < 0)
		return refuse_missing(draft, grants, field, path, r);
	grants->writable_count++;
	r = check_fixed(draft, grants, field, path, grant);
	if (r < 0)
		return r;
	if (coop_grants_kernels(grant->path, grant->fd, true))
		return coop_err_field(draft->err, COOP_INVALID_INPUT, field,
				      "%s %.300s is the kernel's own and cannot be given: name a "
				      "folder for the work",
				      field, grant->path);
	return coop_grants_check_writable(draft, &grants->homes, field, grant->path, path);
}

/* What only its settings name is left out where it may not be read: nobody asked for it. */
static int add_readable(struct coop_draft *draft, const char *field, const char *path,
			enum word word, struct coop_grants *grants)
{
	struct coop_grant *grant = &grants->readable[grants->readable_count];

	if (grants->readable_count == COOP_GRANTS_MAX)
		return coop_err_field(draft->err, COOP_TOO_LARGE, field, "%s: at most %u", field,
				      COOP_GRANTS_MAX);
	int r = open_grant(field, path, word == OPERATORS ? NULL : grants->seen, 0, grant,
			   draft->err);
	/* Of what it could not read anyway it is not said whether it is there. */
	if (r == -EXDEV)
		r = coop_grants_unreadable(draft, field, path);
	if (r < 0)
		return word == SETTINGS ? 0 : r;
	r = check_fixed(draft, grants, field, path, grant);
	if (r == 0)
		r = coop_grants_check_readable(draft, &grants->homes, field, grant, path,
					       word == OPERATORS);
	grant->shown = coop_grants_own_folder(draft->agent, grant->path);
	if (r == 0)
		grants->readable_count++;
	else
		close_grant(grant);
	return word == SETTINGS ? 0 : r;
}

/* Whether text, made plain, is that path. */
static bool means(const char *text, const char *field, const char *path)
{
	struct coop_err ignored;
	COOP_AUTO_FREE char *plain =
		text ? coop_pathlist_plain(COOP_PATHLIST_PLAIN, text, field, &ignored) : NULL;

	return plain && !strcmp(plain, path);
}

static bool operator_lists(const struct coop_profiles *profiles, bool writes, const char *path)
{
	const struct coop_sandbox_policy *policy = &profiles->defaults;

	for (size_t i = 0; i <= profiles->own_count; policy = &profiles->own[i++]) {
		char *const *list = writes ? policy->allow_write : policy->allow_read;
		for (; list && *list; list++) {
			if (!strcmp(*list, path))
				return true;
		}
	}
	return false;
}

/* Who named the path, and in the request as which of its list. */
static enum word asked_for(const struct coop_draft *draft, const char *list, const char *path,
			   char *ret_field, size_t size)
{
	const json_t *sandbox = coop_arg(draft->args, "sandbox"), *given = coop_arg(sandbox, list);
	bool writes = !strcmp(list, "allow_write");

	for (size_t i = 0; i < json_array_size(given); i++) {
		(void)snprintf(ret_field, size, "sandbox.%s[%zu]", list, i);
		if (means(json_string_value(json_array_get(given, i)), ret_field, path))
			return ASKED;
	}
	/* A workspace that is only read is in the list of what is. */
	(void)snprintf(ret_field, size, "sandbox.workspace");
	if (!writes && means(json_string_value(coop_arg(sandbox, "workspace")), ret_field, path))
		return ASKED;
	(void)snprintf(ret_field, size, "sandbox.%s", list);
	return operator_lists(&coop_conf_of(draft->agent->keeper)->profiles, writes, path)
		       ? OPERATORS
		       : SETTINGS;
}

/* What is out of reach goes on, to be treated as that. */
static bool is_there(const struct coop_grants *grants, enum word word, const char *path)
{
	char place[COOP_PATH_SIZE];

	if (grants->seen && word == SETTINGS) {
		int r = coop_path_walk(grants->seen, path, place);
		return r != -ENOENT && r != -ENOTDIR;
	}
	return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* All of a list. The operator's own words are for many commands and hosts: what of them is not
 * there is left out. */
static int add_list(struct coop_draft *draft, const char *list, char *const *paths,
		    int (*add)(struct coop_draft *draft, const char *field, const char *path,
			       enum word word, struct coop_grants *grants),
		    struct coop_grants *grants)
{
	char field[64], expanded[COOP_PATH_SIZE];
	int r = 0;

	for (; r == 0 && paths && *paths; paths++) {
		enum word word = asked_for(draft, list, *paths, field, sizeof field);
		grants->fixed = word == ASKED && **paths == '/' && coop_grants_names(draft);
		if (coop_path_expand(*paths, coop_homes_first(&grants->homes), expanded) < 0)
			r = coop_err_field(draft->err, COOP_INVALID_INPUT, field,
					   "%s %.300s is too long", field, *paths);
		else if (word == ASKED || is_there(grants, word, expanded))
			r = add(draft, field, expanded, word, grants);
	}
	return r;
}

/* The workspace of an agent that is bound to roots: the one that its working directory lies in,
 * else the first. Roots that a ceiling does not let are none. */
static const char *own_root(const struct coop_draft *draft)
{
	char *const *roots = coop_agent_workspace(draft->agent);
	const char *cwd = draft->process->labels.cwd, *first = NULL;

	for (char *const *root = roots; root && *root; root++) {
		if (!coop_grants_let(draft, *root, true))
			continue;
		if (cwd && coop_path_within(cwd, *root))
			return *root;
		first = first ? first : *root;
	}
	return first;
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
	ret->fixed =
		coop_grants_names(draft) && coop_arg(coop_arg(draft->args, "sandbox"), "workspace");
	if (workspace)
		r = add_writable(draft, "sandbox.workspace", workspace, ASKED, ret);
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
		     const struct coop_lookable *seen, struct coop_grants *ret)
{
	const struct coop_keeper *keeper = draft->agent->keeper;

	ret->seen = seen;
	coop_homes_find(draft->args, &coop_conf_of(keeper)->env, coop_agent_is_main(draft->agent),
			seen, &ret->homes);
	ret->homes.memory = &coop_host_of(draft->agent->keeper)->credentials;
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
	int r = open_grant("tmp", path, NULL, O_DIRECTORY | O_NOFOLLOW, &grants->tmp, &why);
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

/* By its name in the view, if it has one there. */
static int name_in_tmp(struct coop_draft *draft, const struct coop_confine *confine,
		       const char *tmp)
{
	char **cwd = &draft->process->labels.cwd;
	char name[COOP_PATH_SIZE];

	if (confine->kind != COOP_CONFINE_NAMESPACES)
		return 0;
	(void)snprintf(name, sizeof name, "/tmp%s", *cwd + strlen(tmp));
	free(*cwd);
	*cwd = coop_mem_strdup(name);
	return *cwd ? 0 : coop_err_no_memory(draft->err);
}

/* Of a folder of the agent's own all is shown, not only where it stands. */
static const char *to_be_shown(const struct coop_draft *draft)
{
	const char *cwd = draft->process->labels.cwd, *root = own_root(draft);
	const char *data = coop_place_of(draft->agent->keeper)->data_dir;

	return *data && root && coop_path_within(root, data) && coop_path_within(cwd, root) ? root
											    : cwd;
}

/* Whether the view would have nothing of the host's there. */
static bool is_hidden(const struct coop_draft *draft, const struct coop_confine *confine,
		      const struct coop_grants *grants)
{
	static const char *const covered[] = {"/tmp", "/run", "/dev"};
	const struct coop_keeper *keeper = draft->agent->keeper;
	const char *cwd = draft->process->labels.cwd, *data = coop_place_of(keeper)->data_dir;

	for (size_t i = 0; i < sizeof covered / sizeof covered[0]; i++) {
		if (coop_path_within(cwd, covered[i]) && strcmp(cwd, covered[i]) != 0)
			return true;
	}
	return confine->policy.root == COOP_ROOT_MINIMAL ||
	       (*data && coop_path_within(cwd, data) && strcmp(cwd, data) != 0) ||
	       (coop_host_of(keeper)->root_keeper && coop_homes_hold(&grants->homes, cwd) &&
		!coop_homes_has(&grants->homes, cwd));
}

/* Somebody without a workspace may look where he stands, as far as he may read there at all: the
 * user himself, and an agent in what is its own. What is not to be shown is left to the view, which
 * has nothing there to be entered. */
static int show_cwd(struct coop_draft *draft, const struct coop_confine *confine,
		    struct coop_grants *grants)
{
	struct coop_grant *grant = &grants->readable[grants->readable_count];
	struct coop_err why = {0}, *err = draft->err;
	const char *name = coop_arg_string(draft->args, "cwd", NULL);

	if (!is_hidden(draft, confine, grants) || grants->readable_count == COOP_GRANTS_MAX)
		return 0;
	int r = open_grant("cwd", to_be_shown(draft), NULL, O_DIRECTORY, grant, err);
	if (r < 0)
		return r;
	/* Where it stands without a word of the request it is by its own name. */
	if (!name || *name != '/')
		name = grant->path;
	draft->err = &why;
	bool shown =
		coop_grants_may_read(draft->agent, grant->path) &&
		coop_grants_check_readable(draft, &grants->homes, "cwd", grant, name, false) == 0;
	draft->err = err;
	if (shown) {
		grant->shown = true;
		grants->readable_count++;
	} else {
		close_grant(grant);
	}
	return 0;
}

int coop_grants_cwd(struct coop_draft *draft, const struct coop_confine *confine,
		    struct coop_grants *grants)
{
	const struct coop_keeper *keeper = draft->agent->keeper;
	const char *workspace = confine->policy.profile == COOP_PROFILE_WORKSPACE_WRITE
					? confine->policy.workspace
					: NULL;
	const char *cwd = draft->process->labels.cwd;
	COOP_AUTO_FREE char *tmp = coop_agent_folder_tmp(draft->agent);

	if (!tmp && errno == ENOMEM)
		return coop_err_no_memory(draft->err);
	if (tmp && coop_path_within(cwd, tmp))
		return name_in_tmp(draft, confine, tmp);
	if (within_any(grants->writable, grants->writable_count, cwd) ||
	    within_any(grants->readable, grants->readable_count, cwd))
		return 0;
	if (workspace && !coop_arg_string(draft->args, "cwd", NULL))
		return move_cwd(draft, workspace, grants);
	/* Without a view it is entered as we have opened it, and we may be able to open more than
	 * the command. */
	if (confine->kind != COOP_CONFINE_NAMESPACES && coop_host_of(keeper)->root_keeper &&
	    !coop_grants_may_read(draft->agent, cwd))
		return coop_cwd_closed(draft->agent, draft->cwd_name, draft->err);
	return workspace ? 0 : show_cwd(draft, confine, grants);
}

/* What is on disk and cannot be written is of no use for it either. */
bool coop_grants_show_tmpdir(const struct coop_draft *draft, const struct coop_confine *confine,
			     const struct coop_grants *grants)
{
	const char *given =
		json_string_value(json_object_get(coop_arg(draft->args, "base_env"), "TMPDIR"));
	struct coop_path path;
	char place[COOP_PATH_SIZE];

	if (!given || confine->kind != COOP_CONFINE_NAMESPACES)
		return true;
	if (*given != '/' || !coop_path_make(&path, NULL, given))
		return false;
	return !strcmp(path.text, "/tmp") || !strcmp(path.text, "/dev/shm") ||
	       within_any(grants->writable, grants->writable_count, path.text) ||
	       (confine->start->layout.home == COOP_HOME_COW &&
		coop_path_within(path.text, coop_homes_first(&grants->homes)) &&
		(grants->seen ? coop_path_walk(grants->seen, path.text, place) == 0
			      : access(path.text, F_OK) == 0));
}

void coop_grants_close(struct coop_grants *grants)
{
	for (size_t i = 0; i < grants->writable_count; i++)
		close_grant(&grants->writable[i]);
	for (size_t i = 0; i < grants->readable_count; i++)
		close_grant(&grants->readable[i]);
	if (grants->tmp.path)
		(void)close(grants->tmp.fd);
	free(grants->tmp.path);
}
