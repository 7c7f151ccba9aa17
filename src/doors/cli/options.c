#include "doors/cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/units.h"
#include "doors/cli/parse.h"

struct parser {
	const struct cli_option_set *sets;
	size_t set_count;
	char *error;
	bool failed;
};

/* An option that was found, and where its value goes. */
struct target {
	const struct cli_option *option;
	void *place;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct parser *parser, const char *format,
							...)
{
	va_list ap;
	va_start(ap, format);
	/* The first fault is told. */
	if (!parser->failed)
		(void)vsnprintf(parser->error, CLI_OPTION_ERROR_MAX, format, ap);
	parser->failed = true;
	va_end(ap);
	return -EINVAL;
}

/* By name, of which `length` characters count, or (name NULL) by letter. */
static bool find_option(const struct parser *parser, const char *name, size_t length, char letter,
			struct target *ret)
{
	for (size_t i = 0; i < parser->set_count; i++)
		for (const struct cli_option *option = parser->sets[i].options;
		     option && option->name; option++) {
			if (name ? strncmp(option->name, name, length) != 0 || option->name[length]
				 : option->letter != letter)
				continue;
			ret->option = option;
			ret->place = (char *)parser->sets[i].settings + option->offset;
			return true;
		}
	return false;
}

static bool is_choice(const char *alternatives, const char *value)
{
	size_t length = strlen(value);
	for (const char *at = alternatives; length && *at; at += strcspn(at, "|"), at += *at == '|')
		if (strcspn(at, "|") == length && strncmp(at, value, length) == 0)
			return true;
	return false;
}

typedef int number_parser(const char *text, uint64_t *ret);

static int set_number(struct parser *parser, const struct target *target, const char *value,
		      number_parser *parse, const char *example)
{
	const struct cli_option *option = target->option;
	struct cli_number *number = target->place;
	int r = parse(value, &number->value);
	if (r == -ERANGE)
		return refuse(parser, "--%s %s: too large", option->name, value);
	if (r < 0)
		return refuse(parser, "--%s %s: expected %s", option->name, value, example);
	number->set = true;
	return 0;
}

static int set_list(struct parser *parser, const struct target *target, const char *value)
{
	struct cli_list *list = target->place;
	const char **items = reallocarray(list->items, list->count + 1, sizeof(*items));
	if (!items) {
		(void)refuse(parser, "out of memory");
		return -ENOMEM;
	}
	items[list->count++] = value;
	list->items = items;
	return 0;
}

static int set_value(struct parser *parser, const struct target *target, const char *value)
{
	const struct cli_option *option = target->option;
	void *place = target->place;
	switch (option->kind) {
	case CLI_FLAG:
		*(bool *)place = true;
		return 0;
	case CLI_CHOICE:
		if (!is_choice(option->argument, value))
			return refuse(parser, "--%s %s: expected one of %s", option->name, value,
				      option->argument);
		*(const char **)place = value;
		return 0;
	case CLI_TEXT:
		*(const char **)place = value;
		return 0;
	case CLI_DURATION:
		return set_number(parser, target, value, cli_parse_duration,
				  "a duration such as 30s, 150ms or 5m");
	case CLI_SIZE:
		return set_number(parser, target, value, cli_parse_size,
				  "a size such as 64K, 1M or 4096");
	case CLI_COUNT:
		return set_number(parser, target, value, cli_parse_count, "a number");
	case CLI_SECONDS:
		return set_number(parser, target, value, cli_parse_seconds,
				  "whole seconds such as 30s or 5m");
	case CLI_SHARE:
		return set_number(parser, target, value, coop_units_thousandths,
				  "a number such as 2, 1.5 or 0.25");
	case CLI_TIME:
		return set_number(parser, target, value, cli_parse_time,
				  "an age such as 2h, or a time such as 2026-01-31T08:00:00Z");
	case CLI_PAIRS:
		if (value[0] == '=' || !strchr(value, '='))
			return refuse(parser, "--%s %s: expected %s", option->name, value,
				      option->argument);
		return set_list(parser, target, value);
	case CLI_LIST:
		return set_list(parser, target, value);
	}
	return -EINVAL;
}

/* --name, --name value, --name=value. Moves *at over what it took. */
static int parse_long(struct parser *parser, char ***at)
{
	const char *name = **at + 2;
	size_t length = strcspn(name, "=");
	const char *value = name[length] ? name + length + 1 : NULL;

	struct target target;
	++*at;
	if (!find_option(parser, name, length, 0, &target))
		return refuse(parser, "unknown option --%.*s", (int)length, name);
	const struct cli_option *option = target.option;
	if (option->kind == CLI_FLAG && value)
		return refuse(parser, "--%s takes no value", option->name);
	if (option->kind != CLI_FLAG && !value) {
		if (!**at)
			return refuse(parser, "--%s needs a value (%s)", option->name,
				      option->argument);
		value = *(*at)++;
	}
	return set_value(parser, &target, value ? value : "");
}

/* -d, -it, -n5, -n 5. */
static int parse_letters(struct parser *parser, char ***at)
{
	for (const char *letter = *(*at)++ + 1; *letter; letter++) {
		struct target target;
		if (!find_option(parser, NULL, 0, *letter, &target))
			return refuse(parser, "unknown option -%c", *letter);
		if (target.option->kind == CLI_FLAG) {
			(void)set_value(parser, &target, "");
			continue;
		}
		if (!letter[1] && !**at)
			return refuse(parser, "-%c needs a value (%s)", *letter,
				      target.option->argument);
		return set_value(parser, &target, letter[1] ? letter + 1 : *(*at)++);
	}
	return 0;
}

