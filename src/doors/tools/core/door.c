#include "doors/tools/core/door.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/scan.h"
#include "coop.h"
#include "doors/tools/core/fiber.h"

#define NAME_MAX_BYTES 256

bool coop_door_take(struct coop_door *door, int option, const char *value)
{
	switch (option - COOP_DOOR_OPTION_FIRST) {
	case 0:
		door->profile = value;
		return true;
	case 1:
		door->workspace = value;
		return true;
	case 2:
		door->cwd = value;
		return true;
	case 3:
		door->session = value;
		return true;
	case 4:
		door->link_options.agent = value;
		return true;
	case 5:
		door->link_options.private_keeper = true;
		return true;
	case 6:
		door->link_options.ceiling.no_workspace = true;
		return true;
	default:
		return false;
	}
}

/* Of this program's environment what a login would set up anyway, and what the keeper's operator
 * lets in besides. */
static json_t *base_env(const struct coop *coop)
{
	json_t *env = json_object();

	for (char **entry = environ; env && entry && *entry; entry++) {
		const char *value = strchr(*entry, '=');
		char name[NAME_MAX_BYTES];
		size_t length = value ? (size_t)(value - *entry) : 0;
		if (!length || length >= sizeof name)
			continue;
		memcpy(name, *entry, length);
		name[length] = '\0';
		/* A value that is not UTF-8 cannot travel, and nobody asked for it by name. */
		if (coop_inherits(coop, name) && !json_object_get(env, name))
			(void)json_object_set_new(env, name, json_string(value + 1));
	}
	return env;
}

/* A session or a sandbox that cannot be is the fault of who starts this program, and is told now: a
 * model could not mend it. */
static int check_setup(const struct coop_door *door, struct coop_error *error)
{
	struct coop_reply *reply = NULL;
	json_t *args =
		json_pack("{s:[s], s:s*, s:{s:s*, s:s*}}", "argv", "true", "session", door->session,
			  "sandbox", "profile", door->profile, "workspace", door->workspace);
	char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
	int r = text ? coop_call(coop_keeper_link_first(door->link), "check", text, NULL, 0, &reply,
				 error)
		     : -ENOMEM;

	coop_reply_free(reply);
	free(text);
	json_decref(args);
	/* Anything else (a quota) is an affair of each call. */
	struct coop_scan_member field = {.name = "field"};
	bool ours =
		coop_scan_object(error->details, strlen(error->details), &field, 1) == 0 &&
		field.value &&
		(!strncmp(field.value, "\"session\"", 9) || !strncmp(field.value, "\"sandbox", 8));
	return r < 0 && ours ? -EINVAL : 0;
}

int coop_door_open(struct coop_door *door, struct coop_error *error)
{
	int r = uv_loop_init(&door->loop);

	if (r < 0)
		return r;
	door->link_options.ceiling.profile = door->profile;
	door->link_options.ceiling.workspace = door->workspace;
	r = coop_keeper_link_new(&door->loop, &door->link_options, &door->link, error);
	if (r < 0) {
		/* What of the link had been made by then closes in the loop's next turn. */
		(void)uv_run(&door->loop, UV_RUN_DEFAULT);
		(void)uv_loop_close(&door->loop);
		return r;
	}
	door->setup.profile = door->profile;
	door->setup.workspace = door->workspace;
	door->setup.session = door->session;
	door->setup.cwd = door->cwd;
	door->setup.base_env = base_env(coop_keeper_link_first(door->link));
	r = check_setup(door, error);
	if (r < 0)
		coop_door_close(door, 1);
	return r;
}

void coop_door_close(struct coop_door *door, int code)
{
	if (coop_keeper_link_is_opening(door->link)) {
		(void)fflush(NULL);
		_exit(code);
	}
	coop_keeper_link_close(door->link);
	(void)uv_run(&door->loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&door->loop);
	json_decref(door->setup.base_env);
	coop_fiber_trim();
}
