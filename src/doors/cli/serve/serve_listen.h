/* The sockets that coop serve listens on. They stay open as long as it runs, so that clients wait,
 * and are not refused, while a gateway is started again. */
#ifndef COOP_CLI_SERVE_LISTEN_H
#define COOP_CLI_SERVE_LISTEN_H

#include <coop.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CLI_SERVE_LISTENERS_MAX 16
#define CLI_SERVE_URL_MAX 128

struct cli_serve_listener {
	int fd;
	bool tcp;
	bool loopback; /* nobody reaches it from another machine; also a Unix socket */
	bool wildcard; /* all addresses of this host */
	char address[CLI_SERVE_URL_MAX]; /* "127.0.0.1:7717", "[::1]:7717"; a path */
};

/* Zero-initialise it; ended with cli_serve_listeners_close(). */
struct cli_serve_listeners {
	struct cli_serve_listener list[CLI_SERVE_LISTENERS_MAX];
	size_t count;
	const char *made; /* the Unix socket that was made here, to be removed; NULL: none */
	dev_t device;
	ino_t inode;
};

/* Whether it is an address and a port. */
bool cli_serve_listen_valid(const char *text);

/* Each adds to the listeners: 0, or a negative errno with *error filled, which names the option. */

/* "127.0.0.1:7717", "[::1]:0", "localhost:7717". `insecure`: also an address that other machines
 * reach. */
int cli_serve_listen_tcp(struct cli_serve_listeners *listeners, const char *text, bool insecure,
			 struct coop_error *error);

/* A Unix socket for this user alone, at an absolute path that stays the caller's. One that nobody
 * answers on is replaced. */
int cli_serve_listen_unix(struct cli_serve_listeners *listeners, const char *path,
			  struct coop_error *error);

/* Those that systemd opened for this process (LISTEN_FDS), if any; the variables are taken out of
 * the environment. */
int cli_serve_listen_given(struct cli_serve_listeners *listeners, bool insecure,
			   struct coop_error *error);

void cli_serve_listeners_close(struct cli_serve_listeners *listeners);

#endif
