/* Programs that come from the network and are run unseen: label curl_pipe_shell. */
#include <string.h>

#include "policy/risk.h"
#include "policy/runs.h"
#include "policy/words.h"

/* Whether commands that stand in the word, or any below them, fetch. */
static bool word_fetches(const struct coop_scene *scene, uint32_t command,
			 const struct coop_word *word)
{
	const struct coop_runs *runs = scene->runs;

	if (!(word->flags & COOP_WORD_SUBSTITUTED) || !runs->fetching ||
	    !coop_risk_spend(scene, runs->words.command_count))
		return false;
	for (uint32_t i = command + 1; i < runs->words.command_count; i++) {
		const struct coop_simple *simple = &runs->words.commands[i];
		if (simple->parent == command && simple->word == word->id &&
		    coop_runs_fetching(runs, i, i + 1))
			return true;
	}
	return false;
}

static bool runs_code(const struct coop_run *run)
{
	return run->program->traits & (COOP_TRAIT_SHELL | COOP_TRAIT_INTERPRETER |
				       COOP_TRAIT_SHELL_FILE | COOP_TRAIT_TEXT);
}

/* Whether the run takes its program from its input, or one that only the run will show (eval
 * "$line"). */
static bool runs_input(const struct coop_runs *runs, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(runs, run);

	if (coop_runs_from_stdin(runs, run))
		return true;
	if (run->program->kind == COOP_KIND_EVAL) {
		for (size_t i = 0; i < run->count; i++) {
			if (words[i].flags & COOP_WORD_COMPUTED)
				return true;
		}
	}
	const struct coop_word *text = coop_runs_text(runs, run);
	/* xargs sh -c, xargs -I{} sh -c {} */
	return run->program->traits & COOP_TRAIT_SHELL && run->fed &&
	       (!text || strstr(text->text, "{}"));
}

static void find_piped(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_words *words = &scene->runs->words;

	for (uint32_t i = run->command; i != COOP_SIMPLE_NONE; i = words->commands[i].parent) {
		for (uint32_t k = words->commands[i].pipe; k != COOP_SIMPLE_NONE;
		     k = words->pipes[k].outer) {
			const struct coop_pipe *pipe = &words->pipes[k];
			if (pipe->first < pipe->middle &&
			    coop_runs_fetching(scene->runs, pipe->first, pipe->middle))
				coop_risk_add(scene, COOP_RISK_CURL_PIPE_SHELL, run->name,
					      "runs what comes from the network", NULL);
		}
	}
}

void coop_fetched_find(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_runs *runs = scene->runs;
	const struct coop_simple *command = coop_runs_command(runs, run);
	const struct coop_word *words = coop_words_of(&runs->words, command);
	bool found = false;

	/* $(curl …) as the command itself */
	if (run->flags & COOP_WORD_SUBSTITUTED)
		found = word_fetches(scene, run->command,
				     words + (run->first - 1 - command->first));
	if (!found && !runs_code(run))
		goto out;
	if (runs_input(runs, run))
		find_piped(scene, run);
	/* Which of the words are the program: -c's text, eval's all, a shell's file; and what is
	 * fed by < or <<<. */
	const struct coop_word *text = coop_runs_text(runs, run);
	if (text)
		found |= word_fetches(scene, run->command, text);
	for (size_t i = 0; !text && i < run->count; i++) {
		const struct coop_word *word = coop_runs_words(runs, run) + i;
		found |= word_fetches(scene, run->command, word);
		/* Behind the file its arguments follow. */
		if (word->text[0] != '-' && run->program->kind != COOP_KIND_EVAL)
			break;
	}
	for (size_t i = 0; i < command->redirects && coop_runs_from_stdin(runs, run); i++) {
		if (words[command->arguments + i].role != COOP_ROLE_WRITE)
			found |= word_fetches(scene, run->command, &words[command->arguments + i]);
	}
out:
	if (found)
		coop_risk_add(scene, COOP_RISK_CURL_PIPE_SHELL, run->name,
			      "runs what comes from the network", NULL);
}
