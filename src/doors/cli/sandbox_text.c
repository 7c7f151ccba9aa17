#include "doors/cli/sandbox_text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "doors/cli/record.h"

/* Adds to the text, as far as there is room. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *format,
						      ...)
{
	const size_t used = strlen(text);
	va_list ap;
	va_start(ap, format);
	(void)vsnprintf(text + used, size - used, format, ap);
	va_end(ap);
}

static bool has_state(const json_t *protection, const char *state)
{
	return strcmp(cli_text(protection, "state"), state) == 0;
}

/* "files, network" of those in the state, and without a reason that would have to be told. The
 * number of them. */
static size_t list_names(const json_t *protections, const char *state, bool reasons, char *text,
			 size_t size)
{
	const char *name;
	json_t *protection;
	size_t count = 0;
	json_object_foreach((json_t *)protections, name, protection)
	{
		if (has_state(protection, state) && (reasons || !*cli_text(protection, "reason")))
			add(text, size, "%s%s", count++ ? ", " : "", name);
	}
	return count;
}

/* Those that are less than asked for, each with the reason. */
static void list_faults(const json_t *protections, bool first, char *text, size_t size)
{
	const char *name;
	json_t *protection;
	json_object_foreach((json_t *)protections, name, protection)
	{
		const char *reason = cli_text(protection, "reason");
		if (has_state(protection, "enforced") ||
		    (!*reason && has_state(protection, "none")))
			continue;
		add(text, size, "%s%s %s%s%s%s", first ? ": " : "; ", name,
		    cli_text(protection, "state"), *reason ? " (" : "", reason, *reason ? ")" : "");
		first = false;
	}
}

void cli_sandbox_line(const json_t *sandbox, char *ret_text, size_t size)
{
	const json_t *protections = json_object_get(sandbox, "protections");
	const char *workspace = cli_text(sandbox, "workspace"),
		   *network = cli_text(sandbox, "network"), *home = cli_text(sandbox, "home"),
		   *asked = cli_text(json_object_get(sandbox, "asked"), "home");
	char names[512] = "";
	ret_text[0] = '\0';
	if (!json_is_object(sandbox))
		return;
	add(ret_text, size, "%s%s%s", cli_text(sandbox, "profile"), *workspace ? " " : "",
	    workspace);
	if (*network)
		add(ret_text, size, ", network %s", network);
	/* Root's commands are somebody else and get no layer on his home. */
	if (*home && *asked && strcmp(home, asked) != 0)
		add(ret_text, size, ", home %s (asked: %s)", home, asked);
	const size_t held = list_names(protections, "enforced", true, names, sizeof(names));
	if (held)
		add(ret_text, size, ": %s enforced", names);
	list_faults(protections, held == 0, ret_text, size);
	names[0] = '\0';
	/* What the profile is not about: nothing of it was to be had. */
	if (list_names(protections, "none", false, names, sizeof(names)))
		add(ret_text, size, "; without %s", names);
}

/* Limits by their fields, the words for them, and what their values are. */
static const struct {
	const char *field, *name;
	enum { MS, SECONDS, BYTES, COUNT, SHARE } kind;
} limit_rows[] = {
	{"timeout_ms", "timeout", MS},          {"idle_timeout_ms", "idle", MS},
	{"max_lifetime_ms", "lifetime", MS},    {"memory_bytes", "memory", BYTES},
	{"cpu_quota", "cpus", SHARE},           {"max_pids", "processes", COUNT},
	{"max_cpu_secs", "cpu time", SECONDS},  {"max_open_files", "open files", COUNT},
	{"max_file_bytes", "file size", BYTES}, {"tmp_bytes", "/tmp", BYTES},
};

void cli_limits_line(const json_t *limits, char *ret_text, size_t size)
{
	ret_text[0] = '\0';
	for (size_t i = 0; i < sizeof(limit_rows) / sizeof(limit_rows[0]); i++) {
		const json_t *value = json_object_get(limits, limit_rows[i].field);
		const int64_t number = json_integer_value(value);
		char text[CLI_TEXT_MAX];
		if (!json_is_number(value))
			continue;
		if (limit_rows[i].kind == MS)
			cli_format_duration(number, text);
		else if (limit_rows[i].kind == SECONDS)
			cli_format_duration(number * 1000, text);
		else if (limit_rows[i].kind == BYTES)
			cli_format_bytes(number, text);
		else
			(void)snprintf(text, sizeof(text), "%.6g", json_number_value(value));
		add(ret_text, size, "%s%s %s", *ret_text ? ", " : "", limit_rows[i].name, text);
	}
}
