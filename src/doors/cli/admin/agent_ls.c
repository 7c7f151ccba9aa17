#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/table.h"
#include "doors/cli/terminal/terminal.h"
#include "doors/cli/verbs.h"

/* A path has at most 8 names of 64 characters. */
#define PATH_SIZE 576

struct settings {
	const char *principal;
};

static const struct cli_column columns[] = {
	{"PATH", false, 0},    {"RUNNING", true, 0}, {"BUFFER", true, 0},
	{"SESSIONS", true, 0}, {"TOKENS", true, 0},  {"FLAGS", false, 0},
};

/* Agents come parents first; each stands below its parent, by the depth of its path. The first
 * one's path is written out, which may itself be below others. */
static void format_path(const char *path, const char *top, char ret_text[PATH_SIZE])
{
	const size_t length = strlen(top);
	size_t depth = 0;
	if (strcmp(path, top) == 0 || strncmp(path, top, length) != 0) {
		(void)snprintf(ret_text, PATH_SIZE, "%s", path);
		return;
	}
	for (const char *at = path + length; *at; at++)
		depth += *at == '/';
	(void)snprintf(ret_text, PATH_SIZE, "%*s%s", (int)(2 * depth), "", strrchr(path, '/') + 1);
}

static void format_flags(const json_t *agent, char ret_text[CLI_TEXT_MAX])
{
	const json_t *effective = json_object_get(agent, "effective");
	const struct {
		bool set;
		const char *word;
	} flags[] = {
		{json_is_true(json_object_get(effective, "persistent")), "persistent"},
		{json_is_true(json_object_get(effective, "restricted")), "restricted"},
		{json_array_size(json_object_get(effective, "workspace")) > 0, "workspace"},
		{json_object_size(cli_member(agent, "settings", "policy")) > 0, "policy"},
	};
	size_t used = 0;
	(void)snprintf(ret_text, CLI_TEXT_MAX, "-");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (!flags[i].set)
			continue;
		(void)snprintf(ret_text + used, CLI_TEXT_MAX - used, "%s%s", used ? " " : "",
			       flags[i].word);
		used = strlen(ret_text);
	}
}

static void add_agent(struct cli_table *table, const json_t *agent, const char *top)
{
	const json_t *use = json_object_get(agent, "use");
	const json_t *most = cli_member(agent, "effective", "max_buffer_bytes");
	char path[PATH_SIZE], running[48], buffer[2 * CLI_TEXT_MAX], used[CLI_TEXT_MAX],
		limit[CLI_TEXT_MAX], sessions[24], tokens[24], flags[CLI_TEXT_MAX];
	format_path(cli_text(agent, "path"), top, path);
	(void)snprintf(running, sizeof(running), "%lld/%lld", (long long)cli_number(use, "running"),
		       (long long)cli_number(json_object_get(agent, "effective"), "max_running"));
	cli_format_bytes_or_dash(json_object_get(use, "buffer_bytes"), used);
	cli_format_bytes_or_dash(most, limit);
	(void)snprintf(buffer, sizeof(buffer), "%s%s%s", used, json_is_integer(most) ? "/" : "",
		       json_is_integer(most) ? limit : "");
	(void)snprintf(sessions, sizeof(sessions), "%lld", (long long)cli_number(use, "sessions"));
	(void)snprintf(tokens, sizeof(tokens), "%lld", (long long)cli_number(agent, "tokens"));
	format_flags(agent, flags);
	const char *const cells[] = {path, running, buffer, sessions, tokens, flags};
	(void)cli_table_add(table, cells);
}

static void print(const json_t *agents)
{
	struct cli_table *table = cli_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t i;
	json_t *agent;
	if (!table)
		return;
	const char *top = cli_text(json_array_get(agents, 0), "path");
	json_array_foreach((json_t *)agents, i, agent) add_agent(table, agent, top);
	cli_table_print(table, stdout, cli_terminal_width(), 0, "\n");
	cli_table_free(table);
}

static const struct cli_option options[] = {
	CLI_ARG("principal", offsetof(struct settings, principal), "whose agents (yours)"),
	{0},
};

/* One page after another: very many do not fit into one answer. */
static int collect(struct cli *cli, const void *settings, json_t *agents, struct coop_error *error)
{
	for (bool more = true; more;) {
		const json_t *last = json_array_get(agents, json_array_size(agents) - 1);
		json_t *page;
		int r = cli_call(cli, "agent_list",
				 cli_args(cli, last ? "after" : NULL, cli_text(last, "path")),
				 &page, error);
		if (r < 0)
			return r;
		json_t *found = json_object_get(page, "agents");
		more = json_is_true(json_object_get(page, "more")) && json_array_size(found);
		(void)json_array_extend(agents, found);
		json_decref(page);
	}
	return 0;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	struct coop_error error;
	json_t *agents = json_array();
	int r = cli_open(cli, CLI_START_KEEPER, &error);
	if (r >= 0)
		r = collect(cli, settings, agents, &error);
	if (r >= 0 && cli->json)
		cli_print_json(agents);
	else if (r >= 0)
		print(agents);
	json_decref(agents);
	return r < 0 ? cli_fail(cli, NULL, &error) : CLI_OK;
}

const struct cli_verb cli_verb_agent_ls = {
	.name = "agent ls",
	.synopsis = "[--principal NAME]",
	.summary = "List the agent that you are and those below it",
	.text = "RUNNING and BUFFER are what is used, with all below, and the limit that holds.",
	.operation = &coop_operation_agent_list,
	.options = options,
	.settings_size = sizeof(struct settings),
	.run = run,
};
