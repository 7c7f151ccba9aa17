/* What others want to know of the runs of a line. */
#include <string.h>

#include "policy/programs.h"
#include "policy/runs.h"
#include "policy/words.h"

const struct coop_word *coop_runs_text(const struct coop_runs *runs, const struct coop_run *run)
{
	struct coop_args args = coop_runs_args(runs, run);
	bool wanted = false;

	while (coop_args_next(&args)) {
		if (args.option) {
			/* bash -c -e TEXT, perl -ne TEXT: the letter may stand in a cluster. */
			if (args.option[1] != '-' && args.letter && strchr("eE", args.letter) &&
			    args.value)
				return args.word;
			wanted |= coop_args_is(args.option, 'c', "--command") &&
				  !(args.letter && args.letter != 'c');
			wanted |= !(run->program->traits & COOP_TRAIT_SHELL) &&
				  (coop_args_is(args.option, 'e', "--eval") ||
				   coop_args_is(args.option, 'p', "--print"));
			if (wanted && args.value && args.option[1] == '-')
				return args.word;
			continue;
		}
		return wanted ? args.word : NULL;
	}
	return NULL;
}

/* Options after which an interpreter reads no program from its input. */
static bool names_program(const struct coop_run *run, const char *option)
{
	bool shell = run->program->traits & COOP_TRAIT_SHELL;

	if (option[1] == '-')
		return coop_args_is(option, 0, "--version") || coop_args_is(option, 0, "--help") ||
		       coop_args_is(option, 0, "--command") || coop_args_is(option, 0, "--eval") ||
		       coop_args_is(option, 0, "--print");
	return strpbrk(option + 1, shell ? "c" : "ceEmnprV") != NULL;
}

bool coop_runs_from_stdin(const struct coop_runs *runs, const struct coop_run *run)
{
	static const char names[] = " - /dev/stdin /dev/fd/0 /proc/self/fd/0 ";
	struct coop_args args = coop_runs_args(runs, run);
	bool shell = run->program->traits & COOP_TRAIT_SHELL, forced = false;

	if (!shell && !(run->program->traits & (COOP_TRAIT_INTERPRETER | COOP_TRAIT_SHELL_FILE)))
		return false;
	while (coop_args_next(&args)) {
		if (!args.option)
			return forced || coop_program_listed(names, args.word->text);
		if (names_program(run, args.option))
			return false;
		forced |= shell && coop_args_is(args.option, 's', NULL);
	}
	return !(run->program->traits & COOP_TRAIT_SHELL_FILE);
}

const struct coop_word *coop_runs_redirect(const struct coop_runs *runs, const struct coop_run *run,
					   enum coop_role role)
{
	const struct coop_simple *command = coop_runs_command(runs, run);
	const struct coop_word *word = coop_words_of(&runs->words, command) + command->arguments;

	for (size_t i = 0; i < command->redirects; i++, word++) {
		if (word->role == role)
			return word;
	}
	return NULL;
}

bool coop_runs_piped(const struct coop_runs *runs, const struct coop_run *run,
		     const struct coop_pipe **ret_pipe)
{
	const struct coop_words *words = &runs->words;

	for (uint32_t i = run->command; i != COOP_SIMPLE_NONE; i = words->commands[i].parent) {
		if (words->commands[i].pipe == COOP_SIMPLE_NONE)
			continue;
		if (ret_pipe)
			*ret_pipe = &words->pipes[words->commands[i].pipe];
		return true;
	}
	return false;
}

size_t coop_runs_from(const struct coop_runs *runs, uint32_t command)
{
	size_t low = 0, high = runs->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (runs->items[middle].command < command)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool coop_runs_fetching(const struct coop_runs *runs, uint32_t first, uint32_t end)
{
	const struct coop_words *words = &runs->words;
	uint32_t before = words->commands[first].fetching;

	return (end < words->command_count ? words->commands[end].fetching : runs->fetching) >
	       before;
}
