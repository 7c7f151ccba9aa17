#include <string.h>

#include "doors/cli/admin/agent_args.h"
#include "doors/cli/cli.h"
#include "doors/cli/options.h"
#include "doors/cli/sandbox_args.h"
#include "doors/cli/verbs.h"

struct settings {
	struct cli_agent agent;
	struct cli_list unset;
};

static const struct cli_option options[] = {
	{"unset", 0, CLI_LIST, offsetof(struct settings, unset), NULL, "SETTING",
	 "take a setting of its own away, named as its option without the dashes; \"policy\" is "
	 "all of deny-command, allow-command, deny-pattern, risk and mode, \"sandbox\" all from "
	 "profile to require, \"limits\" all from mem on; may be repeated"},
	CLI_ARG("principal", offsetof(struct settings, agent.principal), "whose agent (yours)"),
	CLI_AGENT_ROWS,
	{0},
};

/* Settings that have parts, each with an option of its own; for the keeper each is one. */
static const char *const groups[] = {"policy", "sandbox", "limits", NULL};

/* The part's name in the group, or NULL if the field is none of it. */
static const char *part_of(const char *group, const char *field)
{
	const size_t length = strlen(group);
	return strncmp(field, group, length) == 0 && field[length] == '.' ? field + length + 1
									  : NULL;
}

static bool is_group(const char *name)
{
	for (size_t i = 0; groups[i]; i++)
		if (strcmp(groups[i], name) == 0)
			return true;
	return false;
}

/* The row of a setting, or NULL. */
static const struct cli_option *find_setting(const struct cli *cli, const char *name)
{
	for (const struct cli_option *option = cli->options; option->name; option++)
		if (strcmp(option->name, name) == 0 && option->field &&
		    strcmp(option->field, "principal") != 0)
			return option;
	return NULL;
}

/* NULL, or what is wrong with the name. */
static const char *check_unset(const struct cli *cli, const char *name)
{
	const struct cli_option *option = find_setting(cli, name);
	if (is_group(name))
		return NULL;
	if (!option)
		return "there is no such setting";
	return cli_option_given(option, cli->settings) ? "it is set too" : NULL;
}

/* The parts that were given, over those that the agent has. Lists are replaced, labels of risks
 * changed one by one. */
static void merge(json_t *group, const json_t *given)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)given, name, value)
	{
		json_t *own = json_object_get(group, name);
		if (json_is_object(value) && json_is_object(own))
			(void)json_object_update(own, value);
		else
			(void)json_object_set(group, name, value);
	}
}

/* Parts that say nothing: empty lists, but for that of what alone is allowed, and the mode that
 * holds anyway. */
static void drop_empty(json_t *group)
{
	const char *name;
	json_t *value;
	void *next;
	json_object_foreach_safe(group, next, name, value)
	{
		const bool empty = json_is_array(value)    ? json_array_size(value) == 0
				   : json_is_object(value) ? json_object_size(value) == 0
							   : json_is_null(value);
		if ((empty && strcmp(name, "allowed_commands") != 0) ||
		    (json_is_string(value) && strcmp(json_string_value(value), "enforce") == 0))
			(void)json_object_del(group, name);
	}
}

static bool touches(const struct cli *cli, const json_t *args, const char *group)
{
	const struct settings *s = cli->settings;
	bool touched = json_object_get(args, group) != NULL;
	for (size_t i = 0; i < s->unset.count; i++) {
		const struct cli_option *option = find_setting(cli, s->unset.items[i]);
		touched = touched || strcmp(s->unset.items[i], group) == 0 ||
			  (option && part_of(group, option->field));
	}
	return touched;
}

/* What the agent has now is changed, and set whole. */
static void change_group(const struct cli *cli, const char *name, const json_t *own, json_t *args)
{
	const struct settings *s = cli->settings;
	json_t *group = json_is_object(own) ? json_deep_copy(own) : json_object();
	for (size_t i = 0; i < s->unset.count; i++) {
		const struct cli_option *option = find_setting(cli, s->unset.items[i]);
		const char *part = option ? part_of(name, option->field) : NULL;
		if (strcmp(s->unset.items[i], name) == 0)
			(void)json_object_clear(group);
		else if (part)
			(void)json_object_del(group, part);
	}
	merge(group, json_object_get(args, name));
	drop_empty(group);
	const bool empty = json_object_size(group) == 0;
	(void)json_object_set_new(args, name, empty ? json_null() : json_incref(group));
	json_decref(group);
}

static int change_groups(struct cli *cli, const struct settings *s, const char *name, json_t *args,
			 struct coop_error *error)
{
	json_t *shown = NULL, *question = json_pack("{s:s}", "agent", name);
	if (s->agent.principal && question)
		(void)json_object_set_new(question, "principal", json_string(s->agent.principal));
	int r = cli_call(cli, "agent_show", question, &shown, error);
	if (r < 0)
		return r;
	const json_t *own = json_object_get(json_object_get(shown, "agent"), "settings");
	for (size_t i = 0; groups[i]; i++)
		if (touches(cli, args, groups[i]))
			change_group(cli, groups[i], json_object_get(own, groups[i]), args);
	json_decref(shown);
	return 0;
}

static int set(struct cli *cli, const struct settings *s, const char *name, json_t *args,
	       struct coop_error *error)
{
	int r = cli_agent_args(cli, &s->agent, args, error);
	if (r == 0)
		r = cli_open(cli, CLI_START_KEEPER, error);
	bool touched = false;
	for (size_t i = 0; groups[i]; i++)
		touched = touched || touches(cli, args, groups[i]);
	if (r == 0 && touched)
		r = change_groups(cli, s, name, args, error);
	for (size_t i = 0; r == 0 && i < s->unset.count; i++) {
		const struct cli_option *option = find_setting(cli, s->unset.items[i]);
		if (option && !strchr(option->field, '.'))
			(void)json_object_set_new(args, option->field, json_null());
	}
	return r;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	struct coop_error error;
	for (size_t i = 0; i < s->unset.count; i++) {
		const char *problem = check_unset(cli, s->unset.items[i]);
		if (problem)
			return cli_misuse(cli, "--unset %s: %s", s->unset.items[i], problem);
	}
	const struct cli_option *zero = cli_sandbox_zero(cli->options, s);
	if (zero)
		return cli_misuse(cli, "--%s 0: must be more than 0", zero->name);
	json_t *args = json_pack("{s:s}", "agent", operands[0]);
	if (!args) {
		cli_error(&error, "invalid_input", "the agent's name is not valid UTF-8");
		return cli_fail(cli, NULL, &error);
	}
	if (set(cli, s, operands[0], args, &error) < 0) {
		json_decref(args);
		return cli_fail(cli, operands[0], &error);
	}
	if (json_object_size(args) == 1 + (s->agent.principal != NULL)) {
		json_decref(args);
		return cli_misuse(cli, "say what is to change");
	}
	cli->about = operands[0];
	return cli_once(cli, CLI_START_KEEPER, "agent_set", args, cli_agent_show);
}

const struct cli_verb cli_verb_agent_set = {
	.name = "agent set",
	.synopsis = "AGENT [OPTION…] [--unset SETTING]…",
	.summary = "Change the settings of an agent",
	.text = "What is not named stays as it is. A list that is named replaces the one that was "
		"there; a --risk changes its own label.\n"
		"What runs goes on, also where a new limit is lower.",
	.operation = &coop_operation_agent_set,
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
