#include "policy/risk.h"

#include <string.h>

#include "policy/programs.h"
#include "policy/words.h"

/* Steps of all searches together: some ten milliseconds. */
#define STEPS_MAX ((size_t)4 * 1024 * 1024)

/* What one word of a program costs, with all who look at it. */
#define WORD_STEPS 12u

bool coop_risk_spend(const struct coop_scene *scene, size_t steps)
{
	scene->found->steps += steps;
	scene->found->too_long |= scene->found->steps > STEPS_MAX;
	return !scene->found->too_long;
}

static double confidence_of(const struct coop_word *word)
{
	return word && word->flags & COOP_WORD_COMPUTED ? 0.6 : 1.0;
}

void coop_risk_add(const struct coop_scene *scene, enum coop_risk risk, const char *program,
		   const char *what, const struct coop_word *word)
{
	struct coop_finding *finding = &scene->found->of[risk];
	double confidence = confidence_of(word);

	if (scene->found->labels & 1u << risk && finding->confidence >= confidence)
		return;
	scene->found->labels |= 1u << risk;
	*finding = (struct coop_finding){.program = program,
					 .what = what,
					 .word = word ? word->text : NULL,
					 .confidence = confidence};
}

void coop_risk_catastrophe(const struct coop_scene *scene, const char *program, const char *what,
			   const struct coop_word *word)
{
	if (scene->found->catastrophic)
		return;
	scene->found->catastrophic = true;
	scene->found->catastrophe = (struct coop_finding){.program = program,
							  .what = what,
							  .word = word ? word->text : NULL,
							  .confidence = confidence_of(word)};
}

const char *coop_risk_program(const struct coop_scene *scene, uint32_t command)
{
	const struct coop_simple *simple = &scene->runs->words.commands[command];

	return simple->arguments ? coop_words_of(&scene->runs->words, simple)->text : "the shell";
}

const char *coop_risk_path(const struct coop_word *word)
{
	const char *text = word->text;

	if (text[0] == '-') {
		const char *equal = strchr(text, '=');
		if (text[1] != '-' && text[1] && text[2] && strchr("/.@~", text[2]))
			text += 2;
		else if (equal)
			text = equal + 1;
		else
			return NULL;
	} else if (coop_words_assignment(text)) {
		text = strchr(text, '=') + 1;
	}
	text += *text == '@';
	return *text ? text : NULL;
}

/* The first word that is no option: `push` of `git -C dir push`. Its index, or the count. */
static size_t verb_of(const struct coop_scene *scene, const struct coop_run *run)
{
	struct coop_args args = coop_runs_args(scene->runs, run);

	while (coop_args_next(&args)) {
		if (coop_args_plain(&args))
			return args.next - 1;
	}
	return run->count;
}

static bool forces_push(const struct coop_word *words, size_t count, const struct coop_word **ret)
{
	static const struct coop_known_program push = {
		.shorts = "o", .longs = " --push-option --receive-pack --exec --repo "};
	struct coop_args args = {.program = &push, .words = words, .count = count};

	while (coop_args_next(&args)) {
		*ret = args.word;
		if (args.option
			    ? (args.letter != 'o' && coop_args_is(args.option, 'f', "--force")) ||
				      !strncmp(args.option, "--force-", 8) ||
				      coop_args_is(args.option, 0, "--mirror")
			    : args.value[0] == '+')
			return true;
	}
	return false;
}

static void find_git(const struct coop_scene *scene, const struct coop_run *run)
{
	static const char writing[] =
		" add commit push reset checkout switch restore clean rm mv merge rebase "
		"cherry-pick "
		"revert stash apply am pull clone init gc prune worktree submodule filter-branch "
		"update-ref ";
	const struct coop_word *words = coop_runs_words(scene->runs, run), *forced;
	size_t verb = verb_of(scene, run);

	if (verb == run->count)
		return;
	if (coop_program_listed(writing, words[verb].text))
		coop_risk_add(scene, COOP_RISK_WRITE_INTENT, "git", "runs", &words[verb]);
	if (!strcmp(words[verb].text, "push") &&
	    forces_push(words + verb + 1, run->count - verb - 1, &forced))
		coop_risk_add(scene, COOP_RISK_GIT_FORCE_PUSH, "git push", "is forced by", forced);
}

static void find_write(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	const char *what = NULL;

	if (run->program->traits & COOP_TRAIT_WRITE)
		what = "changes files";
	else if ((run->program->kind == COOP_KIND_SED || run->program->kind == COOP_KIND_PERL) &&
		 coop_args_have(run->program, words, run->count, 'i', "--in-place"))
		what = "changes files in place";
	for (size_t i = 0; run->program->kind == COOP_KIND_FIND && i < run->count; i++) {
		if (!strcmp(words[i].text, "-delete"))
			what = "removes files";
	}
	if (what)
		coop_risk_add(scene, COOP_RISK_WRITE_INTENT, run->name, what, NULL);
}

/* kill -0 and kill -l ask. */
static bool only_asks(const struct coop_word *words, size_t count)
{
	if (!count)
		return true;
	const char *first = words[0].text;
	if (!strcmp(first, "-0") || !strcmp(first, "-l") || !strcmp(first, "-L") ||
	    !strncmp(first, "-l", 2) || !strcmp(first, "--list") || !strcmp(first, "-s0"))
		return true;
	return count > 1 &&
	       (!strcmp(first, "-s") || !strcmp(first, "-n") || !strcmp(first, "--signal")) &&
	       (!strcmp(words[1].text, "0") || !strcmp(words[1].text, "EXIT"));
}

