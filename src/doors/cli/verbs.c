/* The table of verbs. A new verb is one file and one row here. */
#include "verbs.h"

#include <stddef.h>
#include <string.h>

const struct cli_verb *const cli_verbs[] = {
	&cli_verb_run,      &cli_verb_ps,
	&cli_verb_status,   &cli_verb_logs,
	&cli_verb_wait,     &cli_verb_stdin,
	&cli_verb_signal,   &cli_verb_kill,
	&cli_verb_stop,     &cli_verb_rm,
	&cli_verb_gc,       &cli_verb_attach,
	&cli_verb_top,      &cli_verb_op,
	&cli_verb_doctor,   &cli_verb_info,
	&cli_verb_shells,   &cli_verb_keeper,
	&cli_verb_shutdown, &cli_verb_version,
	&cli_verb_help,     NULL,
};

const struct cli_verb *cli_verb_find(const char *name)
{
	for (const struct cli_verb *const *verb = cli_verbs; *verb; verb++)
		if (strcmp((*verb)->name, name) == 0)
			return *verb;
	return NULL;
}
