/* Forwards this program's stdin to a process, one piece at a time: the next is read when the kernel has taken the last, so
 * that a command that does not read makes the local writer wait, and nobody's memory grows. */
#ifndef COOP_CLI_FEEDER_H
#define COOP_CLI_FEEDER_H

#include <stdbool.h>

#include "cli.h"

#define CLI_FEEDER_PIECE (64u << 10)

/* Looks at what was typed before it is sent; may shorten it, or make it one byte longer. False: the user wants to leave; this
 * is the last that is sent. */
typedef bool cli_feeder_filter(void *user, char *bytes, size_t *size);

struct cli_feeder {
	struct cli *cli;
	const char *id;    /* of the process; must outlive the feeder */
	bool active;       /* there may be more to forward */
	bool busy;         /* a write is under way */
	bool close_at_end; /* the end of our stdin is the end of the command's */
	bool left;         /* the filter said so */
	cli_feeder_filter *filter;
	void *user;
	char *piece;
};

/* Can anything ever come from stdin? Not if it is closed or /dev/null. */
bool cli_stdin_useful(void);

/* Begins; what is set before (filter, user) stays. 0 or -ENOMEM. */
int cli_feeder_start(struct cli_feeder *feeder, struct cli *cli, const char *id, bool close_at_end);
void cli_feeder_free(struct cli_feeder *feeder);

/* Should stdin be polled now? */
static inline bool cli_feeder_wants(const struct cli_feeder *feeder)
{
	return feeder->active && !feeder->busy;
}

/* Takes a piece; to be called when poll says that there is one. */
void cli_feeder_pump(struct cli_feeder *feeder);

#endif
