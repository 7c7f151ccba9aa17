/* The parts of coop logs: history in order of arrival, the last N lines of it, and printing. */
#ifndef COOP_CLI_LOGS_H
#define COOP_CLI_LOGS_H

#include <coop.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "doors/cli/cli.h"
#include "doors/cli/terminal/encoder.h"

/* Takes output on its way to the user. `at` is when it came, NULL where nobody knows any more. */
typedef void cli_logs_take(void *user, const struct coop_chunk *chunk, const char *at);

struct cli_logs_history {
	struct cli *cli;
	const char *id;
	const json_t *record;
	bool streams[CLI_STREAMS];      /* wanted ones */
	uint64_t position[CLI_STREAMS]; /* where to begin; afterwards: where it ended */
	uint64_t lost[CLI_STREAMS];     /* bytes that are no longer kept */
	bool times;
	cli_logs_take *take;
	void *user;
};

/* Brings all that is kept now: by bytes for one stream; of several in order of arrival, which the
 * event index tells, with what it no longer or not yet knows filled in from the rings. 0, or a
 * negative errno with *error filled. */
int cli_logs_read(struct cli_logs_history *history, struct coop_error *error);

/* Holds back all but the last `count` lines. A last line without its newline counts. */
struct cli_logs_tail;
struct cli_logs_tail *cli_logs_tail_new(uint64_t count);
/* A cli_logs_take. */
void cli_logs_tail_take(void *tail, const struct coop_chunk *chunk, const char *at);
/* Passes on what was held back, and frees it. */
void cli_logs_tail_end(struct cli_logs_tail *tail, cli_logs_take *take, void *user);

#endif
