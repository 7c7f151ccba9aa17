/* How long the keeper takes to refuse. On stdin one question a line, `KIND OP ARGUMENTS`: a number
 * below 64, an operation, and its arguments as JSON. Each must be refused in the same way.
 *
 *     refusals ROUNDS SEED <QUESTIONS
 *
 * Each round asks all of them once, in an order of its own. Prints `KIND NANOSECONDS` for each, in
 * the order they were asked in, and nothing if two refusals differ in their words. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { MAX_QUESTIONS = 4096, MAX_LINE = 512 };

struct question {
	unsigned kind;
	char op[16];
	char *args;
};

struct sample {
	unsigned kind;
	uint64_t ns;
};

static size_t read_questions(struct question *questions)
{
	char line[MAX_LINE];
	size_t count = 0;
	int end;

	while (fgets(line, sizeof line, stdin)) {
		struct question *question = &questions[count];

		line[strcspn(line, "\n")] = 0;
		if (count == MAX_QUESTIONS ||
		    sscanf(line, "%u %15s %n", &question->kind, question->op, &end) != 2)
			bench_fail("not a question", line);
		question->args = strdup(line + end);
		if (!question->args)
			bench_fail_errno("strdup");
		count++;
	}
	return count;
}

/* Good enough to shuffle, and the same for the same seed everywhere. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void shuffle(struct question *questions, size_t count, uint64_t *state)
{
	for (size_t left = count; left > 1; left--) {
		size_t at = next_random(state) % left;
		struct question swap = questions[left - 1];

		questions[left - 1] = questions[at];
		questions[at] = swap;
	}
}

static uint64_t ask(struct coop *coop, const struct question *question)
{
	static struct coop_error first;
	struct coop_error error;
	struct coop_reply *reply;
	uint64_t began = bench_now();

	if (coop_call(coop, question->op, question->args, NULL, 0, &reply, &error) >= 0)
		bench_fail("was not refused", question->args);
	uint64_t took = bench_now() - began;
	if (!*first.code)
		first = error;
	if (strcmp(first.code, error.code) != 0 || strcmp(first.message, error.message) != 0 ||
	    strcmp(first.details, error.details) != 0)
		bench_fail(first.message, error.message);
	return took;
}

int main(int argc, char **argv)
{
	static struct question questions[MAX_QUESTIONS];

	if (argc != 3)
		bench_fail("usage: refusals ROUNDS SEED <QUESTIONS", NULL);
	size_t rounds = bench_number(argv[1]), count = read_questions(questions), used = 0;
	uint64_t state = bench_number(argv[2]);
	struct sample *samples = calloc(rounds * count + 1, sizeof *samples);
	struct coop *coop = bench_connect();

	if (!samples)
		bench_fail_errno("calloc");
	for (size_t round = 0; round < rounds; round++) {
		shuffle(questions, count, &state);
		for (size_t i = 0; i < count; i++)
			samples[used++] =
				(struct sample){questions[i].kind, ask(coop, &questions[i])};
	}
	for (size_t i = 0; i < used; i++)
		printf("%u %" PRIu64 "\n", samples[i].kind, samples[i].ns);
	coop_close(coop);
	for (size_t i = 0; i < count; i++)
		free(questions[i].args);
	free(samples);
	return 0;
}
