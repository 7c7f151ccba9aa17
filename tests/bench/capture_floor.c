/* The floor of a capture: runs the command on a pipe of PIPE_BYTES and reads what it writes into a
 * ring of 1 MiB with blocking reads.
 *
 *     capture_floor PIPE_BYTES EXPECTED_BYTES PROGRAM [ARGUMENT...]
 *
 * Prints the nanoseconds from the start to the end of the command. */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define RING_SIZE (1u << 20)

static pid_t start(char **argv, size_t pipe_size, int *ret_fd)
{
	posix_spawn_file_actions_t actions;
	char *const envp[] = {NULL};
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0 || fcntl(ends[0], F_SETPIPE_SZ, (int)pipe_size) < 0)
		bench_fail_errno("pipe");
	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO))
		bench_fail("posix_spawn_file_actions", NULL);
	if (posix_spawn(&pid, argv[0], &actions, NULL, argv, envp))
		bench_fail("posix_spawn", argv[0]);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(ends[1]);
	*ret_fd = ends[0];
	return pid;
}

int main(int argc, char **argv)
{
	int fd, status;
	ssize_t n;
	size_t total = 0;

	if (argc < 4)
		bench_fail("usage: capture_floor PIPE_BYTES EXPECTED_BYTES PROGRAM [ARGUMENT...]",
			   NULL);
	char *ring = malloc(RING_SIZE);
	if (!ring)
		bench_fail_errno("malloc");
	uint64_t began = bench_now();
	pid_t pid = start(argv + 3, bench_number(argv[1]), &fd);
	while ((n = read(fd, ring + total % RING_SIZE, RING_SIZE - total % RING_SIZE)) > 0)
		total += (size_t)n;
	if (n < 0)
		bench_fail_errno("read");
	if (waitpid(pid, &status, 0) != pid || status)
		bench_fail("did not exit with 0", argv[3]);
	uint64_t ended = bench_now();
	if (total != bench_number(argv[2]))
		bench_fail("output is not what it should be", NULL);
	printf("%" PRIu64 "\n", ended - began);
	(void)close(fd);
	free(ring);
	return 0;
}
