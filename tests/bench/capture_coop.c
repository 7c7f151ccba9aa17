/* Runs the command through the keeper, which captures its output into a ring of 1 MiB, and waits
 * for its end.
 *
 *     capture_coop EXPECTED_BYTES PROGRAM [ARGUMENT...]
 *
 * Prints the nanoseconds from the request to the known end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

int main(int argc, char **argv)
{
	struct coop_error error;
	struct coop_reply *spawned, *ended;
	char id[COOP_ID_SIZE], args[COOP_ID_SIZE + 16];

	if (argc < 3)
		bench_fail("usage: capture_coop EXPECTED_BYTES PROGRAM [ARGUMENT...]", NULL);
	struct coop *coop = bench_connect();
	char *spawn_args =
		bench_spawn_args(argv + 2, ",\"ring_bytes\":1048576,\"overflow\":\"drop_oldest\"");
	uint64_t began = bench_now();
	if (coop_call(coop, "spawn", spawn_args, NULL, 0, &spawned, &error) < 0)
		bench_fail("spawn", error.message);
	bench_id(coop_reply_json(spawned), id);
	(void)snprintf(args, sizeof args, "{\"id\":\"%s\"}", id);
	if (coop_call(coop, "wait", args, NULL, 0, &ended, &error) < 0)
		bench_fail("wait", error.message);
	uint64_t took = bench_now() - began;

	const char *json = coop_reply_json(ended);
	const char *streams = strstr(json, "\"streams\":");
	bench_check_end(json);
	if (!streams || bench_json_number(streams, "end") != bench_number(argv[1]))
		bench_fail("output is not what it should be", json);
	if (coop_release(coop, id, &error) < 0)
		bench_fail("release", error.message);
	printf("%" PRIu64 "\n", took);
	coop_reply_free(spawned);
	coop_reply_free(ended);
	coop_close(coop);
	free(spawn_args);
	return 0;
}
