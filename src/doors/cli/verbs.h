/* The verbs that have a row in the table; each is defined in the file of its name. */
#ifndef COOP_CLI_VERBS_H
#define COOP_CLI_VERBS_H

#include "cli.h"

extern const struct cli_verb cli_verb_run, cli_verb_ps, cli_verb_status, cli_verb_logs,
	cli_verb_wait, cli_verb_stdin, cli_verb_signal, cli_verb_kill, cli_verb_stop, cli_verb_rm,
	cli_verb_gc, cli_verb_attach, cli_verb_top, cli_verb_op, cli_verb_doctor, cli_verb_info,
	cli_verb_shells, cli_verb_keeper, cli_verb_shutdown, cli_verb_version, cli_verb_help;

#endif
