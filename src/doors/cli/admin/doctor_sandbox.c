/* What the sandbox can hold on this host, as the keeper found out by doing it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/cli/admin/doctor.h"
#include "doors/cli/clean.h"
#include "doors/cli/cli.h"
#include "doors/cli/record.h"

/* Without these a command of a confined profile is not started, unless they are tolerated. */
static const char *const needed[] = {"files",   "network", "identity", "privileges",
				     "seccomp", "kill",    NULL};

static bool is_needed(const char *name)
{
	for (size_t i = 0; needed[i]; i++)
		if (strcmp(needed[i], name) == 0)
			return true;
	return false;
}

/* "a, b" of those that are not wholly enforced. The number of them. */
static size_t list_missing(const json_t *protections, bool of_needed, char *text, size_t size)
{
	const char *name;
	json_t *protection;
	size_t count = 0;
	text[0] = '\0';
	json_object_foreach((json_t *)protections, name, protection)
	{
		const size_t used = strlen(text);
		if (is_needed(name) == of_needed &&
		    strcmp(cli_text(protection, "state"), "enforced") != 0)
			(void)snprintf(text + used, size - used, "%s%s", count++ ? ", " : "", name);
	}
	return count;
}

static void judge(const json_t *protections, struct cli_finding *finding)
{
	char names[256];
	if (list_missing(protections, true, names, sizeof(names))) {
		finding->verdict = CLI_BAD;
		(void)snprintf(finding->detail, sizeof(finding->detail),
			       "a plain coop run is refused, as not all of it can be held: %s",
			       names);
		(void)snprintf(finding->advice, sizeof(finding->advice),
			       "see below; coop run --tolerate NAME does without one of them");
	} else if (list_missing(protections, false, names, sizeof(names))) {
		finding->verdict = CLI_WARN;
		(void)snprintf(finding->detail, sizeof(finding->detail),
			       "what a coop run needs is enforced; asked for by name, these are "
			       "refused: %s",
			       names);
	} else {
		(void)snprintf(finding->detail, sizeof(finding->detail),
			       "every protection and limit is enforced");
	}
}

json_t *cli_doctor_sandbox(struct cli *cli, struct cli_finding *finding)
{
	struct coop_error error;
	json_t *answer = NULL;
	int r = cli->coop ? 0 : cli_open(cli, CLI_START_KEEPER, &error);
	if (r == 0)
		r = cli_call(cli, "doctor", json_object(), &answer, &error);
	if (r < 0) {
		finding->verdict = CLI_WARN;
		(void)snprintf(finding->detail, sizeof(finding->detail),
			       "not looked at: the keeper cannot be asked: %.400s", error.message);
		return NULL;
	}
	cli_clean_json(answer);
	judge(json_object_get(answer, "protections"), finding);
	return answer;
}

static void print_protection(const char *name, const json_t *protection)
{
	const char *mechanism = cli_text(protection, "mechanism"),
		   *reason = cli_text(protection, "reason"), *fix = cli_text(protection, "fix");
	(void)printf("      %-14s  %-8s  %s%s%s\n", name, cli_text(protection, "state"), mechanism,
		     *mechanism && *reason ? "; " : "", reason);
	if (*fix)
		(void)printf("                -> %s\n", fix);
}

/* What the operator lets nobody go beyond. */
static void print_ceilings(const json_t *at_most)
{
	const json_t *always = json_object_get(at_most, "always_require");
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)at_most, name, value)
	{
		if (json_is_string(value))
			(void)printf("      %-14s  %s %s\n", "at most", name,
				     json_string_value(value));
	}
	json_object_foreach(json_object_get(at_most, "limits"), name, value)
	{
		char *text = json_dumps(value, JSON_ENCODE_ANY);
		(void)printf("      %-14s  %s %s\n", "at most", name, text ? text : "?");
		free(text);
	}
	for (size_t i = 0; i < json_array_size(always); i++)
		(void)printf("      %-14s  %s\n", "always",
			     json_string_value(json_array_get(always, i)));
}

/* What a control group alone can do; the name says what it is for. */
static void print_group(const char *name, const json_t *group)
{
	const char *reason = cli_text(group, "reason"), *fix = cli_text(group, "fix");
	(void)printf("      %-14s  %s%s%s\n", name, cli_number(group, "version") ? "works" : "none",
		     *reason ? "; " : "", reason);
	if (*fix)
		(void)printf("                -> %s\n", fix);
}

/* The freezer always. What counts the processes of several commands together only where it is
 * missing and the limit of one holds, which says nothing of it. */
static void print_groups(const json_t *answer)
{
	const json_t *freezer = cli_member(answer, "cgroup", "freezer"),
		     *pids = cli_member(answer, "cgroup", "pids");
	const json_t *held = cli_member(answer, "protections", "max_pids");
	if (json_is_object(freezer))
		print_group("freezer", freezer);
	if (json_is_object(pids) && !cli_number(pids, "version") &&
	    strcmp(cli_text(held, "state"), "enforced") == 0)
		print_group("agent's pids", pids);
}

/* The identity of commands and the sandboxes kept ready, where there is something to say. */
static void print_rest(const json_t *answer)
{
	const json_t *identity = json_object_get(answer, "identity"),
		     *slots = json_object_get(answer, "slots");
	char memory[CLI_TEXT_MAX];
	if (json_is_integer(json_object_get(identity, "uid")))
		(void)printf("      %-14s  uid %lld, gid %lld%s%s\n", "commands run as",
			     (long long)cli_number(identity, "uid"),
			     (long long)cli_number(identity, "gid"),
			     *cli_text(identity, "how") ? ": " : "", cli_text(identity, "how"));
	print_groups(answer);
	if (!json_is_object(slots))
		return;
	cli_format_bytes_or_dash(json_object_get(slots, "memory_bytes"), memory);
	if (json_is_true(json_object_get(slots, "enabled")))
		(void)printf("      %-14s  %lld ready, memory %s\n", "slots",
			     (long long)cli_number(slots, "idle"), memory);
	else
		(void)printf("      %-14s  off%s%s\n", "slots",
			     *cli_text(slots, "reason") ? ": " : "", cli_text(slots, "reason"));
}

void cli_doctor_print(const json_t *answer)
{
	const char *name;
	json_t *protection;
	if (!answer)
		return;
	(void)printf("\nThe sandbox, protection by protection:\n");
	json_object_foreach(json_object_get(answer, "protections"), name, protection)
	{
		print_protection(name, protection);
	}
	print_rest(answer);
	print_ceilings(json_object_get(answer, "at_most"));
}
