#include "doors/cli/sandbox_args.h"

#include <errno.h>
#include <string.h>

#include "doors/cli/place.h"

#define LIMITS "limits."

const struct cli_option *cli_sandbox_zero(const struct cli_option *options, const void *settings)
{
	for (const struct cli_option *option = options; option->name; option++) {
		const struct cli_number *number =
			(const void *)((const char *)settings + option->offset);
		if (option->field && strncmp(option->field, LIMITS, strlen(LIMITS)) == 0 &&
		    number->set && number->value == 0)
			return option;
	}
	return NULL;
}

/* The path, or NULL with an error that names the option. */
static json_t *resolve(const char *option, const char *path, enum cli_presence presence,
		       struct coop_error *error)
{
	json_t *value = cli_place_resolve(path, presence, error);
	if (value)
		return value;
	char why[sizeof(error->message)];
	(void)snprintf(why, sizeof(why), "%s", *error->message ? error->message : "not UTF-8");
	cli_error(error, "invalid_input", "--%s %.60s: %.420s", option, path, why);
	return NULL;
}

/* Whether the name was typed as it is: what is private is meant only then. */
static bool typed_so(const char *path, const json_t *resolved)
{
	const char *text = json_string_value(resolved);
	const size_t length = strlen(text);
	return *path == '~' || (strncmp(path, text, length) == 0 &&
				strspn(path + length, "/") == strlen(path + length));
}

static int add_paths(const struct cli_option *option, const void *settings, json_t *sandbox,
		     bool *typed, struct coop_error *error)
{
	const struct cli_list *paths = (const void *)((const char *)settings + option->offset);
	const enum cli_presence presence =
		option->row->unit == COOP_UNIT_PLACE ? CLI_MUST_EXIST : CLI_MAY_BE_MISSING;
	if (!paths->count)
		return 0;
	json_t *list = json_array();
	(void)json_object_set_new(sandbox, option->row->name, list);
	for (size_t i = 0; i < paths->count; i++) {
		json_t *path = resolve(option->name, paths->items[i], presence, error);
		if (!path)
			return -EINVAL;
		*typed = *typed && (presence != CLI_MUST_EXIST || typed_so(paths->items[i], path));
		(void)json_array_append_new(list, path);
	}
	return 0;
}

static int add_workspace(const char *path, json_t *sandbox, bool *typed, struct coop_error *error)
{
	json_t *value = path ? resolve("workspace", path, CLI_MUST_EXIST, error) : NULL;
	if (path && !value)
		return -EINVAL;
	if (value) {
		*typed = *typed && typed_so(path, value);
		(void)json_object_set_new(sandbox, "workspace", value);
	}
	return 0;
}

int cli_sandbox_args(const struct cli *cli, const struct cli_sandbox *sandbox, json_t *args,
		     struct coop_error *error)
{
	json_t *given = json_object_get(args, "sandbox");
	bool typed = true;
	int r = 0;
	for (const struct cli_option *option = cli->options; r == 0 && option->name; option++) {
		const struct coop_field *row = option->row;
		if (row && (row->unit == COOP_UNIT_PATH || row->unit == COOP_UNIT_PLACE))
			r = add_paths(option, cli->settings, given, &typed, error);
	}
	if (r == 0)
		r = add_workspace(sandbox->workspace, given, &typed, error);
	if (r == 0 &&
	    (sandbox->workspace || sandbox->allow_write.count || sandbox->allow_read.count))
		(void)json_object_set_new(given, "names",
					  json_string(typed ? "as_typed" : "resolved"));
	return r;
}
