#include "keeper/owner/agent_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "interface/fields.h"
#include "interface/schema.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_sandbox.h"
#include "policy/paths.h"
#include "policy/policy.h"
#include "sandbox/layout/path_walk.h"

#define SOURCE_MAX 96u

void coop_agent_settings_init(struct coop_agent_settings *settings)
{
	*settings = (struct coop_agent_settings){
		.max_running = -1, .max_buffer_bytes = -1, .max_finished = -1};
	coop_sandbox_policy_init(&settings->sandbox);
}

static void free_list(char **list)
{
	for (char **item = list; item && *item; item++)
		free(*item);
	free(list);
}

void coop_agent_settings_clear(struct coop_agent_settings *settings)
{
	free_list(settings->workspace);
	coop_policy_free(settings->policy);
	coop_sandbox_policy_clear(&settings->sandbox);
	coop_agent_extras_clear(&settings->extras);
	coop_agent_settings_init(settings);
}

/* Both are resolved by now: this compares names, and follows no links. */
bool coop_workspace_holds(char *const *roots, const char *path)
{
	for (char *const *root = roots; root && *root; root++) {
		if (coop_path_within(path, *root))
			return true;
	}
	return false;
}

/* A root is kept as it resolves now: what a link points to later does not move it. */
static char *resolve_root(const char *path, const struct coop_lookable *seen)
{
	char link[64], resolved[4096];
	COOP_AUTO_FD int fd = coop_path_open(seen, path, O_DIRECTORY, resolved);

	errno = fd < 0 ? -fd : 0;
	if (fd < 0)
		return NULL;
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t size = readlink(link, resolved, sizeof resolved - 1);
	if (size < 0)
		return NULL;
	resolved[size] = 0;
	errno = ENOMEM;
	return coop_mem_strdup(resolved);
}

static int not_inside(const char *name, struct coop_err *err)
{
	return coop_err_field(err, COOP_INVALID_INPUT, "workspace",
			      "workspace %.300s is not inside the parent's", name);
}

static int read_workspace(const json_t *roots, bool resolved, const struct coop_lookable *seen,
			  char ***ret, struct coop_err *err)
{
	size_t count = json_array_size(roots);
	char **list = coop_mem_zalloc((count + 1) * sizeof *list);
	char field[32];

	if (!list)
		return coop_err_no_memory(err);
	for (size_t i = 0; i < count; i++) {
		const char *path = json_string_value(json_array_get(roots, i));
		(void)snprintf(field, sizeof field, "workspace[%zu]", i);
		if (path && *path == '/' &&
		    (list[i] = resolved ? coop_mem_strdup(path) : resolve_root(path, seen)))
			continue;
		int error = errno;
		free_list(list);
		if (!path || *path != '/')
			return coop_err_field(err, COOP_INVALID_INPUT, field,
					      "%s must be an absolute path", field);
		if (seen && error == EXDEV)
			return not_inside(path, err);
		return coop_err_field(err, COOP_INVALID_INPUT, field, "%s %.300s: %s", field, path,
				      strerror(error));
	}
	*ret = list;
	return 0;
}

/* What explanations call the rules of an agent. */
static void name_source(const char *path, char ret[SOURCE_MAX])
{
	(void)snprintf(ret, SOURCE_MAX, "agent %.80s", path);
}

/* A change of settings is made on a copy: it may be refused, or fail on the disk, after half of it
 * was read. The policy has no function that copies; it is written and read, which nobody waits
 * for. */
static int copy(const struct coop_agent_settings *from, const char *path,
		struct coop_agent_settings *to, struct coop_err *err)
{
	size_t count = 0;
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};
	char source[SOURCE_MAX];
	int r = 0;

	name_source(path, source);
	*to = *from;
	to->workspace = NULL;
	to->policy = NULL;
	coop_sandbox_policy_init(&to->sandbox);
	if (coop_agent_extras_copy(&from->extras, &to->extras) < 0)
		return coop_err_no_memory(err);
	while (from->workspace && from->workspace[count])
		count++;
	if (from->workspace && !(to->workspace = coop_mem_zalloc((count + 1) * sizeof(char *))))
		return coop_err_no_memory(err);
	for (size_t i = 0; i < count; i++) {
		if (!(to->workspace[i] = coop_mem_strdup(from->workspace[i])))
			return coop_err_no_memory(err);
	}
	r = coop_sandbox_policy_copy(&from->sandbox, &to->sandbox, err);
	if (r < 0 || !from->policy)
		return r;
	coop_policy_write(from->policy, &w, NULL);
	json_t *json = w.failed ? NULL
				: json_loadb((const char *)coop_buf_front(&text),
					     coop_buf_size(&text), 0, NULL);
	r = json ? coop_policy_from_json(json, source, &to->policy, err) : coop_err_no_memory(err);
	json_decref(json);
	coop_buf_clear(&text);
	return r;
}

