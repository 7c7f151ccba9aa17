#include "doors/cli/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

bool cli_terminal_size(unsigned *ret_cols, unsigned *ret_rows)
{
	static const int fds[] = {STDOUT_FILENO, STDIN_FILENO, STDERR_FILENO};
	struct winsize size;
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (ioctl(fds[i], TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
			*ret_cols = size.ws_col;
			*ret_rows = size.ws_row;
			return true;
		}
	return false;
}

size_t cli_terminal_width(void)
{
	struct winsize size;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col ? size.ws_col : 80;
}

static void make_keys(struct termios *mode)
{
	mode->c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	mode->c_cc[VMIN] = 1;
	mode->c_cc[VTIME] = 0;
}

void cli_terminal_set(struct cli_terminal *terminal, enum cli_terminal_mode mode)
{
	struct termios wanted;
	/* Each change waits until the terminal has shown all that was printed. */
	if (terminal->changed && terminal->mode == mode)
		return;
	if (!terminal->changed && tcgetattr(STDIN_FILENO, &terminal->before) < 0)
		return;
	wanted = terminal->before;
	switch (mode) {
	case CLI_TERMINAL_RAW:
		cfmakeraw(&wanted);
		break;
	case CLI_TERMINAL_LINES:
		wanted.c_cc[VEOL] = 0x1d;
		break;
	case CLI_TERMINAL_KEYS:
		make_keys(&wanted);
		break;
	}
	/* Keys typed ahead stay: they are meant for the command. */
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &wanted) == 0) {
		terminal->changed = true;
		terminal->mode = mode;
	}
}

void cli_terminal_restore(struct cli_terminal *terminal)
{
	if (!terminal->changed)
		return;
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
	terminal->changed = false;
}
