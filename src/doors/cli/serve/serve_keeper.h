/* The keeper behind coop serve: the one that runs, else one of its own in the foreground, started
 * again when it is gone. */
#ifndef COOP_CLI_SERVE_KEEPER_H
#define COOP_CLI_SERVE_KEEPER_H

#include <limits.h>
#include <stdint.h>
#include <sys/un.h>

#include "doors/cli/cli.h"
#include "doors/cli/serve/serve_child.h"

/* The connection is cli->coop: the user's own, as the operator. A keeper that was started on demand
 * does not leave while it is open. */
struct cli_serve_keeper {
	struct cli *cli;
	struct coop_child child; /* ours; pid 0: none */
	int ready_fd;            /* it says there that it serves, or why not; -1: not starting */
	int lock_fd;             /* held meanwhile: nobody else starts one */
	char said[512];
	size_t said_size;
	char gate[sizeof((struct sockaddr_un){0}.sun_path)]; /* "": there is none to connect to */
	char state_dir[PATH_MAX];
	struct cli_serve_deaths deaths;
	uint64_t again_at;    /* coop_clock_now(); 0: nothing is to be done by time */
	uint64_t deadline;    /* while it is starting */
	uint64_t other_until; /* so long another one that is starting is waited for; 0: none is */
	bool closing;         /* nothing is started any more; the user's to set */
	bool fresh; /* a connection was made: look at what depends on it; the user's to clear */
};

void cli_serve_keeper_init(struct cli_serve_keeper *keeper, struct cli *cli);

/* Connects, or starts one. 0, or a negative errno with *error filled. */
int cli_serve_keeper_begin(struct cli_serve_keeper *keeper, struct coop_error *error);

/* What to poll for, CLI_SERVE_KEEPER_POLLS entries at most; returns how many. */
#define CLI_SERVE_KEEPER_POLLS 3
struct pollfd;
size_t cli_serve_keeper_poll(const struct cli_serve_keeper *keeper, struct pollfd *ret);
/* When something is to be done even if nothing happens; 0: never. */
uint64_t cli_serve_keeper_due(const struct cli_serve_keeper *keeper);

/* Looks at all that may have happened, without waiting. 0, or a negative errno with *error filled:
 * it could not be started; it is tried again if this is called again. */
int cli_serve_keeper_step(struct cli_serve_keeper *keeper, uint64_t now, struct coop_error *error);

/* A connection to the gate, for somebody who has to log in there: a descriptor, or a negative
 * errno. */
int cli_serve_keeper_connect(const struct cli_serve_keeper *keeper);

/* Ends the keeper if it is ours, and waits for that; one that was found stays. */
void cli_serve_keeper_end(struct cli_serve_keeper *keeper);

#endif
