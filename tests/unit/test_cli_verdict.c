/* What is said about a command that policy blocks: the rule, and the way out that fits where the
 * rule stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "doors/cli/cli.h"
#include "doors/cli/verdict.h"

/* record.c says what a command left behind; nothing of that is looked at here. */
void cli_say(const char *format, ...)
{
	(void)format;
}

static json_t *envelope(const char *status, const char *source, const char *label,
			const char *reason)
{
	json_t *labels = json_array();
	if (label)
		(void)json_array_append_new(labels, json_string(label));
	return json_pack("{s:s, s:{s:[{s:s, s:s, s:s, s:o}]}}", "status", status, "command_policy",
			 "decisions", "action", "deny", "reason", reason, "source", source,
			 "risk_labels", labels);
}

static void hints(void **state)
{
	static const struct {
		const char *status, *source, *label, *reason, *says;
	} rows[] = {
		{"blocked", "built-in", "destructive", "x", "no setting allows it"},
		{"blocked", "standard policy", "sudo", "sudo: x",
		 "standard policy: risk.sudo = allow in [policy] of coop.conf"},
		{"blocked", "coop.conf:12", "sudo", "sudo: x", "coop.conf:12: risk.sudo = allow"},
		{"blocked", "coop.conf:12", NULL, "denied_commands: x",
		 "coop.conf:12: change that line"},
		{"blocked", "coop.conf:12", "deny_pattern", "deny_patterns: x",
		 "coop.conf:12: change that line"},
		{"blocked", "agent main/a", "sudo", "sudo: x",
		 "coop agent set main/a --risk sudo=allow"},
		{"blocked", "agent main/a", NULL, "denied_commands: x",
		 "coop agent set main/a --deny-command"},
		{"blocked", "agent main/a", NULL, "allowed_commands: x",
		 "coop agent set main/a --allow-command"},
		{"blocked", "agent main/a", "deny_pattern", "deny_patterns: x",
		 "coop agent set main/a --deny-pattern"},
		{"blocked", "agent main/a", NULL, "x", "coop agent set main/a --unset policy"},
		{"dry_run", "agent main/a", NULL, "x", "mode is dry_run"},
		{"explain_only", "coop.conf:3", NULL, "x", "mode is explain_only"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[CLI_VERDICT_MAX];
		json_t *value =
			envelope(rows[i].status, rows[i].source, rows[i].label, rows[i].reason);
		assert_non_null(value);
		cli_verdict_hint(value, text);
		if (!strstr(text, rows[i].says))
			print_error("\"%s\" without \"%s\"\n", text, rows[i].says);
		assert_non_null(strstr(text, rows[i].says));
		json_decref(value);
	}
}

/* Details of other errors, and none at all. */
static void no_envelope(void **state)
{
	char text[CLI_VERDICT_MAX] = "untouched";
	json_t *other = json_pack("{s:s}", "field", "argv");
	cli_verdict_hint(other, text);
	assert_string_equal(text, "");
	cli_verdict_hint(NULL, text);
	assert_string_equal(text, "");
	json_decref(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hints),
		cmocka_unit_test(no_envelope),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