static void find_kill(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	bool kills = run->program->traits & COOP_TRAIT_KILL && !only_asks(words, run->count);

	if (run->program->kind == COOP_KIND_FUSER)
		kills = coop_args_have(run->program, words, run->count, 'k', "--kill");
	if (kills)
		coop_risk_add(scene, COOP_RISK_PROCESS_KILL, run->name, "ends processes", NULL);
}

static bool has_verb(const char *list, const struct coop_word *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (coop_program_listed(list, words[i].text))
			return true;
	}
	return false;
}

static bool installs(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	size_t verb = verb_of(scene, run);

	switch ((int)run->program->kind) {
	case COOP_KIND_INSTALLER:
		return true;
	case COOP_KIND_PACMAN: /* pacman -S, dpkg -i, rpm -U, nix-env -i */
		for (size_t i = 0; i < run->count; i++) {
			const char *text = words[i].text;
			if (!strcmp(text, "--install") || !strcmp(text, "--upgrade") ||
			    !strcmp(text, "--sync") ||
			    (text[0] == '-' && text[1] != '-' && strpbrk(text, "SUi") &&
			     !strpbrk(text, "sQq")))
				return true;
		}
		return false;
	case COOP_KIND_YARN: /* yarn alone installs */
		return verb == run->count ||
		       coop_program_listed(run->program->verbs, words[verb].text);
	case COOP_KIND_SUBPACKAGE: /* uv pip install, rustup component add */
		if (verb == run->count ||
		    !coop_program_listed(run->program->verbs, words[verb].text))
			return false;
		return has_verb(" add sync install update upgrade ", words + verb,
				run->count - verb);
	default:
		return verb < run->count && run->program->verbs &&
		       coop_program_listed(run->program->verbs, words[verb].text);
	}
}

static void find_install(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	bool found = run->program->traits & COOP_TRAIT_PACKAGE && installs(scene, run);

	/* python -m pip install */
	for (size_t i = 0; run->program->kind == COOP_KIND_PYTHON && i + 2 < run->count; i++)
		found |= !strcmp(words[i].text, "-m") &&
			 coop_program_listed(" pip pipx uv ", words[i + 1].text) &&
			 has_verb(" install inject add sync ", words + i + 2, run->count - i - 2);
	if (found)
		coop_risk_add(scene, COOP_RISK_PACKAGE_INSTALL, run->name, "installs packages",
			      NULL);
}

/* How many of its arguments are a wrapper's own: those before the program that it runs. */
static size_t own_count(const struct coop_scene *scene, size_t index)
{
	const struct coop_run *run = &scene->runs->items[index];

	if (!(run->program->traits & COOP_TRAIT_WRAPPER) || index + 1 >= scene->runs->count)
		return run->count;
	const struct coop_run *next = run + 1;
	return next->wrapped && next->command == run->command && next->first > run->first
		       ? next->first - 1 - run->first
		       : run->count;
}

static void find_in_run(const struct coop_scene *scene, size_t index)
{
	const struct coop_run *run = &scene->runs->items[index];
	size_t own = own_count(scene, index);

	if (!coop_risk_spend(scene, WORD_STEPS * (own + 1) +
					    coop_runs_command(scene->runs, run)->redirects))
		return;
	if (run->program->traits & COOP_TRAIT_RAISE)
		coop_risk_add(scene, COOP_RISK_SUDO, run->name, "acts as another user", NULL);
	if (run->program->kind == COOP_KIND_GIT)
		find_git(scene, run);
	find_write(scene, run);
	find_kill(scene, run);
	find_install(scene, run);
	coop_destruction_find(scene, run);
	coop_catastrophe_find(scene, run);
	coop_credential_find(scene, run);
	coop_network_find(scene, run);
	coop_fetched_find(scene, run);
	if (scene->command->workspace)
		coop_boundary_find(scene, run, own);
}

static bool no_file(const char *path)
{
	return !strcmp(path, "/dev/null") || !strncmp(path, "/dev/std", 8) ||
	       !strncmp(path, "/dev/fd/", 8) || !strcmp(path, "/dev/tty") ||
	       !strncmp(path, "/dev/tcp/", 9) || !strncmp(path, "/dev/udp/", 9);
}

static void find_in_redirect(const struct coop_scene *scene, uint32_t command,
			     const struct coop_word *word)
{
	if (word->role == COOP_ROLE_HERE)
		return;
	if (word->role == COOP_ROLE_WRITE && !no_file(word->text) &&
	    !(word->flags & COOP_WORD_SUBSTITUTED)) {
		coop_risk_add(scene, COOP_RISK_WRITE_INTENT, coop_risk_program(scene, command),
			      "writes to", word);
		coop_destruction_redirect(scene, command, word);
	}
	if (word->role == COOP_ROLE_READ)
		coop_credential_redirect(scene, command, word);
	coop_network_redirect(scene, command, word);
	if (scene->command->workspace && !no_file(word->text))
		coop_boundary_redirect(scene, command, word);
}

void coop_risk_find(const struct coop_scene *scene)
{
	const struct coop_words *words = &scene->runs->words;

	scene->found->labels = 0;
	scene->found->catastrophic = scene->found->too_long = false;
	scene->found->steps = 0;
	for (size_t i = 0; i < scene->runs->count; i++)
		find_in_run(scene, i);
	for (size_t i = 0; i < words->command_count; i++) {
		const struct coop_simple *simple = &words->commands[i];
		const struct coop_word *word = coop_words_of(words, simple) + simple->arguments;

		for (size_t k = 0; k < simple->redirects; k++)
			find_in_redirect(scene, (uint32_t)i, word + k);
	}
	coop_catastrophe_functions(scene);
}
