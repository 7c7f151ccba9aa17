#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

void coop_log(enum coop_log_level level, const char *format, ...)
{
	static const char *const names[] = {"info", "warn", "error"};
	char line[1024], when[COOP_CLOCK_TEXT];
	va_list arguments;

	coop_clock_format(coop_clock_wall_ms(), when);
	int used = snprintf(line, sizeof line, "%s %s ", when, names[level]);
	va_start(arguments, format);
	(void)vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
	va_end(arguments);
	size_t size = strlen(line);
	/* Names and paths of others are in it: none of them may begin a line of its own, or speak to a terminal. */
	for (char *at = line; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
	line[size] = '\n';
	/* One write, so that lines of several programs on one stderr stay whole. A full disk must not stop the keeper. */
	ssize_t written = write(STDERR_FILENO, line, size + 1);
	(void)written;
}
