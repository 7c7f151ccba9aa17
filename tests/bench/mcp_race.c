/* Calls of tools over the pipes of MCP servers, each party in turn, COUNT times over.
 *
 *     mcp_race COUNT AT_ONCE BEFORE PARTY...
 *
 * A party is a group of words that ends with ";": NAME CALL PROGRAM [ARGUMENT...] ;
 *
 * CALL are the params of a tools/call, as JSON. A go sends AT_ONCE such requests in one write, and
 * is over when so many answers have come. Prints `NAME NS` for each. BEFORE calls are made of each
 * party first, which are not counted: a program that is compiled as it runs gets faster. */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { PARTIES_MAX = 4, TEXT_MAX = 1 << 20, HEAD = 100 };

struct party {
	const char *name, *call;
	char **argv;
	pid_t pid;
	int in, out; /* the server's */
	uint64_t number;
	size_t have; /* bytes of answers that are not looked at */
	char *text;
	char *request;
	uint64_t *samples;
};

static void start(struct party *party)
{
	posix_spawn_file_actions_t actions;
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		bench_fail_errno("pipe2");
	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO) ||
	    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO) ||
	    posix_spawnp(&party->pid, party->argv[0], &actions, NULL, party->argv, environ))
		bench_fail("posix_spawn", party->argv[0]);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(in[0]);
	(void)close(out[1]);
	party->in = in[1];
	party->out = out[0];
}

static void send_text(const struct party *party, const char *text, size_t size)
{
	while (size) {
		ssize_t n = write(party->in, text, size);
		if (n < 0)
			bench_fail_errno(party->name);
		text += n;
		size -= (size_t)n;
	}
}

/* Whether a line is an answer, which must be a good one; servers also tell of things. */
static bool is_answer(const struct party *party, char *line, size_t size)
{
	size_t head = size < HEAD ? size : HEAD;

	if (memmem(line, head, "\"method\"", 8))
		return false;
	line[size] = 0;
	if (!strstr(line, "\"result\"") || strstr(line, "\"isError\":true"))
		bench_fail(party->name, line);
	return true;
}

/* Takes the whole lines that have come; how many were answers. */
static size_t take_lines(struct party *party)
{
	char *at = party->text, *end;
	size_t answers = 0, left = party->have;

	while ((end = memchr(at, '\n', left))) {
		answers += is_answer(party, at, (size_t)(end - at));
		left -= (size_t)(end + 1 - at);
		at = end + 1;
	}
	memmove(party->text, at, left);
	party->have = left;
	return answers;
}

static void wait_answers(struct party *party, size_t count)
{
	while (count) {
		ssize_t n = read(party->out, party->text + party->have, TEXT_MAX - party->have);
		if (n <= 0)
			bench_fail("the server has gone", party->name);
		party->have += (size_t)n;
		size_t answers = take_lines(party);
		count -= answers < count ? answers : count;
	}
}

/* So many requests, each with a number of its own, as one text. */
static size_t write_requests(struct party *party, size_t at_once)
{
	size_t size = 0;

	for (size_t i = 0; i < at_once; i++)
		size += (size_t)snprintf(party->request + size, TEXT_MAX - size,
					 "{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64
					 ",\"method\":\"tools/call\",\"params\":%s}\n",
					 ++party->number, party->call);
	return size;
}

static uint64_t go(struct party *party, size_t at_once)
{
	size_t size = write_requests(party, at_once);
	uint64_t began = bench_now();

	send_text(party, party->request, size);
	wait_answers(party, at_once);
	return bench_now() - began;
}

static void greet(struct party *party)
{
	static const char hello
		[] = "{\"jsonrpc\":\"2.0\",\"id\":\"hello\",\"method\":\"initialize\",\"params\":{"
		     "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{"
		     "\"name\":\"bench\",\"version\":\"1\"}}}\n",
	   ready[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

	send_text(party, hello, sizeof hello - 1);
	wait_answers(party, 1);
	send_text(party, ready, sizeof ready - 1);
}

/* The words of one party; those behind it. */
static char **read_party(char **words, struct party *party, size_t count)
{
	char **end = words;

	while (*end && strcmp(*end, ";") != 0)
		end++;
	if (!*end || end - words < 3)
		bench_fail("a party is NAME CALL PROGRAM [ARGUMENT...] ;", *words);
	*end = NULL;
	party->name = words[0];
	party->call = words[1];
	party->argv = words + 2;
	party->text = malloc(TEXT_MAX);
	party->request = malloc(TEXT_MAX);
	party->samples = calloc(count, sizeof *party->samples);
	if (!party->text || !party->request || !party->samples)
		bench_fail_errno("malloc");
	return end + 1;
}

static void finish(struct party *party, size_t count)
{
	for (size_t i = 0; i < count; i++)
		printf("%s %" PRIu64 "\n", party->name, party->samples[i]);
	(void)close(party->in);
	(void)waitpid(party->pid, NULL, 0);
	(void)close(party->out);
	free(party->text);
	free(party->request);
	free(party->samples);
}

int main(int argc, char **argv)
{
	struct party parties[PARTIES_MAX] = {0};
	size_t used = 0;

	if (argc < 5)
		bench_fail("usage: mcp_race COUNT AT_ONCE BEFORE PARTY...", NULL);
	size_t count = bench_number(argv[1]), at_once = bench_number(argv[2]);
	size_t before = strtoul(argv[3], NULL, 10);
	for (char **words = argv + 4; *words && used < PARTIES_MAX; used++)
		words = read_party(words, &parties[used], count);
	for (size_t i = 0; i < used; i++) {
		start(&parties[i]);
		greet(&parties[i]);
		for (size_t n = 0; n < before; n += at_once)
			(void)go(&parties[i], at_once);
	}
	for (size_t n = 0; n < count; n++) {
		for (size_t i = 0; i < used; i++)
			parties[i].samples[n] = go(&parties[i], at_once);
	}
	for (size_t i = 0; i < used; i++)
		finish(&parties[i], count);
	return 0;
}
