#include "doors/cli/admin/agent_args.h"

#include <errno.h>
#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/options.h"
#include "doors/cli/place.h"

/* The keeper lives in another folder than the one who typed it. */
static int add_workspace(const struct cli_list *folders, json_t *args, struct coop_error *error)
{
	if (!folders->count)
		return 0;
	json_t *list = json_array();
	(void)json_object_set_new(args, "workspace", list);
	for (size_t i = 0; i < folders->count; i++) {
		const char *typed = folders->items[i];
		json_t *path = cli_place_resolve(typed, CLI_MUST_EXIST, error);
		if (!path) {
			char why[sizeof(error->message)];
			(void)snprintf(why, sizeof(why), "%s", error->message);
			cli_error(error, "invalid_input", "--workspace %.60s: %.420s", typed, why);
			return -EINVAL;
		}
		/* The keeper resolves it itself, and sees what it was called: by a link nobody
		 * means credentials. */
		json_decref(path);
		path = cli_place_resolve(typed, CLI_BY_ITS_WORDS, error);
		if (!path)
			return -EINVAL;
		(void)json_array_append_new(list, path);
	}
	return 0;
}

/* A shell cannot say an empty list by naming nothing, so "" does. */
static void drop_empty(json_t *list)
{
	for (size_t i = json_array_size(list); i-- > 0;)
		if (json_string_length(json_array_get(list, i)) == 0)
			(void)json_array_remove(list, i);
}

int cli_agent_args(const struct cli *cli, const struct cli_agent *agent, json_t *args,
		   struct coop_error *error)
{
	const char *bad;
	if (cli_options_fields(cli->options, agent, args, &bad) < 0) {
		cli_error(error, "invalid_input", "--%s: not valid UTF-8", bad);
		return -EILSEQ;
	}
	drop_empty(json_object_get(json_object_get(args, "policy"), "allowed_commands"));
	int r = cli_sandbox_args(cli, &agent->sandbox, args, error);
	/* Settings are kept as they resolve. */
	(void)json_object_del(json_object_get(args, "sandbox"), "names");
	return r == 0 ? add_workspace(&agent->workspace, args, error) : r;
}
