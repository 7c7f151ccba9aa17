#include "doors/http/runtime/start.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

struct start {
	struct coop_user *user; /* held */
	struct coop_start_handler handler;
	struct coop_error error; /* why it has failed, while its record is asked for */
};

/* Relative paths begin at the workspace, as those of files do. */
static int enter_workspace(json_t *args, const char *workspace)
{
	const char *cwd = json_string_value(json_object_get(args, "cwd"));

	if (!cwd || *cwd == '/' || !*cwd)
		return 0;
	return json_object_set_new(args, "cwd", json_sprintf("%s/%s", workspace, cwd));
}

static int add_sandbox(const struct coop_user *user, json_t *args)
{
	const struct coop_door_ceiling ceiling = coop_user_ceiling(user);

	if (ceiling.workspace && enter_workspace(args, ceiling.workspace) < 0)
		return -1;
	if (!ceiling.profile && !ceiling.workspace)
		return 0;
	return json_object_set_new(args, "sandbox",
				   json_pack("{s:s*,s:s*}", "profile", ceiling.profile, "workspace",
					     ceiling.workspace));
}

static void destroy(struct start *start)
{
	coop_user_unref(start->user);
	free(start);
}

static void fail(struct start *start, const struct coop_error *error, const json_t *record)
{
	start->handler.failed(start->handler.context, error, record);
	destroy(start);
}

static void on_record(void *user, uint64_t request, int status, const char *json,
		      const struct coop_error *error)
{
	struct start *start = user;
	json_t *result = status == 0 ? json_loads(json, 0, NULL) : NULL;

	fail(start, &start->error, json_object_get(result, "process"));
	json_decref(result);
}

/* The keeper has refused the start, or it has failed: it may have a record of that. */
static void look_for_record(struct start *start, const struct coop_error *error)
{
	const struct coop_handler handler = {.done = on_record, .user = start};
	json_t *details = json_loads(error->details, 0, NULL);
	const char *id = json_string_value(json_object_get(details, "id"));
	const struct coop_call *call = NULL;

	start->error = *error;
	if (id)
		call = coop_user_call(start->user, "status", json_pack("{s:s}", "id", id), NULL, 0,
				      &handler);
	json_decref(details);
	if (!call)
		fail(start, &start->error, NULL);
}

static void on_spawned(void *user, uint64_t request, int status, const char *json,
		       const struct coop_error *error)
{
	struct start *start = user;

	if (status < 0) {
		look_for_record(start, error);
		return;
	}
	json_t *result = json_loads(json, 0, NULL);
	start->handler.started(start->handler.context, json_object_get(result, "process"),
			       json_object_get(result, "hold"));
	destroy(start);
	json_decref(result);
}

int coop_start(struct coop_user *user, json_t *args, const struct coop_start_handler *handler)
{
	struct start *start = coop_mem_zalloc(sizeof *start);
	const struct coop_handler done = {.done = on_spawned, .user = start};

	if (!start || add_sandbox(user, args) < 0) {
		free(start);
		return -ENOMEM;
	}
	start->user = coop_user_ref(user);
	start->handler = *handler;
	if (coop_user_call(user, "spawn", json_incref(args), NULL, 0, &done))
		return 0;
	destroy(start);
	return -ENOMEM;
}
