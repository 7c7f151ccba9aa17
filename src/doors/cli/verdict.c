#include "doors/cli/verdict.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "doors/cli/record.h"

#define AGENT "agent "

/* "a, b" */
static void join(const json_t *list, char *ret_text, size_t size)
{
	size_t i;
	json_t *item;
	ret_text[0] = '\0';
	json_array_foreach((json_t *)list, i, item)
	{
		const size_t used = strlen(ret_text);
		const char *text = json_string_value(item);
		(void)snprintf(ret_text + used, size - used, "%s%s", i ? ", " : "",
			       text ? text : "?");
	}
}

/* Rules that are lists, by what their reasons begin with, and the options that set them. */
static const struct {
	const char *rule, *option;
} lists[] = {
	{"denied_commands", "--deny-command"},
	{"allowed_commands", "--allow-command"},
	{"deny_patterns", "--deny-pattern"},
};

static const char *find_list(const json_t *decision)
{
	const char *reason = cli_text(decision, "reason");
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (strncmp(reason, lists[i].rule, strlen(lists[i].rule)) == 0)
			return lists[i].option;
	return NULL;
}

/* What changes the rule: it depends on where that stands, and on whether it is a list or about a
 * label. */
static void way_out(const json_t *decision, char *ret_text, size_t size)
{
	const char *source = cli_text(decision, "source"), *list = find_list(decision);
	const char *label =
		json_string_value(json_array_get(json_object_get(decision, "risk_labels"), 0));
	const char *agent =
		strncmp(source, AGENT, strlen(AGENT)) == 0 ? source + strlen(AGENT) : NULL;
	if (strcmp(source, "built-in") == 0)
		(void)snprintf(ret_text, size, "no setting allows it");
	else if (agent && (list || !label))
		(void)snprintf(ret_text, size,
			       "coop agent set %.150s %s changes that, from an agent above it",
			       agent, list ? list : "--unset policy");
	else if (agent)
		(void)snprintf(ret_text, size,
			       "coop agent set %.150s --risk %.40s=allow allows it, from an agent "
			       "above it",
			       agent, label);
	else if (list || !label)
		(void)snprintf(ret_text, size, "change that line, then coop reload");
	else
		(void)snprintf(ret_text, size,
			       "risk.%.40s = allow in [policy] of coop.conf, then coop reload, "
			       "allows it",
			       label);
}

static const json_t *decisions_of(const json_t *envelope)
{
	return cli_member(envelope, "command_policy", "decisions");
}

void cli_verdict_hint(const json_t *envelope, char ret_text[CLI_VERDICT_MAX])
{
	const char *status = cli_text(envelope, "status");
	const json_t *decision = json_array_get(decisions_of(envelope), 0);
	char out[320];
	ret_text[0] = '\0';
	if (strcmp(status, "dry_run") == 0 || strcmp(status, "explain_only") == 0) {
		(void)snprintf(ret_text, CLI_VERDICT_MAX,
			       "the policy's mode is %.20s: nothing is started", status);
	} else if (decision) {
		way_out(decision, out, sizeof(out));
		(void)snprintf(ret_text, CLI_VERDICT_MAX, "%.120s: %s",
			       cli_text(decision, "source"), out);
	}
}

static void print_decision(const json_t *decision)
{
	const json_t *confidence = json_object_get(decision, "confidence");
	char labels[256];
	join(json_object_get(decision, "risk_labels"), labels, sizeof(labels));
	(void)printf("  %-16s %s: %s", cli_text(decision, "action"), cli_text(decision, "source"),
		     cli_text(decision, "reason"));
	if (*labels)
		(void)printf(" [%s]", labels);
	/* Less than 1: something of the command is computed only when it runs. */
	if (json_is_number(confidence) && json_number_value(confidence) < 1)
		(void)printf(" (confidence %.1f)", json_number_value(confidence));
	(void)putchar('\n');
}

void cli_verdict_print(const json_t *envelope)
{
	const json_t *context = cli_member(envelope, "command_policy", "context");
	const char *status = cli_text(envelope, "status"), *reason = cli_text(envelope, "stderr");
	const bool allowed = strcmp(status, "allowed") == 0;
	char roots[1024], hint[CLI_VERDICT_MAX];
	size_t i;
	json_t *decision;
	/* What the rules say stands below; here is only what is no rule, such as a limit. */
	if (allowed || json_array_size(decisions_of(envelope)))
		(void)printf("%s\n", status);
	else
		(void)printf("%s: %s\n", status, reason);
	json_array_foreach((json_t *)decisions_of(envelope), i, decision) print_decision(decision);
	join(json_object_get(context, "workspace"), roots, sizeof(roots));
	(void)printf("  for %s of %s, in %s%s%s\n", cli_text(context, "agent"),
		     cli_text(context, "principal"), cli_text(context, "cwd"),
		     *roots ? ", bound to " : "", roots);
	cli_verdict_hint(envelope, hint);
	if (*hint && !allowed)
		(void)printf("  %s\n", hint);
}
