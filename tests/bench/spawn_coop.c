/* Starts COUNT processes through the keeper, WIDTH of them at a time on one connection, and has the output and end of
 * each: a spawn and a wait that brings the output.
 *
 *     spawn_coop WIDTH COUNT OUTPUT_BYTES PROGRAM [ARGUMENT...]
 *
 * Prints the nanoseconds it took. Each must exit with 0 and have written exactly OUTPUT_BYTES. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

struct work {
	struct coop *coop;
	const char *spawn_args;
	size_t left;    /* to be started */
	size_t running; /* started, end not known */
	size_t output;  /* what each must write */
};

struct job {
	struct work *work;
	size_t output;
};

static void submit(struct job *job, const char *op, const char *args,
		   const struct coop_handler *handler)
{
	struct coop_error error;

	if (coop_submit(job->work->coop, op, args, NULL, 0, handler, NULL, &error) < 0)
		bench_fail(op, error.message);
}

static void start(struct job *job);

static void on_bytes(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct job *job = user;

	(void)request;
	job->output += chunk->size;
}

static void on_end(void *user, uint64_t request, int status, const char *json,
		   const struct coop_error *error)
{
	struct job *job = user;

	(void)request;
	if (status < 0)
		bench_fail("wait", error->message);
	bench_check_end(json);
	if (job->output != job->work->output)
		bench_fail("output is not what it should be", json);
	job->work->running--;
	if (job->work->left)
		start(job);
}

static void on_started(void *user, uint64_t request, int status, const char *json,
		       const struct coop_error *error)
{
	struct job *job = user;
	struct coop_handler handler = {.data = on_bytes, .done = on_end, .user = job};
	char id[COOP_ID_SIZE], args[COOP_ID_SIZE + 64];

	(void)request;
	if (status < 0)
		bench_fail("spawn", error->message);
	bench_id(json, id);
	(void)snprintf(args, sizeof args, "{\"id\":\"%s\",\"output_bytes\":65536}", id);
	submit(job, "wait", args, &handler);
}

static void start(struct job *job)
{
	struct coop_handler handler = {.done = on_started, .user = job};

	job->output = 0;
	job->work->left--;
	job->work->running++;
	submit(job, "spawn", job->work->spawn_args, &handler);
}

int main(int argc, char **argv)
{
	struct coop_error error;

	if (argc < 5)
		bench_fail("usage: spawn_coop WIDTH COUNT OUTPUT_BYTES PROGRAM [ARGUMENT...]",
			   NULL);
	size_t width = bench_number(argv[1]);
	char *spawn_args = bench_spawn_args(argv + 4, "");
	struct work work = {
		.coop = bench_connect(),
		.spawn_args = spawn_args,
		.left = bench_number(argv[2]),
		.output = strtoull(argv[3], NULL, 10),
	};
	struct job *jobs = calloc(width, sizeof *jobs);
	if (!jobs)
		bench_fail_errno("calloc");
	uint64_t began = bench_now();
	for (size_t i = 0; i < width && work.left; i++) {
		jobs[i].work = &work;
		start(&jobs[i]);
	}
	while (work.running) {
		if (coop_run(work.coop, -1, &error) < 0)
			bench_fail("connection", error.message);
	}
	printf("%" PRIu64 "\n", bench_now() - began);
	coop_close(work.coop);
	free(spawn_args);
	free(jobs);
	return 0;
}
