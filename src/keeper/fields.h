/* Argument and result tables of the operations. */
#ifndef COOP_KEEPER_FIELDS_H
#define COOP_KEEPER_FIELDS_H

#include "base/schema.h"

extern const struct coop_field coop_fields_none[];

extern const struct coop_field coop_fields_spawn[], coop_fields_list[], coop_fields_status[],
	coop_fields_wait[], coop_fields_read[], coop_fields_follow[], coop_fields_write_stdin[],
	coop_fields_id[], coop_fields_resize[], coop_fields_keep[], coop_fields_signal[],
	coop_fields_stop[], coop_fields_release[], coop_fields_shutdown[];

extern const struct coop_field coop_results_process[], coop_results_processes[],
	coop_results_status[], coop_results_wait[], coop_results_read[], coop_results_follow[],
	coop_results_write_stdin[], coop_results_close_stdin[], coop_results_resize[],
	coop_results_signal[], coop_results_receipt[], coop_results_release[], coop_results_gc[],
	coop_results_info[], coop_results_shutdown[], coop_results_shells[],
	coop_results_describe[];

#endif
