/* Follows two processes at once, in a poll loop of its own that also listens to somebody else.
 *
 *     follow2 COMMAND COMMAND      (two lines for the shell)
 *
 * Every line of output is shown with the number of its process. `q` and Enter stops both. */
#include <coop.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
	int number;
	int done;
	char id[COOP_ID_SIZE];
	char args[COOP_ID_SIZE + 16]; /* of requests that name it: {"id":"…"} */
	char line[256];               /* what has come of the present line */
	size_t used;
};

static _Noreturn void fail(const char *what, const struct coop_error *error)
{
	fprintf(stderr, "follow2: %s: %s (%s)\n", what, error->message, error->code);
	exit(1);
}

static void print_line(struct process *process)
{
	printf("%d| %.*s\n", process->number, (int)process->used, process->line);
	fflush(stdout);
	process->used = 0;
}

/* Chunks end anywhere, so lines are put together here. */
static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct process *process = user;
	const char *bytes = chunk->data;

	(void)request;
	for (size_t i = 0; i < chunk->size; i++) {
		if (bytes[i] == '\n' || process->used == sizeof process->line)
			print_line(process);
		if (bytes[i] != '\n')
			process->line[process->used++] = bytes[i];
	}
}

/* "attached" comes first; "gap" tells of bytes that were produced faster than anybody read them. */
static void on_event(void *user, uint64_t request, const char *json)
{
	const struct process *process = user;

	(void)request;
	if (strstr(json, "\"event\":\"gap\"") || strstr(json, "\"event\": \"gap\""))
		printf("%d: some output was lost: %s\n", process->number, json);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct process *process = user;

	(void)request;
	(void)json;
	if (process->used)
		print_line(process);
	if (status < 0)
		printf("%d: %s\n", process->number, error->message);
	process->done = 1;
}

static void start(struct coop *coop, struct process *process, const char *command)
{
	struct coop_error error;
	struct coop_handler handler = {
		.data = on_data, .event = on_event, .done = on_done, .user = process};
	/* These two are nobody's business but ours: they shall not outlive this program. */
	char *here = realpath(".", NULL);
	struct coop_spawn_sandbox sandbox = {.workspace = here}; /* all that they may change */
	struct coop_spawn_options options = {.command = command,
					     .merge_stderr = true,
					     .lease = COOP_LEASE_EPHEMERAL,
					     .sandbox = &sandbox};

	if (coop_spawn(coop, &options, process->id, &error) < 0)
		fail(command, &error);
	free(here);
	snprintf(process->args, sizeof process->args, "{\"id\":\"%s\"}", process->id);
	if (coop_submit(coop, "follow", process->args, NULL, 0, &handler, NULL, &error) < 0)
		fail("follow", &error);
}

/* Returns whether the user wants to quit; at end of file the fd is no longer polled. */
static int read_keys(struct pollfd *entry)
{
	char keys[64];
	ssize_t n = read(entry->fd, keys, sizeof keys);

	if (n <= 0)
		entry->fd = -1;
	return n > 0 && memchr(keys, 'q', (size_t)n) != NULL;
}

static void stop_both(struct coop *coop, const struct process *processes)
{
	/* Not coop_stop(), which would wait here: the loop goes on, and the follows end when the
	 * processes do. */
	for (int i = 0; i < 2; i++)
		(void)coop_submit(coop, "stop", processes[i].args, NULL, 0, NULL, NULL, NULL);
}

static void print_end(struct coop *coop, const struct process *process)
{
	struct coop_error error;
	struct coop_end end;

	if (coop_wait(coop, process->id, -1, &end, &error) < 0)
		fail("wait", &error);
	printf("%d: %s, code %d, signal %d, %s\n", process->number, end.state, end.exit_code,
	       end.signal, end.cause);
}

int main(int argc, char **argv)
{
	struct process processes[2] = {{.number = 1}, {.number = 2}};
	struct pollfd entries[2] = {{.fd = STDIN_FILENO, .events = POLLIN}};
	struct coop_error error;
	struct coop *coop;

	if (argc != 3) {
		fprintf(stderr, "usage: follow2 COMMAND COMMAND\n");
		return 2;
	}
	if (coop_open(NULL, &coop, &error) < 0)
		fail("connect", &error);
	for (int i = 0; i < 2; i++)
		start(coop, &processes[i], argv[1 + i]);

	while (!processes[0].done || !processes[1].done) {
		/* What the connection waits for changes, so it is asked each time. */
		entries[1] = (struct pollfd){.fd = coop_fd(coop), .events = coop_poll_events(coop)};
		if (poll(entries, 2, -1) < 0)
			continue;
		if (entries[0].revents && read_keys(&entries[0]))
			stop_both(coop, processes);
		if (entries[1].revents && coop_dispatch(coop, &error) < 0)
			fail("connection", &error);
	}
	for (int i = 0; i < 2; i++)
		print_end(coop, &processes[i]);
	coop_close(coop);
	return 0;
}
