/* From asking for a process to knowing its end, one at a time, each party in turn, COUNT times
 * over.
 *
 *     door_race COUNT PARTY...
 *
 * A party is a group of words that ends with ";":
 *
 *     exec NAME PROGRAM ;                posix_spawn and waitpid, its output read to the end
 *     keeper NAME SOCKET SPAWN ;         a spawn with those JSON arguments, and a wait, on an open
 * connection of libcoop ops NAME PORT TOKEN SPAWN ;        the same two operations over an open
 * HTTP connection start NAME PORT TOKEN START ;      a fresh WebSocket on /runtime/v1/process, that
 * frame, and frames until `exit` closing NAME PORT ;                a fresh WebSocket on /, read
 * until it closes
 *
 * Prints `NAME NS` for each. Each process must end with 0, as far as the server tells. What is
 * fresh is closed outside the time. */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "ws_link.h"

enum { PARTIES_MAX = 16, WARM_UP = 3 };

struct party {
	void (*once)(struct party *party);
	const char *name;
	char *const *words; /* behind the name */
	struct coop *coop;
	struct link_in in;
	uint64_t *samples;
};

static void exec_once(struct party *party)
{
	char *argv[] = {party->words[0], NULL}, byte;
	posix_spawn_file_actions_t actions;
	int pipes[2], status;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		bench_fail_errno("pipe2");
	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO) ||
	    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO) ||
	    posix_spawn(&pid, argv[0], &actions, NULL, argv, environ))
		bench_fail("posix_spawn", argv[0]);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(pipes[1]);
	if (read(pipes[0], &byte, 1) != 0)
		bench_fail("it should write nothing", argv[0]);
	(void)close(pipes[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		bench_fail("did not exit with 0", argv[0]);
}

static void wait_args(const char *spawned, char *ret, size_t size)
{
	char id[COOP_ID_SIZE];

	bench_id(spawned, id);
	(void)snprintf(ret, size, "{\"id\":\"%s\"}", id);
}

static void keeper_once(struct party *party)
{
	char args[COOP_ID_SIZE + 16];
	struct coop_reply *reply;
	struct coop_error error;

	if (coop_call(party->coop, "spawn", party->words[1], NULL, 0, &reply, &error) < 0)
		bench_fail("spawn", error.message);
	wait_args(coop_reply_json(reply), args, sizeof args);
	coop_reply_free(reply);
	if (coop_call(party->coop, "wait", args, NULL, 0, &reply, &error) < 0)
		bench_fail("wait", error.message);
	bench_check_end(coop_reply_json(reply));
	coop_reply_free(reply);
}

/* The body of an answer that must be a good one, with a NUL behind it; valid until the next. */
static char *read_answer(struct link_in *in)
{
	static const char length[] = "\r\ncontent-length:";
	char *end = NULL, *at;

	in->from = in->to = 0;
	while (!end) {
		if (!link_more(in))
			bench_fail("the gateway closed the connection", NULL);
		in->bytes[in->to] = 0;
		end = strstr(in->bytes, "\r\n\r\n");
	}
	for (at = in->bytes; at < end && strncasecmp(at, length, sizeof length - 1) != 0; at++)
		;
	if (strncmp(in->bytes, "HTTP/1.1 200 ", 13) != 0 || at == end)
		bench_fail("not the answer that was hoped for", in->bytes);
	size_t body = (size_t)(end + 4 - in->bytes);
	size_t size = strtoul(at + sizeof length - 1, NULL, 10);
	while (in->to < body + size) {
		if (!link_more(in))
			bench_fail("the gateway closed the connection", NULL);
	}
	in->bytes[body + size] = 0;
	return in->bytes + body;
}

static char *post(struct party *party, const char *op, const char *body)
{
	char text[4096];
	int size = snprintf(text, sizeof text,
			    "POST /v1/ops/%s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n"
			    "Authorization: Bearer %s\r\nContent-Type: application/json\r\n"
			    "Content-Length: %zu\r\n\r\n%s",
			    op, party->words[0], party->words[1], strlen(body), body);

	if (size >= (int)sizeof text)
		bench_fail("the request is too long", NULL);
	link_send(party->in.fd, text, (size_t)size);
	return read_answer(&party->in);
}

static void ops_once(struct party *party)
{
	char args[COOP_ID_SIZE + 16];

	wait_args(post(party, "spawn", party->words[2]), args, sizeof args);
	bench_check_end(post(party, "wait", args));
}

static void start_once(struct party *party)
{
	const char *text;

	ws_open(&party->in, (unsigned)bench_number(party->words[0]), "/runtime/v1/process",
		party->words[1]);
	ws_send(party->in.fd, party->words[2]);
	do {
		text = ws_receive(&party->in);
		if (!text)
			bench_fail("closed before the end", party->name);
	} while (!strstr(text, "\"type\":\"exit\""));
	if (!strstr(text, "\"exit_code\":0"))
		bench_fail("did not exit with 0", text);
}

static void closing_once(struct party *party)
{
	ws_open(&party->in, (unsigned)bench_number(party->words[0]), "/", NULL);
	while (ws_receive(&party->in))
		;
}

static const struct kind {
	const char *name;
	int words;
	void (*once)(struct party *party);
} kinds[] = {
	{"exec", 1, exec_once},   {"keeper", 2, keeper_once},   {"ops", 3, ops_once},
	{"start", 3, start_once}, {"closing", 1, closing_once},
};

static void connect_party(struct party *party)
{
	struct coop_options options = {.socket = party->words[0], .no_start = true};
	struct coop_error error;

	party->in.fd = -1;
	if (party->once == keeper_once && coop_open(&options, &party->coop, &error) < 0)
		bench_fail(party->words[0], error.message);
	if (party->once == ops_once)
		party->in.fd = link_connect((unsigned)bench_number(party->words[0]));
}

/* One group of words; gives what comes behind it. */
static char **set_party(struct party *party, char **words, size_t turns)
{
	int count = 0;

	while (words[count] && strcmp(words[count], ";") != 0)
		count++;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (!strcmp(words[0], kinds[i].name) && count == kinds[i].words + 2)
			party->once = kinds[i].once;
	}
	if (!party->once || !words[count])
		bench_fail("not a party", words[0]);
	party->name = words[1];
	party->words = words + 2;
	party->samples = calloc(turns, sizeof *party->samples);
	if (!party->samples)
		bench_fail_errno("calloc");
	connect_party(party);
	return words + count + 1;
}

static void run_once(struct party *party, size_t turn)
{
	uint64_t began = bench_now();

	party->once(party);
	party->samples[turn] = bench_now() - began;
	if (party->once == start_once || party->once == closing_once)
		(void)close(party->in.fd);
}

int main(int argc, char **argv)
{
	static struct party parties[PARTIES_MAX];
	size_t count = 0;

	if (argc < 3)
		bench_fail("usage: door_race COUNT PARTY...", NULL);
	size_t turns = bench_number(argv[1]) + WARM_UP;
	for (char **words = argv + 2; *words; count++) {
		if (count == PARTIES_MAX)
			bench_fail("too many parties", NULL);
		words = set_party(&parties[count], words, turns);
	}
	for (size_t turn = 0; turn < turns; turn++) {
		for (size_t i = 0; i < count; i++)
			run_once(&parties[(i + turn) % count], turn);
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t turn = WARM_UP; turn < turns; turn++)
			printf("%s %" PRIu64 "\n", parties[i].name, parties[i].samples[turn]);
		coop_close(parties[i].coop);
		free(parties[i].samples);
	}
	return 0;
}
