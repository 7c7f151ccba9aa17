#include "base/io/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

/* A process has one stderr, and so one of these; several threads log. */
static atomic_int spare = -1;
static atomic_uint left_out;

void coop_log_spare(int fd)
{
	atomic_store(&spare, fd);
}

/* One write, so that lines of several programs on one stderr stay whole. A full disk must not stop
 * the program. False: stderr is a pipe that would have to be waited for. */
static bool put(const char *line, size_t size)
{
	if (write(STDERR_FILENO, line, size) >= 0)
		return true;
	if (errno == EPIPE) {
		int fd = atomic_exchange(&spare, -1);
		if (fd >= 0 && dup2(fd, STDERR_FILENO) >= 0)
			(void)!write(STDERR_FILENO, line, size);
		return true;
	}
	return errno != EAGAIN;
}

static bool put_line(const char *when, const char *level, const char *text)
{
	char line[1024];

	int n = snprintf(line, sizeof line - 1, "%s %s %s", when, level, text);
	size_t size = (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
	/* Names and paths of others are in it: none of them may begin a line of its own, or speak
	 * to a terminal. */
	for (size_t i = 0; i < size; i++) {
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	}
	line[size] = '\n';
	return put(line, size + 1);
}

/* Before the next line, how many before it were left out. */
static void put_left_out(const char *when)
{
	unsigned count = atomic_exchange(&left_out, 0);
	char text[128];

	if (!count)
		return;
	(void)snprintf(text, sizeof text, "lines were left out, as nobody took them count=%u",
		       count);
	if (!put_line(when, "warn", text))
		atomic_fetch_add(&left_out, count);
}

void coop_log(enum coop_log_level level, const char *format, ...)
{
	static const char *const names[] = {"info", "warn", "error"};
	char text[1024], when[COOP_CLOCK_TEXT];
	va_list arguments;

	coop_clock_format(coop_clock_wall_ms(), when);
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	put_left_out(when);
	if (!put_line(when, names[level], text))
		atomic_fetch_add(&left_out, 1);
}
