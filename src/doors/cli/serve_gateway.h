/* The gateways that coop serve runs (src/doors/http), and its side of their broker: a gateway can connect to nothing, so it asks here for
 * connections to the keeper's gate. */
#ifndef COOP_CLI_SERVE_GATEWAY_H
#define COOP_CLI_SERVE_GATEWAY_H

#include "serve_child.h"
#include "serve_keeper.h"
#include "serve_listen.h"

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
	uint64_t again_at; /* when it is to be started; 0: not by time */
};

void cli_serve_worker_init(struct cli_serve_worker *worker);

/* 0, or a negative errno. */
int cli_serve_worker_start(struct cli_serve_worker *worker,
			   const struct cli_serve_gateway *gateway);

#define CLI_SERVE_WORKER_POLLS 2
size_t cli_serve_worker_poll(const struct cli_serve_worker *worker, struct pollfd *ret);

/* Answers what it asks, without waiting. True: it has ended, with *ret_status, and is to be started again or not. */
bool cli_serve_worker_step(struct cli_serve_worker *worker, const struct cli_serve_keeper *keeper,
			   int *ret_status);

void cli_serve_worker_signal(const struct cli_serve_worker *worker, int number);
/* Kills it if it still runs. */
void cli_serve_worker_end(struct cli_serve_worker *worker);

#endif
