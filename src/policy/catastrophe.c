/* What no policy can allow. The list is short on purpose: each entry ruins the machine or all of
 * the user's files. */
#include <stdlib.h>
#include <string.h>

#include "policy/programs.h"
#include "policy/risk.h"
#include "policy/runs.h"
#include "policy/target.h"
#include "policy/words.h"

static void check_vital(const struct coop_scene *scene, const struct coop_run *run,
			const struct coop_word *word, const char *what, bool root_only)
{
	struct coop_target target;

	if (word->flags & COOP_WORD_COMPUTED || !coop_target_make(scene, run, word, &target))
		return;
	if (root_only ? strcmp(target.path.text, "/") != 0 : !coop_target_vital(scene, &target))
		return;
	coop_risk_catastrophe(scene, run->name, what, word);
	coop_risk_add(scene, COOP_RISK_DESTRUCTIVE, run->name, what, word);
}

/* rm -r, chmod -R, chown -R. */
static void find_recursive(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	struct coop_args args = coop_runs_args(scene->runs, run);
	bool rm = run->program->kind == COOP_KIND_RM;

	if (!coop_args_have(run->program, words, run->count, 'R', "--recursive") &&
	    !(rm && coop_args_have(run->program, words, run->count, 'r', NULL)))
		return;
	while (coop_args_next(&args)) {
		if (coop_args_plain(&args))
			check_vital(scene, run, args.word,
				    rm ? "removes all of" : "changes the rights of all of", !rm);
	}
}

/* mv / somewhere: all arguments but the last. */
static void find_mv(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);

	for (size_t i = 0; i + 1 < run->count; i++)
		check_vital(scene, run, &words[i], "moves away", true);
}

/* The first word may be a signal; then come targets. */
static void find_kill(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	size_t i = 0;

	if (i < run->count && (!strcmp(words[i].text, "-s") || !strcmp(words[i].text, "-n")))
		i += 2;
	else if (i < run->count && words[i].text[0] == '-' && strcmp(words[i].text, "--") != 0)
		i++;
	if (i && i <= run->count &&
	    (!strcmp(words[i - 1].text, "-0") || !strcmp(words[i - 1].text, "0") ||
	     !strncmp(words[0].text, "-l", 2) || !strncmp(words[0].text, "-L", 2)))
		return;
	for (; i < run->count; i++) {
		char *end;
		long pid = strtol(words[i].text, &end, 10);
		if (end != words[i].text && !*end && (pid == 1 || pid == -1))
			coop_risk_catastrophe(scene, run->name, "ends every process:", &words[i]);
	}
}

/* A script of the project may well be called `halt`: only the system's own are meant. */
static bool of_system(const struct coop_run *run)
{
	size_t folder = (size_t)(run->name - run->typed);

	return !folder || !strncmp(run->typed, "/bin/", folder) ||
	       !strncmp(run->typed, "/sbin/", folder) ||
	       !strncmp(run->typed, "/usr/bin/", folder) ||
	       !strncmp(run->typed, "/usr/sbin/", folder);
}

static void find_power(const struct coop_scene *scene, const struct coop_run *run)
{
	static const char verbs[] = " reboot poweroff halt kexec soft-reboot ";
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	bool down = run->program->kind == COOP_KIND_POWER;

	if (!of_system(run) || coop_args_have(run->program, words, run->count, 0, "--help") ||
	    coop_args_have(run->program, words, run->count, 0, "--version"))
		return;
	for (size_t i = 0; i < run->count; i++) {
		const char *text = words[i].text;
		down |= run->program->kind == COOP_KIND_INIT
				? !strcmp(text, "0") || !strcmp(text, "6")
				: coop_program_listed(verbs, text);
	}
	if (down)
		coop_risk_catastrophe(scene, run->name, "takes the machine down", NULL);
}

void coop_catastrophe_find(const struct coop_scene *scene, const struct coop_run *run)
{
	switch ((int)run->program->kind) {
	case COOP_KIND_RM:
	case COOP_KIND_CHMOD:
		find_recursive(scene, run);
		break;
	case COOP_KIND_MV:
		find_mv(scene, run);
		break;
	case COOP_KIND_KILL:
		find_kill(scene, run);
		break;
	case COOP_KIND_POWER:
	case COOP_KIND_INIT:
	case COOP_KIND_SYSTEMCTL:
		find_power(scene, run);
		break;
	default:
		break;
	}
}

/* Whether one of the commands is the function itself. */
static bool calls(const struct coop_words *words, const char *name, uint32_t first, uint32_t end,
		  bool *ret_background)
{
	bool found = false;

	for (uint32_t i = first; i < end && i < words->command_count; i++) {
		const struct coop_simple *simple = &words->commands[i];
		if (simple->arguments && !strcmp(coop_words_of(words, simple)->text, name)) {
			found = true;
			*ret_background |= simple->background;
		}
	}
	return found;
}

/* The first pipe that ends behind the command: they stand in the order of their ends. */
static size_t pipes_from(const struct coop_words *words, uint32_t command)
{
	size_t low = 0, high = words->pipe_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (words->pipes[middle].end <= command)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* f() { f | f & }: each turn doubles. */
void coop_catastrophe_functions(const struct coop_scene *scene)
{
	const struct coop_words *words = &scene->runs->words;

	for (size_t i = 0; i < words->function_count; i++) {
		const struct coop_function *function = &words->functions[i];

		for (size_t k = pipes_from(words, function->first);
		     k < words->pipe_count && words->pipes[k].end <= function->end; k++) {
			const struct coop_pipe *pipe = &words->pipes[k];
			bool background = false;

			if (pipe->first < function->first)
				continue;
			if (!coop_risk_spend(scene, pipe->end - pipe->first + 1u))
				return;
			if (calls(words, function->name, pipe->first, pipe->middle, &background) &&
			    calls(words, function->name, pipe->middle, pipe->end, &background) &&
			    background)
				coop_risk_catastrophe(
					scene, function->name,
					"is a function that starts itself without end", NULL);
		}
	}
}
