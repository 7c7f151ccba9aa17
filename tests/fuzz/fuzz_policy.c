/* The judgement of any text, as a line for a shell and as words without one: it stays within its
 * limits, says the same twice, a further level only narrows, and what stands before a text cannot
 * be hidden by it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define ARGV_MAX 64u

static const char *const workspace[] = {"/home/u/proj", NULL};

static void decide(const struct coop_policy *const *levels, size_t count, const char *const *argv,
		   const char *line, struct coop_verdict *ret)
{
	struct coop_policy_command command = {.argv = argv,
					      .shell_command = line,
					      .display = line ? line : argv[0],
					      .cwd = "/home/u/proj",
					      .home = "/home/u",
					      .path = "/nonexistent",
					      .workspace = workspace};

	assert(coop_policy_decide(levels, count, &command, ret) == 0);
	assert(ret->count <= COOP_DECISIONS_MAX);
	assert(ret->labels < 1u << COOP_RISK_COUNT);
	for (size_t i = 0; i < ret->count; i++) {
		const struct coop_decision *decision = &ret->decisions[i];
		assert(memchr(decision->reason, '\0', sizeof decision->reason));
		assert(decision->confidence > 0.0 && decision->confidence <= 1.0);
		assert(decision->action <= (i ? ret->decisions[i - 1].action : ret->action));
	}
}

static void check(const struct coop_policy *const *levels, const char *const *argv,
		  const char *line)
{
	static struct coop_verdict first, again;
	enum coop_action action = COOP_ACTION_ALLOW;

	for (size_t count = 0; count <= 3; count++) {
		decide(levels, count, argv, line, &first);
		decide(levels, count, argv, line, &again);
		assert(first.action == again.action && first.labels == again.labels &&
		       first.count == again.count);
		assert(first.action >= action);
		action = first.action;
	}
}

/* Levels, made once: the standard one, lists, patterns. */
static void make_levels(const struct coop_policy **ret)
{
	static struct coop_policy *made[3];
	struct coop_err err;

	if (!made[2]) {
		for (size_t i = 0; i < 3; i++)
			assert((made[i] = coop_policy_new()));
		coop_policy_standard(made[0]);
		assert(!coop_policy_set(made[1], "denied_commands", "nmap", "x", &err));
		assert(!coop_policy_set(made[1], "denied_commands", "/bin/nc", "x", &err));
		assert(!coop_policy_set(made[1], "deny_patterns", "*a*b*c*", "x", &err));
		assert(!coop_policy_set(made[2], "allowed_commands", "bash", "x", &err));
	}
	for (size_t i = 0; i < 3; i++)
		ret[i] = made[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const char before[] = "rm -rf /\n";
	const struct coop_policy *levels[3];
	const char *argv[ARGV_MAX + 1];
	static struct coop_verdict verdict;
	size_t count = 0;

	make_levels(levels);
	char *line = malloc(sizeof before + size);
	assert(line);
	memcpy(line, before, sizeof before - 1);
	memcpy(line + sizeof before - 1, input, size);
	line[sizeof before - 1 + size] = '\0';
	char *text = line + sizeof before - 1;

	const char *shell[] = {"/bin/bash", "-c", text, NULL};
	check(levels, shell, text);
	const char *spoilt[] = {"/bin/bash", "-c", line, NULL};
	decide(NULL, 0, spoilt, line, &verdict);
	assert(verdict.action == COOP_ACTION_DENY);

	for (char *word = text; word && count < ARGV_MAX; count++)
		argv[count] = strsep(&word, "\n");
	argv[count] = NULL;
	check(levels, argv, NULL);
	free(line);
	return 0;
}
