/* A keeper of this program's own: whatever happens to this program, nothing that it started
 * stays behind.
 *
 *     private PROGRAM [ARGUMENT…]
 *
 * Try it: start `private sh -c 'sleep 1000 & sleep 1000'`, kill it with SIGKILL, and look for
 * the sleeps. */
#include <coop.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Noreturn void fail(const char *what, const struct coop_error *error)
{
	fprintf(stderr, "private: %s: %s (%s)\n", what, error->message, error->code);
	exit(1);
}

int main(int argc, char **argv)
{
	struct coop *coop;
	struct coop_error error;
	struct coop_end end;
	char id[COOP_ID_SIZE];

	if (argc < 2) {
		fprintf(stderr, "usage: private PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	/* No socket with a name, no records, no other clients. The keeper is our child, the
	 * commands are its own, so our handling of SIGCHLD, if we had any, would see nothing of
	 * them. */
	if (coop_open_private(NULL, &coop, &error) < 0)
		fail("start a keeper", &error);

	struct coop_spawn_options options = {.argv = (const char *const *)(argv + 1)};
	if (coop_spawn(coop, &options, id, &error) < 0)
		fail(argv[1], &error);
	printf("program %d, keeper %d, process %s\n", (int)getpid(), coop_keeper_pid(coop), id);
	fflush(stdout);

	if (coop_wait(coop, id, -1, &end, &error) < 0)
		fail("wait", &error);
	printf("%s, code %d, signal %d, %s\n", end.state, end.exit_code, end.signal, end.cause);
	/* Ends the keeper, and with it what the command may have left running. Not needed for
	 * that: exit does the same. */
	coop_close(coop);
	return 0;
}
