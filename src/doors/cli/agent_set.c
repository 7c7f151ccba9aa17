#include <errno.h>
#include <string.h>

#include "agent_args.h"
#include "record.h"
#include "verbs.h"

struct settings {
	struct cli_agent agent;
	struct cli_list unset;
};

static const struct cli_option options[] = {
	{"unset", 0, CLI_LIST, offsetof(struct settings, unset), NULL, "SETTING",
	 "take a setting of its own away, named as its option without the dashes; \"policy\" is "
	 "all of "
	 "deny-command, allow-command, deny-pattern, risk and mode; may be repeated"},
	{"principal", 0, CLI_TEXT, offsetof(struct settings, agent.principal), "principal", "NAME",
	 "whose agent (yours)"},
	CLI_AGENT_ROWS,
	{0},
};

#define POLICY "policy."

static bool is_policy(const char *field)
{
	return strncmp(field, POLICY, strlen(POLICY)) == 0;
}

/* The row of a setting, or NULL. */
static const struct cli_option *find_setting(const char *name)
{
	for (const struct cli_option *option = options; option->name; option++)
		if (strcmp(option->name, name) == 0 && option->field &&
		    strcmp(option->field, "principal") != 0)
			return option;
	return NULL;
}

/* NULL, or what is wrong with the name. */
static const char *check_unset(const struct settings *s, const char *name)
{
	const struct cli_option *option = find_setting(name);
	if (strcmp(name, "policy") == 0)
		return NULL;
	if (!option)
		return "there is no such setting";
	return cli_option_given(option, s) ? "it is set too" : NULL;
}

/* The parts that were given, over those that the agent has: a policy is one setting for the keeper. Lists are replaced,
 * labels of risks changed one by one. */
static void merge(json_t *policy, const json_t *given)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)given, name, value)
	{
		json_t *own = json_object_get(policy, name);
		if (json_is_object(value) && json_is_object(own))
			(void)json_object_update(own, value);
		else
			(void)json_object_set(policy, name, value);
	}
}

/* Parts that say nothing: empty lists, but for that of what alone is allowed, and the mode that holds anyway. */
static void drop_empty(json_t *policy)
{
	const char *name;
	json_t *value;
	void *next;
	json_object_foreach_safe(policy, next, name, value)
	{
		const bool empty = json_is_array(value)    ? json_array_size(value) == 0
				   : json_is_object(value) ? json_object_size(value) == 0
							   : json_is_null(value);
		if ((empty && strcmp(name, "allowed_commands") != 0) ||
		    (json_is_string(value) && strcmp(json_string_value(value), "enforce") == 0))
			(void)json_object_del(policy, name);
	}
}

static bool touches_policy(const struct settings *s, const json_t *args)
{
	bool touched = json_object_get(args, "policy") != NULL;
	for (size_t i = 0; i < s->unset.count; i++) {
		const struct cli_option *option = find_setting(s->unset.items[i]);
		touched = touched || !option || is_policy(option->field);
	}
	return touched;
}

/* What the agent has now is asked for, changed, and set whole. */
static int change_policy(struct cli *cli, const struct settings *s, const char *name, json_t *args,
			 struct coop_error *error)
{
	json_t *shown, *question = json_pack("{s:s}", "agent", name);
	if (s->agent.principal && question)
		(void)json_object_set_new(question, "principal", json_string(s->agent.principal));
	int r = cli_call(cli, "agent_show", question, &shown, error);
	if (r < 0)
		return r;
	const json_t *own = cli_member(json_object_get(shown, "agent"), "settings", "policy");
	json_t *policy = json_is_object(own) ? json_deep_copy(own) : json_object();
	for (size_t i = 0; i < s->unset.count; i++) {
		const struct cli_option *option = find_setting(s->unset.items[i]);
		if (!option)
			(void)json_object_clear(policy);
		else if (is_policy(option->field))
			(void)json_object_del(policy, option->field + strlen(POLICY));
	}
	merge(policy, json_object_get(args, "policy"));
	drop_empty(policy);
	const bool empty = json_object_size(policy) == 0;
	(void)json_object_set_new(args, "policy", empty ? json_null() : json_incref(policy));
	json_decref(policy);
	json_decref(shown);
	return 0;
}

static int set(struct cli *cli, const struct settings *s, const char *name, json_t *args,
	       struct coop_error *error)
{
	int r = cli_agent_args(options, &s->agent, args, error);
	if (r == 0)
		r = cli_open(cli, CLI_START_KEEPER, error);
	if (r == 0 && touches_policy(s, args))
		r = change_policy(cli, s, name, args, error);
	for (size_t i = 0; r == 0 && i < s->unset.count; i++) {
		const struct cli_option *option = find_setting(s->unset.items[i]);
		if (option && !is_policy(option->field))
			(void)json_object_set_new(args, option->field, json_null());
	}
	return r;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	struct coop_error error;
	for (size_t i = 0; i < s->unset.count; i++) {
		const char *problem = check_unset(s, s->unset.items[i]);
		if (problem)
			return cli_misuse(cli, "--unset %s: %s", s->unset.items[i], problem);
	}
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
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = 1,
	.failure = CLI_FAILED,
	.usage = CLI_USAGE,
	.run = run,
};
