/* The gateways that coop serve runs (src/doors/http), and its side of their broker: a gateway can
 * connect to nothing, so it asks here for connections to the keeper's gate. */
#ifndef COOP_CLI_SERVE_GATEWAY_H
#define COOP_CLI_SERVE_GATEWAY_H

#include "doors/cli/serve/serve_child.h"
#include "doors/cli/serve/serve_keeper.h"
#include "doors/cli/serve/serve_listen.h"

#define CLI_SERVE_WORKERS_MAX 16
#define CLI_SERVE_NAMES_MAX 15 /* the gateway takes twice as many; addresses are names too */
#define CLI_SERVE_PROXIES_MAX 32
#define CLI_SERVE_FILE_MAX (1u << 20)

/* Bytes of a file that a gateway gets as an open descriptor: it can open none itself. */
struct cli_serve_bytes {
	void *data; /* NULL: there is none */
	size_t size;
};

/* What every gateway is started with; all of it stays the caller's. */
struct cli_serve_gateway {
	const char *program;
	const struct cli_serve_listeners *listeners;
	struct cli_serve_bytes cert, key;
	const struct cli_list *names, *origins, *proxies;
	const char *public_url;                /* NULL: not said */
	uint64_t ping_ms;                      /* 0: never */
	const char *profile, *workspace, *url; /* NULL: not said */
	bool no_workspace, bound; /* nothing is writable; somebody said how commands are confined */
	bool control_plane;
};

/* One process. */
struct cli_serve_worker {
	struct coop_child child; /* pid 0: none */
	int broker;              /* -1: none */
	bool ready;
	bool answering; /* an answer found no room: nothing is read until it has gone */
	int answer_fd;
	unsigned char answer;
	char held[128]; /* what confines it, in its own words */
	struct cli_serve_deaths deaths;
	uint64_t again_at;     /* when it is to be started; 0: not by time */
	uint64_t restarts;     /* how often it has ended, and another was started for it */
	uint64_t stands_until; /* stopped by a signal: when it is given up; 0: it runs */
};

/* A gateway that somebody has stopped (SIGSTOP) serves nobody, and keeps those waiting that connect
 * to it. So long it may be looked at, and go on. One that a debugger holds is the debugger's
 * alone. */
#define CLI_SERVE_STANDS_MAX_S 10

void cli_serve_worker_init(struct cli_serve_worker *worker);

/* 0, or a negative errno. */
int cli_serve_worker_start(struct cli_serve_worker *worker,
			   const struct cli_serve_gateway *gateway);

#define CLI_SERVE_WORKER_POLLS 2
size_t cli_serve_worker_poll(const struct cli_serve_worker *worker, struct pollfd *ret);

/* Answers what it asks, without waiting. True: it has ended, with *ret_status, and is to be started
 * again or not. */
bool cli_serve_worker_step(struct cli_serve_worker *worker, const struct cli_serve_keeper *keeper,
			   int *ret_status);

/* Looks whether it has been stopped or goes on, and kills it if it has stood still for too long. */
void cli_serve_worker_check(struct cli_serve_worker *worker, uint64_t now);

void cli_serve_worker_signal(const struct cli_serve_worker *worker, int number);
/* Kills it if it still runs. */
void cli_serve_worker_end(struct cli_serve_worker *worker);

#endif
