#include "doors/cli/verbs.h"

static const struct cli_verb *const subs[] = {
	&cli_verb_audit_tail,
	&cli_verb_audit_verify,
	NULL,
};

const struct cli_verb cli_verb_audit = {
	.name = "audit",
	.synopsis = "VERB …",
	.summary = "The audit, a line for each attempt and each end: tail, verify",
	.text = "Its lines are chained by hashes, so that it shows if one was removed, changed or "
		"moved. For the operator only.",
	.max_operands = CLI_ANY_NUMBER,
	.no_keeper = true,
	.subs = subs,
	.run = cli_group_run,
};
