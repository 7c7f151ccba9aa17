/* What coop needs from this host, found out by doing it. */
#ifndef COOP_CLI_DOCTOR_H
#define COOP_CLI_DOCTOR_H

#include "doors/cli/cli.h"

enum cli_verdict { CLI_GOOD, CLI_WARN, CLI_BAD };

struct cli_finding {
	enum cli_verdict verdict;
	char detail[512]; /* what was found */
	char advice[256]; /* what to change; "" if nothing */
};

struct cli_check {
	const char *name;
	void (*look)(struct cli *cli, struct cli_finding *finding);
};

/* The checks, ended by a row without a name. */
extern const struct cli_check cli_checks[];

/* What the keeper says of the sandbox, which it is started for if need be: its answer, to be
 * released, or NULL without one. */
json_t *cli_doctor_sandbox(struct cli *cli, struct cli_finding *finding);

/* The answer as lines for people, one for each protection, with what to change. NULL: none. */
void cli_doctor_print(const json_t *answer);

/* Only what holds secrets in the home, and whether commands see it. The exit code: a failure if
 * they see any. */
int cli_doctor_credentials(struct cli *cli);

#endif
