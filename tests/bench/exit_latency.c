/* Time from a child's last instruction until the one who waits for it knows: through a blocking
 * waitpid (the floor), or through the keeper by a wait that is on its way.
 *
 *     exit_latency floor|coop COUNT STAMPER FILE
 *
 * Prints one line of nanoseconds for each child. */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static const volatile uint64_t *share(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)sizeof(uint64_t)) < 0)
		bench_fail_errno(file);
	void *place = mmap(NULL, sizeof(uint64_t), PROT_READ, MAP_SHARED, fd, 0);
	if (place == MAP_FAILED)
		bench_fail_errno("mmap");
	(void)close(fd);
	return place;
}

static uint64_t by_waitpid(char **argv)
{
	char *const envp[] = {NULL};
	pid_t pid;
	int status;

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, envp))
		bench_fail("posix_spawn", argv[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		bench_fail("did not exit with 0", argv[0]);
	return bench_now();
}

static uint64_t by_keeper(struct coop *coop, const char *spawn_args)
{
	struct coop_error error;
	struct coop_reply *spawned, *ended;
	char id[COOP_ID_SIZE], args[COOP_ID_SIZE + 16];

	if (coop_call(coop, "spawn", spawn_args, NULL, 0, &spawned, &error) < 0)
		bench_fail("spawn", error.message);
	bench_id(coop_reply_json(spawned), id);
	(void)snprintf(args, sizeof args, "{\"id\":\"%s\"}", id);
	if (coop_call(coop, "wait", args, NULL, 0, &ended, &error) < 0)
		bench_fail("wait", error.message);
	uint64_t known = bench_now();
	bench_check_end(coop_reply_json(ended));
	coop_reply_free(spawned);
	coop_reply_free(ended);
	return known;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		bench_fail("usage: exit_latency floor|coop COUNT STAMPER FILE", NULL);
	struct coop *coop = !strcmp(argv[1], "coop") ? bench_connect() : NULL;
	const volatile uint64_t *stamp = share(argv[4]);
	char *child[] = {argv[3], argv[4], NULL};
	char *spawn_args = bench_spawn_args(child, "");

	for (size_t left = bench_number(argv[2]); left; left--) {
		uint64_t known = coop ? by_keeper(coop, spawn_args) : by_waitpid(child);
		printf("%" PRIu64 "\n", known - *stamp);
	}
	coop_close(coop);
	free(spawn_args);
	return 0;
}
