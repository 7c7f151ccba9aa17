/* The terminal: typing into it, pasting, taking somebody else's. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tiocl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

/* The controlling terminal; without one the standard input, on which the call must be refused
 * before anybody asks what it is. */
static int terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	return fd >= 0 ? fd : STDIN_FILENO;
}

static struct attack_outcome type_into(const struct attack_context *context)
{
	(void)context;
	return attack_from(ioctl(terminal(), TIOCSTI, "#"));
}

/* The kernel ignores the upper half of the number; so must the filter. */
static struct attack_outcome type_with_high_bits(const struct attack_context *context)
{
	(void)context;
	return attack_from(syscall(SYS_ioctl, terminal(), UINT64_C(0xdead00000000) | TIOCSTI, "#"));
}

static struct attack_outcome paste(const struct attack_context *context)
{
	char request = TIOCL_PASTESEL;
	(void)context;
	return attack_from(ioctl(terminal(), TIOCLINUX, &request));
}

static struct attack_outcome paste_with_high_bits(const struct attack_context *context)
{
	char request = TIOCL_PASTESEL;
	(void)context;
	return attack_from(
		syscall(SYS_ioctl, terminal(), UINT64_C(0x100000000) | TIOCLINUX, &request));
}

static struct attack_outcome steal(int fd)
{
	if (fd < 0)
		return attack_refused(errno);
	struct attack_outcome outcome = attack_from(ioctl(fd, TIOCSCTTY, 1));
	(void)close(fd);
	return outcome;
}

/* The host's terminal belongs to another session; root could take it away. */
static struct attack_outcome steal_hosts(const struct attack_context *context)
{
	(void)setsid();
	return steal(open(attack_param(context, "HOST_TERMINAL"), O_RDWR | O_NOCTTY | O_CLOEXEC));
}

static struct attack_outcome steal_own(const struct attack_context *context)
{
	(void)context;
	(void)setsid();
	return steal(dup(STDIN_FILENO));
}

const struct attack attack_terminal[] = {
	{"S-022", type_into},
	{"S-023", type_with_high_bits},
	{"S-024", paste},
	{"S-024.high", paste_with_high_bits},
	{"S-025", steal_hosts},
	{"S-025.own", steal_own},
	{0},
};
