#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/cli/admin/agent_args.h"
#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/sandbox_text.h"
#include "doors/cli/verbs.h"

struct settings {
	const char *principal;
};

static void line(const char *name, const char *text)
{
	(void)printf("  %-12s %s\n", name, text);
}

/* "2 of 10" */
static void show_running(const json_t *agent)
{
	const json_t *most = cli_member(agent, "effective", "max_running");
	(void)printf("  %-12s %lld", "running",
		     (long long)cli_number(json_object_get(agent, "use"), "running"));
	if (json_is_integer(most))
		(void)printf(" of %lld", (long long)json_integer_value(most));
	(void)putchar('\n');
}

static void show_buffer(const json_t *agent)
{
	char used[CLI_TEXT_MAX], most[CLI_TEXT_MAX];
	const json_t *limit = cli_member(agent, "effective", "max_buffer_bytes");
	cli_format_bytes_or_dash(cli_member(agent, "use", "buffer_bytes"), used);
	cli_format_bytes_or_dash(limit, most);
	(void)printf("  %-12s %s%s%s\n", "buffer", used, json_is_integer(limit) ? " of " : "",
		     json_is_integer(limit) ? most : "");
}

static void show_finished(const json_t *agent)
{
	const json_t *most = cli_member(agent, "settings", "max_finished");
	(void)printf("  %-12s %lld", "finished",
		     (long long)cli_number(json_object_get(agent, "use"), "finished"));
	if (json_is_integer(most))
		(void)printf(" of %lld", (long long)json_integer_value(most));
	(void)putchar('\n');
}

static void show_list(const char *name, const json_t *list)
{
	size_t i;
	json_t *item;
	json_array_foreach((json_t *)list, i, item)
		line(i ? "" : name, json_string_value(item) ? json_string_value(item) : "?");
}

static void show_policy(json_t *policy)
{
	const char *label;
	json_t *action;
	bool first = true;
	show_list("deny", json_object_get(policy, "denied_commands"));
	/* This list says something also when it is empty. */
	const json_t *allowed = json_object_get(policy, "allowed_commands");
	show_list("allow only", allowed);
	if (json_is_array(allowed) && json_array_size(allowed) == 0)
		line("allow only", "(nothing)");
	show_list("deny pattern", json_object_get(policy, "deny_patterns"));
	json_object_foreach(json_object_get(policy, "risk"), label, action)
	{
		(void)printf("  %-12s %s: %s\n", first ? "risk" : "", label,
			     json_string_value(action) ? json_string_value(action) : "?");
		first = false;
	}
	if (*cli_text(policy, "mode") && strcmp(cli_text(policy, "mode"), "enforce") != 0)
		line("mode", cli_text(policy, "mode"));
}

/* The ceilings: "workspace-write, network loopback". */
static void show_sandbox(const json_t *settings)
{
	static const struct {
		const char *field, *word;
	} rows[] = {{"profile", ""}, {"network", "network "}, {"home", "home "}, {"root", "root "}};
	const json_t *sandbox = json_object_get(settings, "sandbox");
	char text[512] = "";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *value = cli_text(sandbox, rows[i].field);
		const size_t used = strlen(text);
		if (*value)
			(void)snprintf(text + used, sizeof(text) - used, "%s%s%s", used ? ", " : "",
				       rows[i].word, value);
	}
	if (*text)
		line("sandbox", text);
	show_list("deny read", json_object_get(sandbox, "deny_read"));
	show_list("deny write", json_object_get(sandbox, "deny_write"));
	show_list("protect", json_object_get(sandbox, "protect"));
	show_list("require", json_object_get(sandbox, "require"));
	cli_limits_line(json_object_get(settings, "limits"), text, sizeof(text));
	if (*text)
		line("limits", text);
}

static void show_metadata(json_t *metadata)
{
	const char *key;
	json_t *value;
	bool first = true;
	json_object_foreach(metadata, key, value)
	{
		(void)printf("  %-12s %s=%s\n", first ? "metadata" : "", key,
			     json_string_value(value) ? json_string_value(value) : "?");
		first = false;
	}
}

bool cli_agent_show(const struct cli *cli, const char *id, const json_t *result)
{
	const json_t *agent = json_object_get(result, "agent");
	const json_t *effective = json_object_get(agent, "effective");
	char text[64];
	if (cli->json)
		return true;
	(void)printf("%s\n", cli_text(agent, "path"));
	line("principal", cli_text(agent, "principal"));
	line("created", cli_text(agent, "created_at"));
	if (*cli_text(agent, "expires_at"))
		line("expires", cli_text(agent, "expires_at"));
	show_running(agent);
	show_buffer(agent);
	show_finished(agent);
	(void)snprintf(text, sizeof(text), "%lld",
		       (long long)cli_number(json_object_get(agent, "use"), "sessions"));
	line("sessions", text);
	(void)snprintf(text, sizeof(text), "%lld", (long long)cli_number(agent, "tokens"));
	line("tokens", text);
	line("persistent",
	     json_is_true(json_object_get(effective, "persistent")) ? "granted" : "no");
	if (json_is_true(json_object_get(effective, "restricted")))
		line("restricted", "yes");
	show_list(*cli_text(agent, "folder") ? "own folder" : "workspace",
		  json_object_get(effective, "workspace"));
	show_list("variables", json_object_get(agent, "env_names"));
	show_metadata(json_object_get(agent, "metadata"));
	show_sandbox(json_object_get(agent, "settings"));
	show_policy(json_object_get(json_object_get(agent, "settings"), "policy"));
	return true;
}

static const struct cli_option options[] = {
	CLI_ARG("principal", offsetof(struct settings, principal), "whose agent (yours)"),
	{0},
};

const struct cli_verb cli_verb_agent_show = {
	.name = "agent show",
	.synopsis = "AGENT",
	.summary = "Show an agent: what it uses, its limits, what it may do",
	.operation = &coop_operation_agent_show,
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = 1,
	.operand = "agent",
	.show = cli_agent_show,
};
