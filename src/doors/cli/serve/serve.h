/* coop serve: what its files share. */
#ifndef COOP_CLI_SERVE_H
#define COOP_CLI_SERVE_H

#include "doors/cli/serve/serve_gateway.h"
#include "doors/cli/serve/serve_keeper.h"
#include "doors/cli/serve/serve_listen.h"

struct cli_serve_found; /* serve.c's own */

/* Filled by the options and by looking at them; what the loop needs. */
struct cli_serve {
	struct cli *cli;
	struct cli_serve_listeners listeners;
	struct cli_serve_gateway gateway;
	size_t worker_count;
	struct cli_serve_found *found;

	struct cli_serve_keeper keeper;
	struct cli_serve_worker workers[CLI_SERVE_WORKERS_MAX];
	char token_file[PATH_MAX];
	/* Called when the keeper is there for the first time, before there is a gateway: looks at
	 * what only the keeper can tell. */
	int (*prepare)(struct cli_serve *serve, struct coop_error *error);
	bool told;         /* the line that says that it serves was printed */
	uint64_t ready_by; /* before that; 0: there is no gateway yet */
	bool closing;      /* gateways drain, nothing is started again */
	uint64_t deadline; /* of that */
	bool prepared;
};

/* Runs keeper and gateways until a signal asks for the end. 0, or a negative errno with *error
 * filled: it could not begin. Everything that was started has ended then. */
int cli_serve_run(struct cli_serve *serve, struct coop_error *error);

/* Blocks the signals that end it, so that they wait until the loop looks at them. A descriptor, or
 * a negative errno. */
int cli_serve_signals(void);

/* Prints where it serves: a line for people, or with --json an object. */
void cli_serve_tell(const struct cli_serve *serve);

/* "http://127.0.0.1:7717", "unix:/path". */
void cli_serve_url(const struct cli_serve *serve, const struct cli_serve_listener *listener,
		   char *ret_url, size_t size);

#endif
