/* The keeper's refusal of an argument, in the words of the option that was typed: it knows "grace_ms", people know --grace and
 * durations. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "record.h"

/* Where the keeper's sentence makes no sense on a command line. */
static const struct {
	const char *field, *sentence;
} sentences[] = {
	{"shell", "there is no such shell here (coop shells lists them)"},
};

/* A field is "grace_ms", or one of several: "env.PATH", "env_remove[2]", "policy.risk.sudo". *ret_rest is what the option does not
 * stand for. */
static const struct cli_option *find_option(const struct cli *cli, const char *field,
					    const char **ret_rest)
{
	for (const struct cli_option *option = cli->verb->options; option && option->name;
	     option++) {
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
	else if (option->kind == CLI_SIZE && value >= 1024)
		cli_format_bytes(value, ret_text);
	else
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%lld", (long long)value);
}

/* What is wrong with the value: one bound, not both, in the unit of the option. */
static void describe(const struct cli *cli, const struct cli_option *option, const char *rest,
		     char *ret_text, size_t size)
{
	long long low, high;
	char limit[CLI_TEXT_MAX];
	const bool number = option->kind == CLI_DURATION || option->kind == CLI_SIZE ||
			    option->kind == CLI_COUNT || option->kind == CLI_TIME;
	for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
		if (strcmp(option->field, sentences[i].field) == 0)
			rest = sentences[i].sentence;
	if (!number || sscanf(rest, "must be between %lld and %lld", &low, &high) != 2) {
		(void)snprintf(ret_text, size, "%s", rest);
		return;
	}
	const struct cli_number *given =
		(const void *)((const char *)cli->settings + option->offset);
	const bool small = (long long)given->value < low;
	format_limit(option, small ? low : high, limit);
	(void)snprintf(ret_text, size, "at %s %s", small ? "least" : "most", limit);
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
	if (*rest == '.')
		return rest + 1;
	if (option->kind == CLI_TEXT && cli_option_given(option, cli->settings) &&
	    strncmp(said, "there is no such", 16) == 0)
		return *(const char *const *)(const void *)((const char *)cli->settings +
							    option->offset);
	return "";
}

void cli_error_translate(const struct cli *cli, struct coop_error *error)
{
	json_t *details = json_loads(error->details, 0, NULL);
	const char *field = cli_text(details, "field");
	const char *rest = "";
	const struct cli_option *option = cli->settings ? find_option(cli, field, &rest) : NULL;
	const char *said = skip_name(error->message, field);
	const bool begins = said != error->message;
	if (option && (begins || cli_option_given(option, cli->settings))) {
		char text[sizeof(error->message)], what[sizeof(error->message)];
		const char *value = find_value(cli, option, rest, said);
		int n;
		describe(cli, option, said, what, sizeof(what));
		/* Nobody typed --cwd: the keeper was told where we are. */
		if (strcmp(field, "cwd") == 0 && !cli_option_given(option, cli->settings))
			n = snprintf(text, sizeof(text), "the current folder %.300s", what);
		else
			n = snprintf(text, sizeof(text), "--%s%s%.100s: %.300s", option->name,
				     *value ? " " : "", value, what);
		if (n > 0)
			memcpy(error->message, text, sizeof(text));
	}
	json_decref(details);
}
