/* Starts up to COUNT processes through the keeper, WIDTH of them at a time, and leaves them
 * running; stops at the first that it refuses.
 *
 *     hold WIDTH COUNT PROGRAM [ARGUMENT...]
 *
 * Prints how many were started, and the code of the refusal or "-". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct work {
	size_t started, open;
	char refusal[32];
};

static void on_started(void *user, uint64_t request, int status, const char *json,
		       const struct coop_error *error)
{
	struct work *work = user;

	(void)request;
	(void)json;
	work->open--;
	if (status == 0)
		work->started++;
	else
		(void)snprintf(work->refusal, sizeof work->refusal, "%s", error->code);
}

int main(int argc, char **argv)
{
	struct work work = {0};
	struct coop_handler handler = {.done = on_started, .user = &work};
	struct coop_error error;

	if (argc < 4)
		bench_fail("usage: hold WIDTH COUNT PROGRAM [ARGUMENT...]", NULL);
	size_t width = bench_number(argv[1]), left = bench_number(argv[2]);
	struct coop *coop = bench_connect();
	char *spawn_args = bench_spawn_args(argv + 3, "");
	while (work.open || (left && !*work.refusal)) {
		for (; left && work.open < width && !*work.refusal; left--, work.open++) {
			if (coop_submit(coop, "spawn", spawn_args, NULL, 0, &handler, NULL,
					&error) < 0)
				bench_fail("spawn", error.message);
		}
		if (coop_run(coop, -1, &error) < 0)
			bench_fail("connection", error.message);
	}
	printf("%zu %s\n", work.started, *work.refusal ? work.refusal : "-");
	coop_close(coop);
	free(spawn_args);
	return 0;
}
