#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doors/cli/clean.h"
#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/verdict.h"

/* What somebody who meets an error can do about it. */
static const struct {
	const char *code, *hint;
	const char *reason; /* only if it has this one; NULL: always */
} hints[] = {
	{"no_such_process", "coop ps -a lists what there is"},
	{"registry_full", "coop ps lists what runs, coop kill ID ends one"},
	{"quota", "coop ps lists what runs, coop kill ID ends one"},
	{"closed", "coop run -i or -t leaves it open"},
	{"unavailable", "try again", "stopping"},
	{"persist_unsupported", "coop agent set AGENT --persistent grants it, from an agent above"},
	{"boundary_escape", "coop agent show AGENT lists the folders that it is bound to"},
};

/* Of a limit, by its scope: whose it is decides what helps. */
static const struct {
	const char *scope, *hint;
} scopes[] = {
	{"ancestor", "the limit is that of an agent above, which counts all below it"},
	{"buffer", "coop run --ring SIZE asks for less, coop gc forgets finished output"},
	{"principal", "the limit counts all your agents together; coop ps lists what runs"},
	{"host", "the limit counts everything that this keeper runs"},
	{"retained", "coop gc forgets what has ended"},
	{"agents", "coop agent ls lists them, coop agent rm removes one"},
	{"tokens", "coop token ls lists them, coop token revoke ends one"},
	{"sessions", "coop session ls lists them, coop session end ends one"},
};

static bool takes(const struct cli *cli, const char *field)
{
	for (const struct cli_option *option = cli->options; option && option->name; option++)
		if (option->field && strcmp(option->field, field) == 0)
			return true;
	return false;
}

/* Whether doctor knows what to change: of what the host cannot do. It says nothing of what a
 * profile does not have, of a step that failed although it works as a rule, or of what coop itself
 * cannot do. */
static bool doctor_knows(const json_t *details)
{
	if (strcmp(cli_text(details, "protection"), "freezer") == 0)
		return true;
	return json_is_boolean(json_object_get(details, "tolerable")) &&
	       !*cli_text(details, "step") && strcmp(cli_text(details, "cause"), "host") == 0;
}

/* What helps against a protection that cannot be had. Writes "" if nothing does. */
static void protection_hint(const struct cli *cli, const json_t *details,
			    char ret_text[CLI_VERDICT_MAX])
{
	const char *doctor = doctor_knows(details) ? "coop doctor says what to change" : "";
	const json_t *tolerable = json_object_get(details, "tolerable");
	char way[96] = "";
	if (json_is_true(tolerable) && takes(cli, "sandbox.tolerate"))
		(void)snprintf(way, sizeof(way), "--tolerate %.40s runs without",
			       cli_text(details, "protection"));
	else if (json_is_false(tolerable) && *doctor)
		(void)snprintf(way, sizeof(way), "it is required from above");
	(void)snprintf(ret_text, CLI_VERDICT_MAX, "%s%s%s", doctor, *doctor && *way ? "; " : "",
		       way);
}

/* What helps against a sandbox that cannot be had as it was asked for. Writes "" if it is about no
 * such thing. */
static void sandbox_hint(const struct cli *cli, const struct coop_error *error,
			 const json_t *details, char ret_text[CLI_VERDICT_MAX])
{
	if (strcmp(error->code, "sandbox_unavailable") == 0)
		protection_hint(cli, details, ret_text);
	else if (strcmp(cli_text(details, "field"), "sandbox.workspace") == 0 &&
		 takes(cli, "sandbox.workspace"))
		(void)snprintf(ret_text, CLI_VERDICT_MAX,
			       "--workspace DIR names another, --profile read-only needs none");
}

/* What helps, or NULL. `ret_text` is room for one that is made here. */
static const char *find_hint(const struct cli *cli, const struct coop_error *error,
			     char ret_text[CLI_VERDICT_MAX])
{
	json_t *details = json_loads(error->details, 0, NULL);
	const char *scope = json_string_value(json_object_get(details, "scope"));
	const char *hint = NULL;
	cli_verdict_hint(details, ret_text);
	if (!*ret_text)
		sandbox_hint(cli, error, details, ret_text);
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (strcmp(hints[i].code, error->code) == 0 &&
		    (!hints[i].reason || strcmp(hints[i].reason, cli_text(details, "reason")) == 0))
			hint = hints[i].hint;
	/* The sentence names what helps. */
	if (json_is_true(json_object_get(details, "advised"))) {
		*ret_text = '\0';
		hint = NULL;
	}
	for (size_t i = 0; scope && i < sizeof(scopes) / sizeof(scopes[0]); i++)
		if (strcmp(scopes[i].scope, scope) == 0)
			hint = scopes[i].hint;
	/* "0 in use" of a limit that is reached makes sense only beside what was asked for. */
	if (scope && hint && json_object_get(details, "needed")) {
		char needed[CLI_TEXT_MAX];
		cli_format_bytes(cli_number(details, "needed"), needed);
		(void)snprintf(ret_text, CLI_VERDICT_MAX, "%s are needed; %s", needed, hint);
	}
	json_decref(details);
	return *ret_text ? ret_text : hint;
}

