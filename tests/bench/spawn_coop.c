/* Starts COUNT processes through the keeper, WIDTH of them at a time, and has the output and end of
 * each: a spawn and a wait that brings the output.
 *
 *     spawn_coop WIDTH COUNT OUTPUT_BYTES PROGRAM [ARGUMENT...]
 *
 * Prints the nanoseconds it took. Each must exit with 0 and have written exactly OUTPUT_BYTES. All
 * are asked for on one connection, unless the environment has COOP_BENCH_TOKENS: then there is one
 * for each of its words, which is a token, or
 * "-" for none, and the requests in flight are dealt out to them in turn. COOP_BENCH_ARGS are the
 * arguments of the spawn, as JSON, instead of those for PROGRAM; with COOP_BENCH_CONFINED each
 * record must say that the sandbox is enforced. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct work {
	struct coop **connections;
	size_t connection_count;
	const char *spawn_args;
	size_t left;    /* to be started */
	size_t running; /* started, end not known */
	size_t output;  /* what each must write */
	bool confined;  /* each must be */
};

struct job {
	struct work *work;
	struct coop *coop; /* it asks on this one */
	size_t output;
};

static void submit(struct job *job, const char *op, const char *args,
		   const struct coop_handler *handler)
{
	struct coop_error error;

	if (coop_submit(job->coop, op, args, NULL, 0, handler, NULL, &error) < 0)
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
	if (job->work->confined)
		bench_check_confined(json);
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

static void connect_all(struct work *work)
{
	const char *tokens = getenv("COOP_BENCH_TOKENS");
	char *words = strdup(tokens ? tokens : ""), *rest = words;

	/* A word and what separates it are two bytes at least. */
	if (words)
		work->connections = calloc(strlen(words) / 2 + 1, sizeof(struct coop *));
	if (!work->connections)
		bench_fail_errno("tokens");
	for (char *word; (word = strtok_r(rest, " ", &rest));)
		work->connections[work->connection_count++] =
			bench_connect_as(!strcmp(word, "-") ? "" : word);
	if (!work->connection_count)
		work->connections[work->connection_count++] = bench_connect();
	free(words);
}

/* Until all that was started has ended. */
static void serve(struct work *work)
{
	struct pollfd *polls = calloc(work->connection_count, sizeof *polls);
	struct coop_error error;

	if (!polls)
		bench_fail_errno("calloc");
	while (work->running) {
		for (size_t i = 0; i < work->connection_count; i++) {
			polls[i].fd = coop_fd(work->connections[i]);
			polls[i].events = coop_poll_events(work->connections[i]);
		}
		if (poll(polls, (nfds_t)work->connection_count, -1) < 0 && errno != EINTR)
			bench_fail_errno("poll");
		for (size_t i = 0; i < work->connection_count; i++) {
			if (polls[i].revents && coop_dispatch(work->connections[i], &error) < 0)
				bench_fail("connection", error.message);
		}
	}
	free(polls);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		bench_fail("usage: spawn_coop WIDTH COUNT OUTPUT_BYTES PROGRAM [ARGUMENT...]",
			   NULL);
	size_t width = bench_number(argv[1]);
	const char *given = getenv("COOP_BENCH_ARGS");
	char *spawn_args = given ? strdup(given) : bench_spawn_args(argv + 4, "");
	struct work work = {
		.spawn_args = spawn_args,
		.left = bench_number(argv[2]),
		.output = strtoull(argv[3], NULL, 10),
		.confined = getenv("COOP_BENCH_CONFINED"),
	};
	connect_all(&work);
	struct job *jobs = calloc(width, sizeof *jobs);
	if (!jobs || !spawn_args)
		bench_fail_errno("calloc");
	uint64_t began = bench_now();
	for (size_t i = 0; i < width && work.left; i++) {
		jobs[i].work = &work;
		jobs[i].coop = work.connections[i % work.connection_count];
		start(&jobs[i]);
	}
	serve(&work);
	printf("%" PRIu64 "\n", bench_now() - began);
	for (size_t i = 0; i < work.connection_count; i++)
		coop_close(work.connections[i]);
	free(work.connections);
	free(spawn_args);
	free(jobs);
	return 0;
}
