/* The floor of a spawn: the same work as spawn_coop, done by a bare loop of posix_spawn, two pipes
 * and a pidfd in epoll.
 *
 *     spawn_floor WIDTH COUNT OUTPUT_BYTES PROGRAM [ARGUMENT...]
 *
 * Prints the nanoseconds it took. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define CAPTURE_MAX 65536u
#define EVENTS_MAX 64

enum source { FROM_STDOUT, FROM_STDERR, FROM_CHILD, SOURCES };

struct job {
	int fds[SOURCES]; /* -1: has ended */
	pid_t pid;
	size_t size;
	char capture[CAPTURE_MAX];
};

struct work {
	int epoll;
	char **argv;
	size_t left, running, output;
	struct job *jobs;
};

static void watch(const struct work *work, struct job *job, enum source source)
{
	uint64_t number = (uint64_t)(job - work->jobs) * SOURCES + source;
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = number};

	if (epoll_ctl(work->epoll, EPOLL_CTL_ADD, job->fds[source], &event) < 0)
		bench_fail_errno("epoll_ctl");
}

/* Out of epoll first: a child of another job that has not yet executed still holds the pipe. */
static void end(const struct work *work, struct job *job, enum source source)
{
	if (epoll_ctl(work->epoll, EPOLL_CTL_DEL, job->fds[source], NULL) < 0 ||
	    close(job->fds[source]) < 0)
		bench_fail_errno("close");
	job->fds[source] = -1;
}

static void start(struct work *work, struct job *job)
{
	posix_spawn_file_actions_t actions;
	int out[2], err[2];
	char *const envp[] = {NULL};

	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(err, O_CLOEXEC | O_NONBLOCK) < 0)
		bench_fail_errno("pipe2");
	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO) ||
	    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO))
		bench_fail("posix_spawn_file_actions", NULL);
	if (posix_spawn(&job->pid, work->argv[0], &actions, NULL, work->argv, envp))
		bench_fail("posix_spawn", work->argv[0]);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(out[1]);
	(void)close(err[1]);
	job->fds[FROM_STDOUT] = out[0];
	job->fds[FROM_STDERR] = err[0];
	job->fds[FROM_CHILD] = (int)syscall(SYS_pidfd_open, job->pid, 0);
	if (job->fds[FROM_CHILD] < 0)
		bench_fail_errno("pidfd_open");
	job->size = 0;
	work->left--;
	work->running++;
	for (enum source source = 0; source < SOURCES; source++)
		watch(work, job, source);
}

static void capture(const struct work *work, struct job *job, enum source source)
{
	ssize_t n =
		read(job->fds[source], job->capture + job->size, sizeof job->capture - job->size);

	if (n > 0)
		job->size += (size_t)n;
	else if (n == 0)
		end(work, job, source);
	else if (errno != EAGAIN)
		bench_fail_errno("read");
}

static void reap(const struct work *work, struct job *job)
{
	int status;

	if (waitpid(job->pid, &status, 0) != job->pid || status)
		bench_fail("did not exit with 0", work->argv[0]);
	end(work, job, FROM_CHILD);
}

static void handle(struct work *work, uint64_t number)
{
	struct job *job = &work->jobs[number / SOURCES];
	enum source source = (enum source)(number % SOURCES);

	if (source == FROM_CHILD)
		reap(work, job);
	else
		capture(work, job, source);
	for (int i = 0; i < SOURCES; i++) {
		if (job->fds[i] >= 0)
			return;
	}
	if (job->size != work->output)
		bench_fail("output is not what it should be", NULL);
	work->running--;
	if (work->left)
		start(work, job);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		bench_fail("usage: spawn_floor WIDTH COUNT OUTPUT_BYTES PROGRAM [ARGUMENT...]",
			   NULL);
	size_t width = bench_number(argv[1]);
	struct work work = {
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.argv = argv + 4,
		.left = bench_number(argv[2]),
		.output = strtoull(argv[3], NULL, 10),
		.jobs = calloc(width, sizeof *work.jobs),
	};
	if (work.epoll < 0 || !work.jobs)
		bench_fail_errno("epoll_create1");
	uint64_t began = bench_now();
	for (size_t i = 0; i < width && work.left; i++)
		start(&work, &work.jobs[i]);
	while (work.running) {
		struct epoll_event events[EVENTS_MAX];
		int count = epoll_wait(work.epoll, events, EVENTS_MAX, -1);
		for (int i = 0; i < count; i++)
			handle(&work, events[i].data.u64);
	}
	printf("%" PRIu64 "\n", bench_now() - began);
	free(work.jobs);
	return 0;
}
