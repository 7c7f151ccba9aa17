/* Forwards this program's stdin to a process, one piece at a time: the next is read when the kernel
 * has taken the last, so that a command that does not read makes the local writer wait, and
 * nobody's memory grows. */
#ifndef COOP_CLI_FEEDER_H
#define COOP_CLI_FEEDER_H

#include <stdbool.h>

#include "base/buf.h"
#include "doors/cli/cli.h"

#define CLI_FEEDER_PIECE (64u << 10)

/* Looks at what was typed before it is sent; may shorten it, or make it one byte longer. False: the
 * user wants to leave; this is the last that is sent. Called with nothing at an end of file. */
typedef bool cli_feeder_filter(void *user, char *bytes, size_t *size);

struct cli_feeder {
	struct cli *cli;
	const char *id;    /* of the process; must outlive the feeder */
	bool active;       /* there may be more to forward */
	bool busy;         /* a write is under way */
	bool close_at_end; /* the end of our stdin is the end of the command's */
	bool close_due;    /* …and has come, behind what still waits */
	bool mute;         /* nothing is sent (any more); the filter still sees what is typed */
	bool left;         /* the filter said so */
	cli_feeder_filter *filter; /* only for a terminal */
	void *user;
	char *piece;
	struct coop_buf waiting; /* typed while a write was under way */
};

/* Can anything ever come from stdin? Not if it is closed or /dev/null. */
bool cli_stdin_useful(void);

/* Begins; what is set before (filter, user) stays. 0 or -ENOMEM. */
int cli_feeder_start(struct cli_feeder *feeder, struct cli *cli, const char *id, bool close_at_end);
void cli_feeder_free(struct cli_feeder *feeder);

/* Should stdin be polled now? Keys are looked at even while nobody takes what was typed: the user
 * may want to leave. */
static inline bool cli_feeder_wants(const struct cli_feeder *feeder)
{
	return feeder->active && (!feeder->busy || feeder->filter);
}

/* Has all that was taken from stdin been answered for? */
static inline bool cli_feeder_settled(const struct cli_feeder *feeder)
{
	return !feeder->busy && coop_buf_size(&feeder->waiting) == 0;
}

/* Takes a piece; to be called when poll says that there is one. */
void cli_feeder_pump(struct cli_feeder *feeder);

#endif