int cli_options_parse(const struct cli_option_set *sets, size_t set_count,
		      enum cli_operands operands, char **args, size_t *ret_operands,
		      char error[CLI_OPTION_ERROR_MAX])
{
	struct parser parser = {.sets = sets, .set_count = set_count, .error = error};
	size_t count = 0;
	char **at = args;
	while (*at && operands != CLI_OPERANDS_ALL) {
		char *word = *at;
		if (strcmp(word, "--") == 0) {
			at++;
			break;
		}
		/* A lone "-" is an operand: standard input. */
		if (word[0] != '-' || !word[1]) {
			if (operands == CLI_OPERANDS_LAST)
				break;
			args[count++] = word;
			at++;
			continue;
		}
		/* What follows a fault is still read, for the sake of --json. */
		int r = word[1] == '-' ? parse_long(&parser, &at) : parse_letters(&parser, &at);
		if (r == -ENOMEM)
			return r;
	}
	while (*at)
		args[count++] = *at++;
	args[count] = NULL;
	*ret_operands = count;
	return parser.failed ? -EINVAL : 0;
}

/* NULL: one of them cannot be said in JSON. */
static json_t *list_json(const struct cli_list *list)
{
	json_t *array = json_array();
	for (size_t i = 0; array && i < list->count; i++)
		if (json_array_append_new(array, json_string(list->items[i])) < 0) {
			json_decref(array);
			array = NULL;
		}
	return array;
}

static json_t *pairs_json(const struct cli_list *list)
{
	json_t *object = json_object();
	for (size_t i = 0; object && i < list->count; i++) {
		const size_t length = strcspn(list->items[i], "=");
		char *name = strndup(list->items[i], length);
		if (!name || json_object_set_new(object, name,
						 json_string(list->items[i] + length + 1)) < 0) {
			json_decref(object);
			object = NULL;
		}
		free(name);
	}
	return object;
}

bool cli_option_is_number(const struct cli_option *option)
{
	switch (option->kind) {
	case CLI_DURATION:
	case CLI_SIZE:
	case CLI_COUNT:
	case CLI_SECONDS:
	case CLI_SHARE:
	case CLI_TIME:
		return true;
	case CLI_FLAG:
	case CLI_TEXT:
	case CLI_CHOICE:
	case CLI_LIST:
	case CLI_PAIRS:
		return false;
	}
	return false;
}

bool cli_option_given(const struct cli_option *option, const void *settings)
{
	const void *place = (const char *)settings + option->offset;
	switch (option->kind) {
	case CLI_FLAG:
		return *(const bool *)place;
	case CLI_TEXT:
	case CLI_CHOICE:
		return *(const char *const *)place;
	case CLI_DURATION:
	case CLI_SIZE:
	case CLI_COUNT:
	case CLI_SECONDS:
	case CLI_SHARE:
	case CLI_TIME:
		return ((const struct cli_number *)place)->set;
	case CLI_LIST:
	case CLI_PAIRS:
		return ((const struct cli_list *)place)->count > 0;
	}
	return false;
}

/* The value of an option that was given, as JSON. NULL: it cannot be said so. */
static json_t *value_json(const struct cli_option *option, const void *settings)
{
	const void *place = (const char *)settings + option->offset;
	switch (option->kind) {
	case CLI_FLAG:
		return json_true();
	case CLI_TEXT:
	case CLI_CHOICE:
		return json_string(*(const char *const *)place);
	case CLI_DURATION:
	case CLI_SIZE:
	case CLI_COUNT:
	case CLI_SECONDS:
	case CLI_TIME:
		return json_integer((json_int_t)((const struct cli_number *)place)->value);
	case CLI_SHARE:
		return json_real((double)((const struct cli_number *)place)->value / 1000);
	case CLI_LIST:
		return list_json(place);
	case CLI_PAIRS:
		return pairs_json(place);
	}
	return NULL;
}

/* "policy.mode" is a member of the object "policy". Takes over the value. */
static int set_field(json_t *args, const char *field, json_t *value)
{
	const char *dot = strchr(field, '.');
	if (!dot)
		return json_object_set_new(args, field, value);
	char outer[64];
	(void)snprintf(outer, sizeof(outer), "%.*s", (int)(dot - field), field);
	if (!json_object_get(args, outer))
		(void)json_object_set_new(args, outer, json_object());
	return json_object_set_new(json_object_get(args, outer), dot + 1, value);
}

int cli_options_fields(const struct cli_option *options, const void *settings, json_t *args,
		       const char **ret_bad)
{
	for (const struct cli_option *option = options; option && option->name; option++) {
		if (!option->field || !cli_option_given(option, settings))
			continue;
		if (set_field(args, option->field, value_json(option, settings)) < 0) {
			*ret_bad = option->name;
			return -EILSEQ;
		}
	}
	return 0;
}

void cli_options_free(const struct cli_option *options, void *settings)
{
	for (; options && options->name; options++)
		if (options->kind == CLI_LIST || options->kind == CLI_PAIRS)
			free(((struct cli_list *)((char *)settings + options->offset))->items);
}
