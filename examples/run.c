/* Runs a command under coop and prints what it prints, while it runs.
 *
 *     run PROGRAM [ARGUMENT…]
 *
 * The command belongs to the keeper: kill this program, and the command goes on (look for it
 * with `coop ps`). It may change what lies in the current folder, which must not be the home
 * folder itself. */
#include <coop.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Noreturn void fail(const char *what, const struct coop_error *error)
{
	fprintf(stderr, "run: %s: %s (%s)\n", what, error->message, error->code);
	exit(125);
}

static void write_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0)
			exit(125);
		bytes += n;
		size -= (size_t)n;
	}
}

/* Bytes come as the process wrote them, whatever they are; the keeper says which stream they
 * belong to. */
static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	(void)user;
	(void)request;
	int fd = chunk->stream == COOP_STDERR ? STDERR_FILENO : STDOUT_FILENO;
	write_all(fd, chunk->data, chunk->size);
}

struct follow {
	int done;
	int status;
	struct coop_error error;
};

/* The last thing that a request brings: its result, or why there is none. */
static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct follow *follow = user;

	(void)request;
	(void)json;
	follow->done = 1;
	follow->status = status;
	if (error)
		follow->error = *error;
}

static void follow_output(struct coop *coop, const char *id)
{
	struct coop_error error;
	struct follow follow = {0};
	struct coop_handler handler = {.data = on_data, .done = on_done, .user = &follow};
	char args[COOP_ID_SIZE + 16];

	snprintf(args, sizeof args, "{\"id\":\"%s\"}", id);
	if (coop_submit(coop, "follow", args, NULL, 0, &handler, NULL, &error) < 0)
		fail("follow", &error);
	/* Handlers run in here; it sleeps while there is nothing to do. A connection that breaks
	 * ends the request too. */
	while (!follow.done)
		(void)coop_run(coop, -1, NULL);
	if (follow.status < 0)
		fail("follow", &follow.error);
}

int main(int argc, char **argv)
{
	struct coop *coop;
	struct coop_error error;
	struct coop_end end;
	char id[COOP_ID_SIZE];

	if (argc < 2) {
		fprintf(stderr, "usage: run PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	/* NULL: this user's keeper, which is started if there is none. */
	if (coop_open(NULL, &coop, &error) < 0)
		fail("connect", &error);

	/* Of all files the command may change those in this folder, and no others. */
	char *here = realpath(".", NULL);
	struct coop_spawn_sandbox sandbox = {.workspace = here};
	struct coop_spawn_options options = {
		.argv = (const char *const *)(argv + 1),
		.why = "example run",
		.sandbox = &sandbox,
	};
	if (coop_spawn(coop, &options, id, &error) < 0)
		fail(argv[1], &error);
	free(here);
	follow_output(coop, id);
	if (coop_wait(coop, id, -1, &end, &error) < 0)
		fail("wait", &error);
	/* Its output and end could still be read for a while; nobody will. */
	if (coop_release(coop, id, &error) < 0)
		fail("release", &error);
	coop_close(coop);

	if (end.signal)
		fprintf(stderr, "run: %s by signal %d (%s)\n", end.state, end.signal, end.cause);
	return end.signal ? 128 + end.signal : end.exit_code;
}