/* -1 where null takes it away; as it was where absent. */
static void read_number(const json_t *args, const char *name, int64_t *value)
{
	const json_t *given = json_object_get(args, name);

	if (given)
		*value = json_is_integer(given) ? json_integer_value(given) : -1;
}

/* Null is no, absent is as it was. */
static void read_flag(const json_t *args, const char *name, bool *value)
{
	const json_t *given = json_object_get(args, name);

	if (given)
		*value = json_is_true(given);
}

static int read_lists(const json_t *args, const char *path, bool resolved,
		      const struct coop_lookable *seen, struct coop_agent_settings *settings,
		      struct coop_err *err)
{
	char source[SOURCE_MAX];
	int r = 0;

	if (json_object_get(args, "workspace") && settings->extras.folder_in)
		return coop_err_field(err, COOP_INVALID_INPUT, "workspace",
				      "workspace is the folder of this agent's own, and stays");
	if (json_object_get(args, "workspace")) {
		free_list(settings->workspace);
		settings->workspace = NULL;
	}
	if (coop_arg(args, "workspace"))
		r = read_workspace(coop_arg(args, "workspace"), resolved, seen,
				   &settings->workspace, err);
	if (r == 0 && json_object_get(args, "policy")) {
		coop_policy_free(settings->policy);
		settings->policy = NULL;
	}
	name_source(path, source);
	if (r == 0 && coop_arg(args, "policy"))
		r = coop_policy_from_json(coop_arg(args, "policy"), source, &settings->policy, err);
	return r;
}

/* `resolved`: what was stored by an earlier keeper. Its paths were resolved when they were given,
 * and must not be resolved again, as links may lead elsewhere by now. */
static int read_settings(const json_t *args, const struct coop_agent_settings *base,
			 const char *path, const struct coop_profiles *profiles, bool resolved,
			 const struct coop_lookable *seen, struct coop_agent_settings *ret,
			 struct coop_err *err)
{
	struct coop_agent_settings settings;
	int r = 0;

	coop_agent_settings_init(&settings);
	if (base)
		r = copy(base, path, &settings, err);
	read_number(args, "max_running", &settings.max_running);
	read_number(args, "max_buffer_bytes", &settings.max_buffer_bytes);
	read_number(args, "max_finished", &settings.max_finished);
	read_flag(args, "persistent", &settings.persistent);
	read_flag(args, "restricted", &settings.restricted);
	if (r == 0)
		r = read_lists(args, path, resolved, seen, &settings, err);
	if (r == 0)
		r = coop_agent_sandbox_read(args, profiles, resolved, seen, &settings.sandbox, err);
	if (r == 0)
		r = resolved ? coop_agent_extras_restore(args, &settings.extras, err)
			     : coop_agent_extras_read(args, &settings.extras, err);
	if (r < 0) {
		coop_agent_settings_clear(&settings);
		return r;
	}
	*ret = settings;
	return 0;
}

int coop_agent_settings_read(const json_t *args, const struct coop_agent_settings *base,
			     const char *path, const struct coop_profiles *profiles,
			     const struct coop_lookable *seen, struct coop_agent_settings *ret,
			     struct coop_err *err)
{
	return read_settings(args, base, path, profiles, false, seen, ret, err);
}

/* Checked by a table of its own: whoever could write to the database could have written
 * anything. */
int coop_agent_settings_restore(const json_t *json, const char *path,
				struct coop_agent_settings *ret, struct coop_err *err)
{
	int r = coop_schema_check(coop_fields_agent_stored, json, err);

	return r < 0 ? r : read_settings(json, NULL, path, NULL, true, NULL, ret, err);
}

static int too_wide(const char *field, int64_t limit, struct coop_err *err)
{
	int r = coop_err_field(err, COOP_INVALID_INPUT, field,
			       "%s cannot be more than the parent has, %lld", field,
			       (long long)limit);

	coop_err_detail_int(err, "maximum", limit);
	return r;
}