void cli_say(const char *format, ...)
{
	char line[2048] = "coop: ";
	const size_t start = strlen(line);
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(line + start, sizeof(line) - start - 1, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	cli_clean(line + start);
	size_t end = strlen(line);
	line[end++] = '\n';
	/* Nobody can be told that stderr is gone. One write, so that lines of several programs do
	 * not mix. */
	(void)!write(STDERR_FILENO, line, end);
}

void cli_error(struct coop_error *error, const char *code, const char *format, ...)
{
	*error = (struct coop_error){.details = "{}"};
	(void)snprintf(error->code, sizeof(error->code), "%s", code);
	va_list ap;
	va_start(ap, format);
	(void)vsnprintf(error->message, sizeof(error->message), format, ap);
	va_end(ap);
}

json_t *cli_error_json(const struct coop_error *error)
{
	json_t *details = json_loads(error->details, 0, NULL);
	/* "s#?"-like formats refuse invalid UTF-8; a message may quote what somebody typed. */
	json_t *message = json_string(error->message);
	return json_pack("{s:{s:s, s:o, s:o}}", "error", "code", error->code, "message",
			 message ? message : json_string("(not UTF-8)"), "details",
			 details ? details : json_object());
}

/* The candidates of an ambiguous id, as a list for people. */
static void list_candidates(const struct coop_error *error, char *text, size_t size)
{
	text[0] = '\0';
	json_t *details = json_loads(error->details, 0, NULL);
	size_t used = 0, i;
	json_t *item;
	json_array_foreach(json_object_get(details, "candidates"), i, item)
	{
		const char *id = json_string_value(item);
		if (!id)
			id = json_string_value(json_object_get(item, "id"));
		int n = snprintf(text + used, size - used, "%s%s", i ? ", " : "", id ? id : "?");
		if (n < 0 || used + (size_t)n >= size)
			break;
		used += (size_t)n;
	}
	json_decref(details);
}

int cli_misuse(const struct cli *cli, const char *format, ...)
{
	char problem[256];
	va_list ap;
	va_start(ap, format);
	(void)vsnprintf(problem, sizeof(problem), format, ap);
	va_end(ap);
	struct coop_error error;
	cli_error(&error, "usage", "%s: %s (see: coop help %s)", cli->verb->name, problem,
		  cli->verb->name);
	(void)cli_fail(cli, NULL, &error);
	return (cli->verb->usage ? cli->verb->usage : CLI_USAGE);
}

/* Whether the text has the name as a word of its own. */
static bool has_word(const char *text, const char *name)
{
	const size_t length = strlen(name);
	for (const char *at = text; length && (at = strstr(at, name)); at++)
		if ((at == text || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[length]))
			return true;
	return false;
}

int cli_fail(const struct cli *cli, const char *about, const struct coop_error *original)
{
	struct coop_error translated = *original;
	const struct coop_error *error = &translated;
	cli_error_translate(cli, &translated);
	char candidates[512];
	list_candidates(error, candidates, sizeof(candidates));
	char made[CLI_VERDICT_MAX];
	const char *hint = find_hint(cli, error, made);
	const char *message = error->message[0] ? error->message : error->code;
	/* Candidates are the way out themselves. */
	if (candidates[0])
		hint = candidates;
	/* A message that names its subject needs no second naming; one about an option is about no
	 * process. */
	bool named = about && (has_word(message, about) || strncmp(message, "--", 2) == 0);
	cli_say("%s%s%s%s%s%s", about && !named ? about : "", about && !named ? ": " : "", message,
		hint ? " (" : "", hint ? hint : "", hint ? ")" : "");
	if (cli->json) {
		json_t *value = cli_error_json(error);
		if (cli->lines)
			(void)json_object_set_new(value, "type", json_string("error"));
		(cli->lines ? cli_print_json_line : cli_print_json)(value);
		json_decref(value);
	}
	return cli_failure(cli->verb);
}

static void print_json(const json_t *value, size_t flags)
{
	char *text = cli_clean_dump(value, flags | JSON_ENCODE_ANY);
	(void)puts(text ? text : "");
	free(text);
}

void cli_print_json(const json_t *value)
{
	print_json(value, isatty(STDOUT_FILENO) ? JSON_INDENT(2) : JSON_COMPACT);
}

void cli_print_json_line(const json_t *value)
{
	print_json(value, JSON_COMPACT);
}

int cli_finish(const struct cli *cli, int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	cli_say("cannot write to standard output: %s", strerror(errno));
	return cli_failure(cli->verb);
}
