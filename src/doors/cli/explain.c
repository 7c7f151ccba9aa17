/* The keeper's refusal of an argument, in the words of the option that was typed: it knows
 * "grace_ms", people know --grace and durations. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/cli/cli.h"
#include "doors/cli/options.h"
#include "doors/cli/record.h"

/* Where the keeper's sentence makes no sense on a command line. */
static const struct {
	const char *field, *sentence;
	const char *needs; /* only if it says that it needs this; NULL: always */
} sentences[] = {
	{"shell", "there is no such shell here (coop shells lists them)"},
	{"sandbox.allow_read", "needs --root minimal", "sandbox.root"},
};

#define SANDBOX "sandbox."

/* A field is "grace_ms", or one of several: "env.PATH", "env_remove[2]", "policy.risk.sudo".
 * *ret_rest is what the option does not stand for. */
static const struct cli_option *find_option(const struct cli *cli, const char *field,
					    const char **ret_rest)
{
	for (const struct cli_option *option = cli->options; option && option->name; option++) {
		const size_t length = option->field ? strlen(option->field) : 0;
		if (!length || strncmp(option->field, field, length) != 0 ||
		    (field[length] && !strchr(".[", field[length])))
			continue;
		*ret_rest = field + length;
		return option;
	}
	return NULL;
}

static void format_limit(const struct cli_option *option, int64_t value,
			 char ret_text[CLI_TEXT_MAX])
{
	if (option->kind == CLI_DURATION)
		cli_format_exact_duration(value, ret_text);
	else if (option->kind == CLI_SECONDS)
		cli_format_exact_duration(value * 1000, ret_text);
	else if (option->kind == CLI_SIZE)
		cli_format_exact_bytes(value, ret_text);
	else
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%lld", (long long)value);
}

/* What is wrong with the value: one bound, not both, in the unit of the option. */
static void describe(const struct cli *cli, const struct cli_option *option, const json_t *details,
		     const char *said, char *ret_text, size_t size)
{
	const json_t *low = json_object_get(details, "minimum"),
		     *high = json_object_get(details, "maximum"),
		     *asked = json_object_get(details, "asked");
	char limit[CLI_TEXT_MAX], wanted[CLI_TEXT_MAX];
	/* A share is counted in other units here than there. */
	const bool number =
		cli_option_is_number(option) && option->kind != CLI_SHARE && json_is_integer(high);
	for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
		if (strcmp(option->field, sentences[i].field) == 0 &&
		    (!sentences[i].needs ||
		     strcmp(cli_text(details, "needs"), sentences[i].needs) == 0))
			said = sentences[i].sentence;
	if (number && asked) {
		format_limit(option, json_integer_value(asked), wanted);
		format_limit(option, json_integer_value(high), limit);
		(void)snprintf(ret_text, size, "%s is more than is allowed here: %s", wanted,
			       limit);
	} else if (number && low) {
		const struct cli_number *given =
			(const void *)((const char *)cli->settings + option->offset);
		const bool small = (json_int_t)given->value < json_integer_value(low);
		format_limit(option, json_integer_value(small ? low : high), limit);
		(void)snprintf(ret_text, size, "at %s %s", small ? "least" : "most", limit);
	} else {
		(void)snprintf(ret_text, size, "%s", said);
	}
}

/* The keeper's sentences about an argument begin with its name, or are about what it names. */
static const char *skip_name(const char *message, const char *field)
{
	const size_t length = strlen(field);
	if (length == 0 || strncmp(message, field, length) != 0)
		return message;
	if (strncmp(message + length, ": ", 2) == 0)
		return message + length + 2;
	return message[length] == ' ' ? message + length + 1 : message;
}

/* Which one of several it is about, or what it was that is not there; else "". */
static const char *find_value(const struct cli *cli, const struct cli_option *option,
			      const char *rest, const char *said)
{
	const void *place = (const char *)cli->settings + option->offset;
	const size_t index = *rest == '[' ? strtoul(rest + 1, NULL, 10) : SIZE_MAX;
	if (*rest == '.')
		return rest + 1;
	if (option->kind == CLI_LIST &&
	    (strncmp(option->field, SANDBOX, strlen(SANDBOX)) == 0 ||
	     strcmp(option->field, "file_injections") == 0) &&
	    index < ((const struct cli_list *)place)->count)
		return ((const struct cli_list *)place)->items[index];
	if (option->kind == CLI_TEXT && cli_option_given(option, cli->settings) &&
	    strncmp(said, "there is no such", 16) == 0)
		return *(const char *const *)place;
	return "";
}