/* Above a parent that is bound to roots, each root must lie in those of every level. */
static int narrow_workspace(char *const *roots, const struct coop_agent *parent,
			    struct coop_err *err)
{
	for (const struct coop_agent *level = parent; level; level = level->parent) {
		for (char *const *root = roots; level->settings.workspace && root && *root;
		     root++) {
			if (!coop_workspace_holds(level->settings.workspace, *root))
				return not_inside(*root, err);
		}
		if (level->settings.extras.folder_in)
			break; /* what is above does not bind it */
	}
	return 0;
}

/* Only what the arguments name is compared: a limit that was fine when it was given must not keep
 * its owner from changing another one after a parent's has become smaller. */
int coop_agent_settings_narrow(const struct coop_agent_settings *settings, const json_t *args,
			       const struct coop_agent *parent, struct coop_err *err)
{
	int64_t running = coop_agent_effective_running(parent),
		buffer = coop_agent_effective_buffer(parent),
		finished = coop_agent_max_finished(parent);

	if (coop_arg(args, "max_running") && settings->max_running > running)
		return too_wide("max_running", running, err);
	if (coop_arg(args, "max_buffer_bytes") && settings->max_buffer_bytes > buffer)
		return too_wide("max_buffer_bytes", buffer, err);
	if (coop_arg(args, "max_finished") && settings->max_finished > finished)
		return too_wide("max_finished", finished, err);
	if (coop_arg_bool(args, "persistent", false) && !coop_agent_may_persist(parent))
		return coop_err_field(err, COOP_INVALID_INPUT, "persistent",
				      "persistent cannot be granted: the parent has no such grant");
	if (json_is_false(json_object_get(args, "restricted")) && coop_agent_restricted(parent))
		return coop_err_field(err, COOP_INVALID_INPUT, "restricted",
				      "restricted cannot be taken away: the parent is restricted");
	int r = coop_agent_sandbox_narrow(&settings->sandbox, args, parent, err);
	if (r == 0)
		r = coop_agent_extras_narrow(settings, args, parent, err);
	return r == 0 && coop_arg(args, "workspace")
		       ? narrow_workspace(settings->workspace, parent, err)
		       : r;
}

/* Not set is -1 inside, as 0 is a limit. */
static void write_number(struct coop_jsonw *w, const char *name, int64_t value)
{
	if (value < 0)
		coop_jsonw_null(w, name);
	else
		coop_jsonw_int(w, name, value);
}

void coop_workspace_write(char *const *roots, struct coop_jsonw *w, const char *name)
{
	if (!roots) {
		coop_jsonw_null(w, name);
		return;
	}
	coop_jsonw_array(w, name);
	for (; *roots; roots++)
		coop_jsonw_string(w, NULL, *roots);
	coop_jsonw_array_end(w);
}

static void write_members(const struct coop_agent_settings *settings, char *const *roots,
			  struct coop_jsonw *w)
{
	write_number(w, "max_running", settings->max_running);
	write_number(w, "max_buffer_bytes", settings->max_buffer_bytes);
	write_number(w, "max_finished", settings->max_finished);
	coop_jsonw_bool(w, "persistent", settings->persistent);
	coop_jsonw_bool(w, "restricted", settings->restricted);
	coop_workspace_write(roots, w, "workspace");
	if (settings->policy)
		coop_policy_write(settings->policy, w, "policy");
	else
		coop_jsonw_null(w, "policy");
	coop_sandbox_policy_write(&settings->sandbox, w, "sandbox");
	coop_sandbox_limits_write(&settings->sandbox.limits, w, "limits");
}

void coop_agent_settings_write(const struct coop_agent_settings *settings, struct coop_jsonw *w,
			       const char *name)
{
	coop_jsonw_begin(w, name);
	write_members(settings, settings->workspace, w);
	coop_jsonw_end(w);
}

void coop_agent_settings_store(const struct coop_agent_settings *settings, struct coop_jsonw *w)
{
	coop_jsonw_begin(w, NULL);
	/* The root of an agent with a folder of its own follows from the folder's mark; stored
	 * twice, the two could differ. */
	write_members(settings, settings->extras.folder_in ? NULL : settings->workspace, w);
	coop_agent_extras_store(&settings->extras, w);
	coop_jsonw_end(w);
}
