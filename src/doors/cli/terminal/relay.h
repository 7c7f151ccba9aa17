/* One process on this program's own stdin, stdout and stderr: what run and attach have in common.
 *
 * A poll loop over the keeper's connection, signals (by signalfd, so that every way out passes
 * through here and the terminal is put right again), stdin, and stdout and stderr while something
 * waits for them. While a local output is full nothing is read from the keeper, which so learns
 * that this reader is slow. */
#ifndef COOP_CLI_RELAY_H
#define COOP_CLI_RELAY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "doors/cli/cli.h"
#include "doors/cli/terminal/encoder.h"
#include "doors/cli/terminal/feeder.h"
#include "doors/cli/terminal/keys.h"
#include "doors/cli/terminal/sink.h"
#include "doors/cli/terminal/terminal.h"

#define CLI_ID_MAX 64

struct cli_relay {
	struct cli *cli;
	char id[CLI_ID_MAX]; /* "" until the process is known */
	bool pty;
	struct cli_sink out, err;
	struct cli_encoder encoder;
	struct cli_feeder feeder;
	struct cli_terminal terminal;
	struct cli_keys keys;
	int signal_fd;
	sigset_t mask_before;

	/* Called for every signal; may set `over`. */
	void (*on_signal)(struct cli_relay *relay, int number);
	/* Called once at this time (coop_clock_now()); 0: never. */
	uint64_t alarm_at;
	void (*on_alarm)(struct cli_relay *relay);
	void *user;

	bool killing;   /* cli_relay_kill() was called */
	bool abandoned; /* …and again: the keeper does not answer, and the user wants to go */
	bool over;      /* leave the loop, whatever is open */
	bool finished; /* the process has ended and all its output has come, or the follow failed */
	bool failed;   /* …that: `error` says why */
	json_t *record; /* the final one */
	struct coop_error error;
	uint64_t lost[CLI_STREAMS]; /* bytes that the keeper had to drop */

	/* With backpressure the keeper frees only what was acknowledged. Of each ring the last
	 * quarter is left unacknowledged, so that the latest output can still be read by others. */
	uint64_t ring[CLI_STREAMS], acknowledged[CLI_STREAMS];
	bool acknowledges;
	bool rest; /* the follow for what was left at the end is under way, or was */

	uint64_t called; /* the request of cli_relay_call() that is not answered yet; 0: none */
	int call_status;
};

/* Blocks the signals and prepares. 0, or a negative errno with cli->… nothing said. */
int cli_relay_init(struct cli_relay *relay, struct cli *cli, const sigset_t *signals);
/* Puts the terminal and the signals back and frees all. */
void cli_relay_free(struct cli_relay *relay);

/* Begins to follow this process; `args` adds to the request and is taken over. From a callback or
 * outside. */
void cli_relay_follow(struct cli_relay *relay, const json_t *record, json_t *args);

/* The handler of a request that starts a process and follows it, and what is asked of that follow:
 * the caller looks for the event `started`, and then calls cli_relay_begin(). */
struct coop_handler cli_relay_handler(struct cli_relay *relay);
json_t *cli_relay_follow_args(void);
void cli_relay_begin(struct cli_relay *relay, const json_t *record);

/* Acknowledge output as it comes: for a process with backpressure. Before cli_relay_follow(). */
void cli_relay_acknowledge(struct cli_relay *relay, const json_t *record);
/* Room for a command that waits already, because its ring is full: all is released but the last
 * `tail` bytes, which are about to be shown, or the last quarter. After cli_relay_follow(). */
void cli_relay_make_room(struct cli_relay *relay, const json_t *record, uint64_t tail);

/* Ends with this error. */
void cli_relay_fail(struct cli_relay *relay, const struct coop_error *error);

/* Runs until `over`, or until finished and all is written, or a local output fails (its sink's
 * `error`). */
void cli_relay_run(struct cli_relay *relay);

/* Sends a signal to the process's group without waiting for the answer. */
void cli_relay_signal(struct cli_relay *relay, int number);
/* One operation on the process, waited for, but not for ever: somebody whose signals are blocked
 * must not hang on a keeper that does not answer. `args` is taken over. 0, or negative: refused, or
 * not answered. */
int cli_relay_call(struct cli_relay *relay, const char *op, json_t *args, int timeout_ms);
/* Kills the process with its tree, and says so. The second time the user has waited long enough: it
 * is `abandoned` and over. */
void cli_relay_kill(struct cli_relay *relay);
/* Leaves at once, whatever the keeper does. */
void cli_relay_abandon(struct cli_relay *relay);
/* Says that it was abandoned. Returns the exit code, as of SIGINT. */
int cli_relay_say_abandoned(const struct cli_relay *relay);
/* Tells the process's terminal the size of the local one. */
void cli_relay_resize(struct cli_relay *relay);

/* A line of JSON output. */
void cli_relay_emit(struct cli_relay *relay, json_t *value);

/* A line on stderr while the terminal may be raw and its cursor anywhere. */
void cli_relay_note(const struct cli_relay *relay, const char *text);
/* A raw terminal does not go to the left at the end of a line: does so on stderr, if that is a
 * terminal. */
void cli_relay_to_left(void);
/* Ends the line in which the command's cursor stands; after cli_terminal_restore(). */
void cli_relay_end_line(void);

/* Says on stderr what was lost, one line for each stream. */
void cli_relay_say_lost(const struct cli_relay *relay);

#endif