/* What the keeper says in parts is put together from them, with the option of a limit if somebody
 * typed it. A sentence that names another way out than doctor stays. */
static void translate_sandbox(const struct cli *cli, const json_t *details,
			      struct coop_error *error)
{
	const char *name = cli_text(details, "protection"), *reason = cli_text(details, "reason"),
		   *step = cli_text(details, "step"), *number = cli_text(details, "errno"),
		   *path = cli_text(details, "path");
	char field[64], how[400] = "", what[96];
	const char *rest = "";
	const bool freezer = strcmp(name, "freezer") == 0;
	if (!*name || !*reason || !(freezer || *step || *cli_text(details, "cause")))
		return;
	(void)snprintf(field, sizeof(field), "limits.%.40s", name);
	const struct cli_option *option = find_option(cli, field, &rest);
	if (option && !cli_option_given(option, cli->settings))
		option = NULL;
	(void)snprintf(what, sizeof(what), "%.40s%s%s%s", name, option ? " (--" : "",
		       option ? option->name : "", option ? ")" : "");
	if (*step)
		(void)snprintf(how, sizeof(how), ", at %.60s%s%.40s%s%.200s", step,
			       *number ? ": " : "", number, *path ? " of " : "", path);
	(void)snprintf(error->message, sizeof(error->message),
		       freezer ? "%s: cannot be had here: %.250s%s"
			       : "sandbox: %s cannot be enforced: %.250s%s",
		       what, reason, how);
}

/* The keeper was told where we are, though nobody typed an option for it. Writes "" for what was
 * typed. */
static void name_place(const struct cli *cli, const struct cli_option *option, const char *what,
		       char *ret_text, size_t size)
{
	ret_text[0] = '\0';
	const char *rest = "";
	if (cli_option_given(option, cli->settings))
		return;
	const struct cli_option *workspace = find_option(cli, SANDBOX "workspace", &rest);
	const bool cwd = strcmp(option->field, "cwd") == 0;
	/* A command that stands outside of the workspace that was named runs in there. */
	if (cwd && workspace && cli_option_given(workspace, cli->settings))
		(void)snprintf(ret_text, size, "--workspace %.150s: %.300s",
			       *(const char *const *)(const void *)((const char *)cli->settings +
								    workspace->offset),
			       what);
	else if (cwd)
		(void)snprintf(ret_text, size, "the current folder %.300s", what);
	else if (strcmp(option->field, SANDBOX "workspace") == 0)
		(void)snprintf(ret_text, size, "the current folder as workspace: %.300s", what);
}

void cli_error_translate(const struct cli *cli, struct coop_error *error)
{
	/* Who passes an error on that has come by here has nothing to do with options any more. */
	if (!cli->settings)
		return;
	json_t *details = json_loads(error->details, 0, NULL);
	const char *field = cli_text(details, "field");
	const char *rest = "";
	const struct cli_option *option = find_option(cli, field, &rest);
	const char *said = skip_name(error->message, field);
	const bool begins = said != error->message;
	if (strcmp(error->code, "sandbox_unavailable") == 0)
		translate_sandbox(cli, details, error);
	else if (option && (begins || cli_option_given(option, cli->settings))) {
		char text[sizeof(error->message)], what[sizeof(error->message)];
		const char *value = find_value(cli, option, rest, said);
		describe(cli, option, details, said, what, sizeof(what));
		name_place(cli, option, what, text, sizeof(text));
		if (!*text)
			(void)snprintf(text, sizeof(text), "--%s%s%.100s: %.300s", option->name,
				       *value ? " " : "", value, what);
		(void)snprintf(error->message, sizeof(error->message), "%s", text);
	}
	json_decref(details);
}
