/* coop-files: file work for the gateway, done by a process inside the sandbox concerned, with that
 * sandbox's rights and root. frame.h tells what is said on stdin and stdout. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/mem.h"
#include "doors/files/talk.h"

int main(int argc, char **argv)
{
	static struct files_server server = {.signals = -1};
	const char *why = "";

	(void)argv;
	if (argc != 1) {
		(void)fputs("usage: coop-files (the gateway starts it)\n", stderr);
		return 2;
	}
	/* Executed from a descriptor it has no name of its own. */
	(void)prctl(PR_SET_NAME, "coop-files");
	coop_mem_init();
	int r = files_serve(&server, &why);
	files_server_clear(&server);
	if (r < 0)
		(void)fprintf(stderr, "coop-files: %s: %s\n", why, strerror(-r));
	return r < 0;
}
