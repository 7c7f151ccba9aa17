/* Argument and result tables of the operations. */
#ifndef COOP_INTERFACE_FIELDS_H
#define COOP_INTERFACE_FIELDS_H

#include "interface/schema.h"

extern const struct coop_field coop_sandbox_fields[], coop_limits_fields[], coop_injection_fields[],
	coop_record_fields[];

extern const struct coop_field coop_fields_none[];
extern const struct coop_field coop_fields_doctor[];

extern const struct coop_field coop_fields_spawn[], coop_fields_list[], coop_fields_status[],
	coop_fields_wait[], coop_fields_read[], coop_fields_follow[], coop_fields_write_stdin[],
	coop_fields_id[], coop_fields_resize[], coop_fields_keep[], coop_fields_signal[],
	coop_fields_stop[], coop_fields_release[], coop_fields_shutdown[], coop_fields_check[],
	coop_fields_cancel[], coop_fields_session_new[], coop_fields_session_end[],
	coop_fields_login[], coop_fields_ceiling[], coop_fields_agents[], coop_fields_agent_list[],
	coop_fields_agent_show[], coop_fields_agent_add[], coop_fields_agent_set[],
	coop_fields_agent_stored[], coop_fields_agent_remove[], coop_fields_token_new[],
	coop_fields_token_revoke[], coop_fields_history[], coop_fields_follow_events[],
	coop_fields_audit_tail[], coop_fields_audit_verify[], coop_fields_completions[],
	coop_fields_reader[], coop_fields_wait_port[], coop_fields_hold[], coop_fields_note[];

extern const struct coop_field coop_results_process[], coop_results_processes[],
	coop_results_status[], coop_results_wait[], coop_results_read[], coop_results_follow[],
	coop_results_write_stdin[], coop_results_close_stdin[], coop_results_resize[],
	coop_results_signal[], coop_results_receipt[], coop_results_frozen[],
	coop_results_release[], coop_results_gc[], coop_results_info[], coop_results_metrics[],
	coop_results_shutdown[], coop_results_shells[], coop_results_describe[],
	coop_results_check[], coop_results_cancel[], coop_results_session[],
	coop_results_sessions[], coop_results_ended[], coop_results_login[], coop_results_ceiling[],
	coop_results_agent[], coop_results_agents[], coop_results_removed[], coop_results_token[],
	coop_results_tokens[], coop_results_revoked[], coop_results_history[],
	coop_results_audit_tail[], coop_results_audit_verify[], coop_results_reload[],
	coop_results_doctor[], coop_results_completions[], coop_results_reader[],
	coop_results_wait_port[], coop_results_spawn[], coop_results_hold[], coop_results_note[];

#endif
