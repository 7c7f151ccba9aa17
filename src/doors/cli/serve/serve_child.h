/* The programs that coop serve runs: a keeper of its own, and gateways. */
#ifndef COOP_CLI_SERVE_CHILD_H
#define COOP_CLI_SERVE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/child.h"

/* What it is given: stdin and stdout are /dev/null, stderr is ours, `fds` are COOP_CHILD_FD and the
 * following ones; all others are closed. Signals are at their defaults. It has a session of its
 * own: the terminal's Ctrl-C is for coop serve, which ends them in order. */
struct cli_serve_program {
	const char *path;
	char *const *argv;
	char *const *env;
	const int *fds;
	size_t fd_count;
	const char *folder; /* where it runs; NULL: here */
	bool dies_along;    /* it gets SIGTERM if we die, however that happens */
	bool many_files;    /* as many open files as may be had */
};

/* 0 when it has been executed, or a negative errno. */
int cli_serve_child_start(const struct cli_serve_program *program, struct coop_child *ret);

/* How something ended, in words: "exit code 1", "signal 9". */
#define CLI_SERVE_END_TEXT 32
void cli_serve_child_end_text(int status, char ret_text[CLI_SERVE_END_TEXT]);

#define CLI_SERVE_DEATHS 3

/* The latest deaths of something that is to run for ever. */
struct cli_serve_deaths {
	uint64_t at[CLI_SERVE_DEATHS]; /* coop_clock_now() */
	size_t count;
};

/* Notes a death and says when it is to be started again: at once, or in a second if this has been
 * the third one within ten. */
uint64_t cli_serve_deaths_add(struct cli_serve_deaths *deaths, uint64_t now);

#endif
