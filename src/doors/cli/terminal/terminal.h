/* The local terminal: its size, and raw mode that is always undone. */
#ifndef COOP_CLI_TERMINAL_H
#define COOP_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

enum cli_terminal_mode {
	CLI_TERMINAL_RAW, /* every key goes to the other side as it is */
	/* lines and local echo as usual, but Ctrl-] ends a line too, so that it is seen at once */
	CLI_TERMINAL_LINES,
	CLI_TERMINAL_KEYS, /* single keys, no echo, Ctrl-C still a signal */
};

struct cli_terminal {
	bool changed;
	enum cli_terminal_mode mode; /* if it was changed */
	struct termios before;
};

/* The size of the terminal that stdout, stdin or stderr is. False: none of them is one. */
bool cli_terminal_size(unsigned *ret_cols, unsigned *ret_rows);

/* Width for tables on stdout; 0 if it is not a terminal. */
size_t cli_terminal_width(void);

/* Changes the mode of stdin's terminal; does nothing if it is none. */
void cli_terminal_set(struct cli_terminal *terminal, enum cli_terminal_mode mode);
/* Puts back what was found at first. May be called any number of times. */
void cli_terminal_restore(struct cli_terminal *terminal);

#endif
