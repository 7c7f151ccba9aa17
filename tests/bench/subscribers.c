/* Attaches COUNT WebSockets to processes, in turn, and holds them.
 *
 *     subscribers PORT TOKEN COUNT ID...
 *
 * Prints "ready" when each has been told `started`, and ends when its standard input does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "ws_link.h"

static void attach(unsigned port, const char *token, const char *id)
{
	static struct link_in in;
	char target[256];
	const char *text;

	if (snprintf(target, sizeof target, "/runtime/v1/process/%s/connect", id) >=
	    (int)sizeof target)
		bench_fail("the id is too long", id);
	/* Its descriptor stays open: the program's end closes it. */
	ws_open(&in, port, target, token);
	do {
		text = ws_receive(&in);
		if (!text)
			bench_fail("not attached", id);
	} while (!strstr(text, "\"type\":\"started\""));
}

int main(int argc, char **argv)
{
	struct rlimit files;
	char byte;

	if (argc < 5)
		bench_fail("usage: subscribers PORT TOKEN COUNT ID...", NULL);
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		bench_fail_errno("getrlimit");
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		bench_fail_errno("setrlimit");
	unsigned port = (unsigned)bench_number(argv[1]);
	size_t count = bench_number(argv[3]), ids = (size_t)argc - 4;
	for (size_t i = 0; i < count; i++)
		attach(port, argv[2], argv[4 + i % ids]);
	(void)puts("ready");
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
