/* The verbs that have a row in the table; each is defined in the file of its name. */
#ifndef COOP_CLI_VERBS_H
#define COOP_CLI_VERBS_H

#include "doors/cli/cli.h"

extern const struct cli_verb cli_verb_run, cli_verb_ps, cli_verb_status, cli_verb_logs,
	cli_verb_wait, cli_verb_stdin, cli_verb_signal, cli_verb_kill, cli_verb_stop,
	cli_verb_cancel, cli_verb_rm, cli_verb_gc, cli_verb_attach, cli_verb_top, cli_verb_history,
	cli_verb_events, cli_verb_agent, cli_verb_token, cli_verb_session, cli_verb_policy,
	cli_verb_audit, cli_verb_op, cli_verb_doctor, cli_verb_info, cli_verb_shells,
	cli_verb_keeper, cli_verb_reload, cli_verb_shutdown, cli_verb_version, cli_verb_help,
	cli_verb_freeze, cli_verb_thaw, cli_verb_serve, cli_verb_mcp, cli_verb_tool,
	cli_verb_screen;

/* Verbs of groups. */
extern const struct cli_verb cli_verb_agent_add, cli_verb_agent_ls, cli_verb_agent_show,
	cli_verb_agent_set, cli_verb_agent_rm, cli_verb_token_new, cli_verb_token_ls,
	cli_verb_token_revoke, cli_verb_session_new, cli_verb_session_end, cli_verb_session_ls,
	cli_verb_audit_tail, cli_verb_audit_verify, cli_verb_policy_check;

#endif
