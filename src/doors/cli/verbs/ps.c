#include <errno.h>
#include <string.h>

#include "doors/cli/cli.h"
#include "doors/cli/options.h"
#include "doors/cli/record.h"
#include "doors/cli/terminal/terminal.h"
#include "doors/cli/verbs.h"
#include "doors/cli/verbs/processes.h"

struct settings {
	bool all, full, quiet;
	const char *tag, *label, *state, *agent, *session;
	struct cli_number limit;
};

static const struct cli_option options[] = {
	CLI_ARG("include_finished", offsetof(struct settings, all),
		"finished processes too, with how they ended"),
	{"quiet", 'q', CLI_FLAG, offsetof(struct settings, quiet), NULL, NULL,
	 "print the ids only (with --json: a list of them)"},
	CLI_ARG("tag", offsetof(struct settings, tag), "those with this tag"),
	CLI_ARG("label", offsetof(struct settings, label),
		"those whose tag or program name contains this"),
	CLI_ARG("state", offsetof(struct settings, state), "those in this state"),
	CLI_ARG("agent", offsetof(struct settings, agent),
		"those of this agent: self, a path, or what stands below you"),
	CLI_ARG("session", offsetof(struct settings, session),
		"those in this session (default: those in none)"),
	CLI_ARG("limit", offsetof(struct settings, limit), "at most so many (1000)"),
	{"full", 0, CLI_FLAG, offsetof(struct settings, full), NULL, NULL,
	 "with --json: whole records, not the short ones"},
	{0},
};

static void print_ids(const json_t *records)
{
	size_t i;
	json_t *record;
	json_array_foreach(records, i, record)(void)
		puts(json_string_value(json_object_get(record, "id")));
}

/* The records, or only their ids. */
static void print_json(const json_t *records, bool quiet)
{
	size_t i;
	json_t *record, *ids = json_array();
	json_array_foreach(records, i, record)
	{
		(void)json_array_append(ids, json_object_get(record, "id"));
	}
	cli_print_json(quiet ? ids : records);
	json_decref(ids);
}

static int list(struct cli *cli, const struct settings *s)
{
	struct coop_error error;
	const char *bad;
	json_t *args = json_pack("{s:b}", "brief", !s->full), *result;
	if (cli_options_fields(cli->options, s, args, &bad) < 0) {
		json_decref(args);
		args = NULL;
	}
	if (cli_call(cli, "list", args, &result, &error) < 0)
		return cli_fail(cli, NULL, &error);
	const json_t *records = json_object_get(result, "processes");
	if (cli->json)
		print_json(records, s->quiet);
	else if (s->quiet)
		print_ids(records);
	else
		cli_processes_print(records, stdout, cli_terminal_width(), 0, "\n");
	if (json_is_true(json_object_get(result, "more")))
		cli_say("there are more (--limit shows more of them)");
	json_decref(result);
	return CLI_OK;
}

/* Those that have ended are known to the next keeper, too. */
static bool shows_finished(const struct settings *s)
{
	return s->all ||
	       (s->state && (strcmp(s->state, "exited") == 0 || strcmp(s->state, "signaled") == 0));
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	struct coop_error error;
	if (s->full && (!cli->json || s->quiet))
		return cli_misuse(cli, "--full goes with --json, without -q");
	int r = cli_open(cli, shows_finished(s) ? CLI_START_IF_RECORDED : CLI_ONLY_RUNNING, &error);
	if (r >= 0)
		return list(cli, s);
	if (r != -ECONNREFUSED)
		return cli_fail(cli, NULL, &error);
	/* Without a keeper nothing runs; looking must not start one. */
	json_t *none = json_array();
	if (cli->json)
		cli_print_json(none);
	else if (!s->quiet)
		cli_processes_print(none, stdout, cli_terminal_width(), 0, "\n");
	json_decref(none);
	return CLI_OK;
}

const struct cli_verb cli_verb_ps = {
	.name = "ps",
	.synopsis = "[-a]",
	.summary = "List processes",
	.text = "STATE of a finished process says how it ended: its exit code or signal, and the "
		"cause if that was neither\n"
		"the program itself nor somebody else's signal. \"left 2\" counts what it left "
		"running. AGENT is shown where not all are yours.",
	.operation = &coop_operation_list,
	.options = options,
	.settings_size = sizeof(struct settings),
	.run = run,
};
