/* Paths that lead out of the workspace: label outside_workspace. */
#include <string.h>

#include "policy/paths.h"
#include "policy/programs.h"
#include "policy/risk.h"
#include "policy/runs.h"

static bool exempt(const char *path)
{
	return !strcmp(path, "/dev/null") || !strncmp(path, "/dev/std", 8) ||
	       !strncmp(path, "/dev/fd/", 8) || strstr(path, "://");
}

static bool outside(const struct coop_scene *scene, uint32_t command, const char *text)
{
	struct coop_path path;

	if (!coop_path_make(&path, scene->runs->words.commands[command].cwd, text))
		return *text != '$';
	for (size_t i = 0; scene->command->workspace[i]; i++) {
		if (coop_path_within(path.text, scene->command->workspace[i]))
			return false;
	}
	return true;
}

/* A word without a slash names something in the working directory, if anything; where that is has
 * been judged by who chose it. */
static void check(const struct coop_scene *scene, const struct coop_run *run,
		  const struct coop_word *word)
{
	const char *text = coop_risk_path(word);

	if (!text || exempt(text) || (!strchr(text, '/') && strcmp(text, "..") != 0))
		return;
	/* A path that begins with what is computed may lead anywhere; it is not held against
	 * anyone. */
	if (word->flags & COOP_WORD_COMPUTED && (*text == '$' || *text == '~'))
		return;
	const char *at = strstr(text, "=@");
	if (outside(scene, run->command, at ? at + 2 : text))
		coop_risk_add(scene, COOP_RISK_OUTSIDE_WORKSPACE, run->name, "names", word);
}

/* Options whose value is a text: a message, a header. */
static bool is_text(const struct coop_run *run, const struct coop_args *args)
{
	if (run->program->traits & COOP_TRAIT_SCRIPT)
		return args->letter && args->letter != 'f';
	return run->program->kind == COOP_KIND_CURL && args->letter &&
	       strchr("AbeHuUwX", args->letter);
}

void coop_boundary_find(const struct coop_scene *scene, const struct coop_run *run, size_t count)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	const struct coop_word *text = coop_runs_text(scene->runs, run);
	struct coop_args args = {.program = run->program, .words = words, .count = count};
	bool script = run->program->traits & COOP_TRAIT_SCRIPT;

	if (run->program->traits & (COOP_TRAIT_PRINTS | COOP_TRAIT_TEXT))
		return;
	while (coop_args_next(&args)) {
		size_t index = (size_t)(args.word - words);

		if (args.option && is_text(run, &args)) {
			script &= !strchr("eEf", args.letter);
			continue;
		}
		if (args.word == text)
			continue;
		if (script && !args.option) {
			script = false;
			continue;
		}
		if (run->program->kind == COOP_KIND_GIT && index &&
		    coop_program_listed(" -m --message -am ", words[index - 1].text))
			continue;
		check(scene, run, args.word);
	}
}

void coop_boundary_redirect(const struct coop_scene *scene, uint32_t command,
			    const struct coop_word *word)
{
	if (!(word->flags & COOP_WORD_COMPUTED && *word->text == '$') && !exempt(word->text) &&
	    outside(scene, command, word->text))
		coop_risk_add(scene, COOP_RISK_OUTSIDE_WORKSPACE, coop_risk_program(scene, command),
			      "names", word);
}
