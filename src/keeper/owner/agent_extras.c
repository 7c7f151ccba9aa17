#include "keeper/owner/agent_extras.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "interface/schema.h"
#include "keeper/conf/env.h"
#include "keeper/conf/env_rules.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_folder.h"

void coop_agent_extras_clear(struct coop_agent_extras *extras)
{
	json_decref(extras->env);
	json_decref(extras->metadata);
	free(extras->folder_in);
	*extras = (struct coop_agent_extras){0};
}

/* The maps are shared, not copied: they are replaced as a whole and never changed. */
int coop_agent_extras_copy(const struct coop_agent_extras *from, struct coop_agent_extras *to)
{
	*to = *from;
	to->env = json_incref(from->env);
	to->metadata = json_incref(from->metadata);
	to->folder_in = from->folder_in ? coop_mem_strdup(from->folder_in) : NULL;
	return from->folder_in && !to->folder_in ? -ENOMEM : 0;
}

/* Names and values together. */
static size_t bytes_of(const json_t *map)
{
	size_t bytes = 0;
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)map, name, value) bytes +=
		strlen(name) + json_string_length(value);
	return bytes;
}

static int check_size(const json_t *map, const char *field, size_t limit, struct coop_err *err)
{
	if (bytes_of(map) <= limit)
		return 0;
	return coop_err_field(err, COOP_TOO_LARGE, field, "%s has at most %zu bytes in all", field,
			      limit);
}

/* By the same rules as the variables of a request: an agent's must not be a way around them. */
static int check_env(const json_t *env, struct coop_err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		int r = coop_env_check("env", name, json_string_value(value), err);
		if (r < 0)
			return r;
	}
	return check_size(env, "env", COOP_AGENT_ENV_BYTES_MAX, err);
}

/* Replaces a map where the arguments name it. An empty one is none. */
static void take_map(const json_t *args, const char *name, json_t **map)
{
	json_t *given = json_object_get(args, name);

	if (!given)
		return;
	json_decref(*map);
	*map = json_object_size(given) ? json_incref(given) : NULL;
}

int coop_agent_extras_read(const json_t *args, struct coop_agent_extras *extras,
			   struct coop_err *err)
{
	const json_t *lifetime = json_object_get(args, "expires_in_ms");
	int r = check_env(coop_arg(args, "env"), err);

	if (r == 0)
		r = check_size(coop_arg(args, "metadata"), "metadata",
			       COOP_AGENT_METADATA_BYTES_MAX, err);
	if (r < 0)
		return r;
	take_map(args, "env", &extras->env);
	take_map(args, "metadata", &extras->metadata);
	if (lifetime)
		extras->expires_at = json_is_integer(lifetime)
					     ? coop_clock_wall_ms() + json_integer_value(lifetime)
					     : 0;
	return 0;
}

/* What a restricted agent's requests may not set, its own variables must not set for them. */
int coop_agent_extras_narrow(const struct coop_agent_settings *settings, const json_t *args,
			     const struct coop_agent *parent, struct coop_err *err)
{
	const char *name;
	json_t *value;
	char field[160];

	if (!coop_arg(args, "env") || (!settings->restricted && !coop_agent_restricted(parent)))
		return 0;
	json_object_foreach(settings->extras.env, name, value)
	{
		if (!coop_env_injects(name))
			continue;
		(void)snprintf(field, sizeof field, "env.%.100s", name);
		return coop_err_field(err, COOP_CAPABILITY_DENIED, field,
				      "%s: this agent may not set variables that make a program "
				      "load other code",
				      field);
	}
	return 0;
}

static void write_map(const json_t *map, struct coop_jsonw *w, const char *name)
{
	const char *key;
	json_t *value;

	coop_jsonw_begin(w, name);
	json_object_foreach((json_t *)(uintptr_t)map, key, value)
		coop_jsonw_string(w, key, json_string_value(value));
	coop_jsonw_end(w);
}

void coop_agent_extras_store(const struct coop_agent_extras *extras, struct coop_jsonw *w)
{
	if (extras->env)
		write_map(extras->env, w, "env");
	if (extras->metadata)
		write_map(extras->metadata, w, "metadata");
	if (extras->expires_at)
		coop_jsonw_int(w, "expires_at", extras->expires_at);
	if (!extras->folder_in)
		return;
	coop_jsonw_begin(w, "folder");
	coop_jsonw_string(w, "in", extras->folder_in);
	coop_jsonw_string(w, "mark", extras->folder_mark);
	coop_jsonw_end(w);
}

/* The time in the database is the moment itself, where a request gives what is left until then. The
 * mark is compared with the key before anything in the folder is touched, so only its length is
 * looked at here. */
int coop_agent_extras_restore(const json_t *json, struct coop_agent_extras *extras,
			      struct coop_err *err)
{
	const json_t *folder = coop_arg(json, "folder");
	const char *in = coop_arg_string(folder, "in", ""),
		   *mark = coop_arg_string(folder, "mark", "");
	int r = coop_agent_extras_read(json, extras, err);

	if (r < 0)
		return r;
	extras->expires_at = coop_arg_int(json, "expires_at", 0);
	if (!folder)
		return 0;
	if (*in != '/' || strlen(mark) != COOP_AGENT_FOLDER_MARK - 1)
		return coop_err_field(err, COOP_INVALID_INPUT, "folder",
				      "folder is not as it is stored");
	memcpy(extras->folder_mark, mark, COOP_AGENT_FOLDER_MARK);
	extras->folder_in = coop_mem_strdup(in);
	return extras->folder_in ? 0 : coop_err_no_memory(err);
}

/* Names of variables only: values may be secrets, and are shown to nobody. */
void coop_agent_extras_write(const struct coop_agent *agent, struct coop_jsonw *w)
{
	const struct coop_agent_extras *extras = &agent->settings.extras;
	const char *name;
	json_t *value;

	coop_jsonw_array(w, "env_names");
	json_object_foreach(extras->env, name, value) coop_jsonw_string(w, NULL, name);
	coop_jsonw_array_end(w);
	write_map(extras->metadata, w, "metadata");
	coop_jsonw_time(w, "expires_at", extras->expires_at);
	coop_jsonw_string(w, "folder", coop_agent_folder(agent));
}
