/* Ctrl-], the key that speaks to coop itself where a terminal is passed on to a process: then d
 * leaves the process running, k kills it with all that it started, Ctrl-] sends one, and before any
 * other key it is sent with that. Somebody who waits after the first is told. */
#ifndef COOP_CLI_KEYS_H
#define COOP_CLI_KEYS_H

#include <stdbool.h>
#include <stddef.h>

struct cli_relay;

struct cli_keys {
	bool seen;      /* Ctrl-] was the last key */
	bool only_look; /* k is not offered */
};

/* Watches what is typed from now on, and says what the keys do, behind `text`. The feeder has been
 * started, and stdin is a terminal; this sets its mode. */
void cli_keys_start(struct cli_relay *relay, const char *text);

#endif
