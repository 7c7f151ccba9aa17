#include "doors/cli/door.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doors/cli/cli.h"
#include "doors/cli/place.h"
#include "doors/cli/record.h"
#include "doors/cli/sibling.h"
#include "doors/cli/token_file.h"
#include "doors/cli/workspace.h"

#define WORDS_MAX 64

struct words {
	char *items[WORDS_MAX + 2]; /* the program's name, and NULL at the end */
	size_t count;
};

static void add(struct words *words, const char *option, const char *value)
{
	if (!value || words->count + 2 > WORDS_MAX)
		return;
	words->items[words->count++] = (char *)option;
	words->items[words->count++] = (char *)value;
}

/* One that is not there is made, bound to the folder that this call would work in. */
static int ensure_agent(struct cli *cli, const struct cli_door *door, const json_t *args,
			struct coop_error *error)
{
	json_t *shown = NULL;
	int r = cli_call(cli, "agent_show", json_pack("{s:s}", "agent", door->agent), &shown,
			 error);
	json_decref(shown);
	if (r == 0 || strcmp(error->code, "invalid_input") != 0)
		return r;
	const char *folder = cli_text(json_object_get(args, "sandbox"), "workspace");
	json_t *request =
		*folder ? json_pack("{s:s, s:[s]}", "agent", door->agent, "workspace", folder)
			: json_pack("{s:s}", "agent", door->agent);
	json_t *made = NULL;
	r = cli_call(cli, "agent_add", request, &made, error);
	json_decref(made);
	/* Another one was faster: that is as good. */
	return r < 0 && strcmp(error->code, "exists") == 0 ? 0 : r;
}

/* {"sandbox": {"workspace", "profile"}, "cwd"} as coop run would have it here. */
static json_t *find_place(struct cli *cli, const struct cli_door *door, struct coop_error *error)
{
	json_t *args = json_object();
	(void)json_object_set_new(args, "sandbox", json_object());
	if (cli_sandbox_args(cli, &door->sandbox, args, error) < 0) {
		json_decref(args);
		return NULL;
	}
	if (cli_place_cwd(NULL, args, error) < 0) {
		json_decref(args);
		return NULL;
	}
	if (!door->no_workspace)
		cli_workspace_add(cli, &door->sandbox, NULL, NULL, args);
	return args;
}

/* A folder that was named is looked at by the keeper before anything is served from it. */
static int check_place(struct cli *cli, const struct cli_door *door, const json_t *args,
		       struct coop_error *error)
{
	const char *folder = cli_text(json_object_get(args, "sandbox"), "workspace");
	json_t *answer = NULL;
	if (!door->sandbox.workspace || door->private_keeper)
		return 0;
	const int r = cli_call(cli, "check",
			       json_pack("{s:[s], s:s, s:O}", "argv", "true", "cwd",
					 *folder == '/' ? folder : "/", "sandbox",
					 json_object_get(args, "sandbox")),
			       &answer, error);
	json_decref(answer);
	return r;
}

static int prepare(struct cli *cli, const struct cli_door *door, json_t **ret,
		   struct coop_error *error)
{
	/* A private keeper has no agents, and is not there yet. */
	int r = door->private_keeper ? 0 : cli_open(cli, CLI_START_KEEPER, error);
	if (r < 0)
		return r;
	*ret = find_place(cli, door, error);
	if (!*ret)
		return -EINVAL;
	if (!door->agent)
		return check_place(cli, door, *ret, error);
	r = ensure_agent(cli, door, *ret, error);
	/* An agent works in its own folders, unless one of them was named. */
	if (!door->sandbox.workspace)
		(void)json_object_del(*ret, "sandbox");
	(void)json_object_del(*ret, "cwd");
	return r;
}

/* The program logs in as this one would have. */
static int hand_token(const struct cli *cli, struct coop_error *error)
{
	char token[CLI_TOKEN_SIZE];
	if (!cli->token_file)
		return 0;
	const int r = cli_token_read(cli->token_file, token, error);
	if (r == 0 && setenv("COOP_TOKEN", token, 1) < 0)
		return -ENOMEM;
	return r;
}

int cli_door_exec(struct cli *cli, const char *program, const struct cli_door *door,
		  const char *const *more)
{
	struct coop_error error = {0};
	struct words words = {.count = 1};
	json_t *args = NULL;
	if (door->sandbox.workspace && door->no_workspace)
		return cli_misuse(cli, "--workspace does not go with --no-workspace");
	if (door->private_keeper && door->agent)
		return cli_misuse(cli, "--private has one agent only: leave --agent out");
	int r = prepare(cli, door, &args, &error);
	if (r == 0)
		r = hand_token(cli, &error);
	if (r < 0) {
		json_decref(args);
		return cli_fail(cli, NULL, &error);
	}
	const json_t *sandbox = json_object_get(args, "sandbox");
	const char *profile = cli_text(sandbox, "profile");
	add(&words, "--profile",
	    door->sandbox.profile ? door->sandbox.profile
	    : *profile            ? profile
				  : NULL);
	add(&words, "--workspace", json_string_value(json_object_get(sandbox, "workspace")));
	add(&words, "--cwd", json_string_value(json_object_get(args, "cwd")));
	add(&words, "--agent", door->agent);
	add(&words, "--session", door->session);
	if (door->no_workspace)
		words.items[words.count++] = (char *)"--no-workspace";
	if (door->private_keeper)
		words.items[words.count++] = (char *)"--private";
	for (; *more && words.count < WORDS_MAX; more++)
		words.items[words.count++] = (char *)*more;
	cli_close(cli);
	r = cli_sibling_exec(program, words.items);
	cli_error(&error, "unreachable", "cannot run coop-%s: %s", program, strerror(-r));
	json_decref(args);
	return cli_fail(cli, NULL, &error);
}
