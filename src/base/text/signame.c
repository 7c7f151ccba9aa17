#include "base/text/signame.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	int number;
	const char *name;
} names[] = {
	{SIGHUP, "HUP"},   {SIGINT, "INT"},       {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},
	{SIGTRAP, "TRAP"}, {SIGABRT, "ABRT"},     {SIGBUS, "BUS"},   {SIGFPE, "FPE"},
	{SIGKILL, "KILL"}, {SIGUSR1, "USR1"},     {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"},
	{SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"},     {SIGTERM, "TERM"}, {SIGSTKFLT, "STKFLT"},
	{SIGCHLD, "CHLD"}, {SIGCONT, "CONT"},     {SIGSTOP, "STOP"}, {SIGTSTP, "TSTP"},
	{SIGTTIN, "TTIN"}, {SIGTTOU, "TTOU"},     {SIGURG, "URG"},   {SIGXCPU, "XCPU"},
	{SIGXFSZ, "XFSZ"}, {SIGVTALRM, "VTALRM"}, {SIGPROF, "PROF"}, {SIGWINCH, "WINCH"},
	{SIGIO, "IO"},     {SIGPWR, "PWR"},       {SIGSYS, "SYS"},   {SIGABRT, "IOT"},
	{SIGCHLD, "CLD"},  {SIGIO, "POLL"},
};

void coop_signame_format(int number, char ret_text[COOP_SIGNAME_TEXT])
{
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (names[i].number == number) {
			(void)snprintf(ret_text, COOP_SIGNAME_TEXT, "SIG%s", names[i].name);
			return;
		}
	}
	if (number == SIGRTMIN)
		(void)snprintf(ret_text, COOP_SIGNAME_TEXT, "SIGRTMIN");
	else if (number > SIGRTMIN && number <= SIGRTMAX)
		(void)snprintf(ret_text, COOP_SIGNAME_TEXT, "SIGRTMIN+%d", number - SIGRTMIN);
	else
		(void)snprintf(ret_text, COOP_SIGNAME_TEXT, "SIG%d", number);
}

static int parse_number(const char *text, int from, int to)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	long value = strtol(text, &end, 10);
	if (errno || *end || value < from || value > to)
		return -EINVAL;
	return (int)value;
}

static int parse_real_time(const char *text)
{
	int offset;

	if (!strcasecmp(text, "RTMIN"))
		return SIGRTMIN;
	if (!strcasecmp(text, "RTMAX"))
		return SIGRTMAX;
	if (!strncasecmp(text, "RTMIN+", 6)) {
		offset = parse_number(text + 6, 0, SIGRTMAX - SIGRTMIN);
		return offset < 0 ? offset : SIGRTMIN + offset;
	}
	if (!strncasecmp(text, "RTMAX-", 6)) {
		offset = parse_number(text + 6, 0, SIGRTMAX - SIGRTMIN);
		return offset < 0 ? offset : SIGRTMAX - offset;
	}
	return -EINVAL;
}

int coop_signame_parse(const char *text)
{
	if (*text >= '0' && *text <= '9')
		return parse_number(text, 1, SIGRTMAX);
	if (!strncasecmp(text, "SIG", 3))
		text += 3;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (!strcasecmp(names[i].name, text))
			return names[i].number;
	}
	return parse_real_time(text);
}
