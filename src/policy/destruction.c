/* Removal of what should stay: label destructive. */
#include <string.h>

#include "policy/paths.h"
#include "policy/programs.h"
#include "policy/risk.h"
#include "policy/runs.h"
#include "policy/target.h"
#include "policy/words.h"

static void add(const struct coop_scene *scene, const struct coop_run *run, const char *what,
		const struct coop_word *word)
{
	coop_risk_add(scene, COOP_RISK_DESTRUCTIVE, run->name, what, word);
}

static void check(const struct coop_scene *scene, const struct coop_run *run,
		  const struct coop_word *word, const char *what)
{
	struct coop_target target;

	if (coop_target_make(scene, run, word, &target) && !coop_target_expendable(scene, &target))
		add(scene, run, what, word);
}

/* The places where find starts: the words before its expression. */
static size_t find_starts(const struct coop_word *words, size_t count, size_t *ret_first)
{
	size_t first = 0, end;

	while (first < count && coop_program_listed(" -H -L -P ", words[first].text))
		first++;
	for (end = first; end < count && !strchr("-(!", words[end].text[0]);)
		end++;
	*ret_first = first;
	return end;
}

/* Whether the expression picks some of what it finds, by more than its kind. */
static bool find_picks(const struct coop_word *words, size_t count)
{
	static const char tests[] =
		" -name -iname -path -ipath -wholename -regex -iregex -newer -mtime -mmin -atime "
		"-amin -ctime -cmin -empty -size -user -group -perm -lname -inum -links -samefile ";

	for (size_t i = 0; i < count; i++) {
		if (coop_program_listed(tests, words[i].text) ||
		    !strncmp(words[i].text, "-newer", 6))
			return true;
	}
	return false;
}

static bool recursive(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);

	return coop_args_have(run->program, words, run->count, 'r', "--recursive") ||
	       coop_args_have(run->program, words, run->count, 'R', NULL);
}

/* Nothing is left of it. What is only partly known is a matter of policy. */
static void check_vital(const struct coop_scene *scene, const struct coop_run *run,
			const struct coop_word *word, const struct coop_target *target)
{
	if (!(word->flags & COOP_WORD_COMPUTED) && coop_target_vital(scene, target))
		coop_risk_catastrophe(scene, run->name, "removes all of", word);
}

/* What a find that removes would remove; `run` is find's, `remover` who is named. */
static void check_find(const struct coop_scene *scene, const struct coop_run *run,
		       const struct coop_run *remover)
{
	bool shallow = false;
	static const struct coop_word here = {.text = "."};
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	bool picks = find_picks(words, run->count);
	size_t first, end = find_starts(words, run->count, &first);

	/* Not deep: a few files, unless folders go as a whole. */
	for (size_t i = end; i < run->count; i++)
		shallow |= !strcmp(words[i].text, "-maxdepth");
	shallow &= remover == run || !recursive(scene, remover);
	for (size_t i = first; i < end || i == first; i++) {
		const struct coop_word *word = i < end ? &words[i] : &here;
		struct coop_target target;

		if (!coop_target_make(scene, run, word, &target))
			continue;
		if (picks ? !coop_target_inside(scene, &target)
			  : !coop_target_expendable(scene, &target))
			add(scene, remover, "removes what find finds in", word);
		if (!picks && !shallow)
			check_vital(scene, remover, word, &target);
	}
}

static bool find_removes(const struct coop_word *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(words[i].text, "-delete"))
			return true;
		if (i + 1 < count &&
		    coop_program_listed(" -exec -execdir -ok -okdir ", words[i].text) &&
		    coop_program_find(coop_path_name(words[i + 1].text))->kind == COOP_KIND_RM)
			return true;
	}
	return false;
}

/* What a path costs that is looked at. */
#define PART_STEPS 16u

/* A text that is fed to who removes: each part of it is a path. printf writes its newlines as
 * \n. */
static void check_text(const struct coop_scene *scene, const struct coop_run *run,
		       const struct coop_word *word, bool whole)
{
	const char *at = word->text;

	while (coop_risk_spend(scene, PART_STEPS) && *(at += strspn(at, " \t\n"))) {
		char text[COOP_PATH_MAX];
		size_t size = strcspn(at, " \t\n\\");
		struct coop_word part = *word;
		struct coop_target target;

		part.text = text;
		if (size && size < sizeof text) {
			memcpy(text, at, size);
			text[size] = '\0';
			if (coop_target_make(scene, run, &part, &target)) {
				if (!coop_target_expendable(scene, &target))
					add(scene, run, whole ? "removes all of" : "removes", word);
				if (whole)
					check_vital(scene, run, word, &target);
			}
		}
		at += size;
		at += *at == '\\' ? 1 + (at[1] != '\0') : 0;
	}
}

/* .. | xargs rm, find -exec rm: what comes through the pipe, or from find, is what is removed. */
static void check_fed(const struct coop_scene *scene, const struct coop_run *run, bool whole)
{
	const struct coop_runs *runs = scene->runs;
	const struct coop_word *here = coop_runs_redirect(runs, run, COOP_ROLE_HERE);
	const struct coop_pipe *pipe;

	for (size_t i = coop_runs_from(runs, run->command);
	     &runs->items[i] < run && coop_risk_spend(scene, 2); i++) {
		if (runs->items[i].program->kind == COOP_KIND_FIND)
			check_find(scene, &runs->items[i], run);
	}
	if (here)
		check_text(scene, run, here, whole);
	if (!coop_runs_piped(runs, run, &pipe))
		return;
	for (size_t i = coop_runs_from(runs, pipe->first);
	     i < runs->count && coop_risk_spend(scene, 2); i++) {
		const struct coop_run *left = &runs->items[i];

		if (!coop_words_within(&runs->words, left->command, pipe->first, pipe->middle))
			continue;
		if (left->program->kind == COOP_KIND_FIND && !coop_risk_spend(scene, left->count))
			return;
		if (left->program->kind == COOP_KIND_FIND)
			check_find(scene, left, run);
		for (size_t k = 0; left->program->traits & COOP_TRAIT_PRINTS && k < left->count;
		     k++)
			check_text(scene, run, coop_runs_words(runs, left) + k, whole);
	}
}

static void find_rm(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	struct coop_args args = coop_runs_args(scene->runs, run);
	bool whole = recursive(scene, run);

	if (!whole && !coop_args_have(run->program, words, run->count, 'f', "--force"))
		return;
	const char *what = whole ? "removes all of" : "removes";
	while (coop_args_next(&args)) {
		if (coop_args_plain(&args))
			check(scene, run, args.word, what);
	}
	if (run->fed)
		check_fed(scene, run, whole);
}

/* Whether a partition tool is only asked to show. */
static bool only_shows(const struct coop_run *run, const struct coop_word *words)
{
	if (!strcmp(run->name, "wipefs"))
		return !coop_args_have(run->program, words, run->count, 'a', "--all") &&
		       !coop_args_have(run->program, words, run->count, 'o', "--offset");
	return coop_args_have(run->program, words, run->count, 'l', "--list") ||
	       coop_args_have(run->program, words, run->count, 'V', "--version") ||
	       coop_args_have(run->program, words, run->count, 0, "--help") || !run->count;
}

static void find_onto_disk(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);

	for (size_t i = 0; i < run->count; i++) {
		const char *path = words[i].text;

		if (run->program->kind == COOP_KIND_DD) {
			if (strncmp(path, "of=", 3) != 0)
				continue;
			path += 3;
		} else if ((run->program->kind == COOP_KIND_CP ||
			    run->program->kind == COOP_KIND_MV) &&
			   i + 1 < run->count) {
			continue; /* only the last one is written to */
		}
		struct coop_path plain;
		if (!coop_path_make(&plain, "/", path) || !coop_path_disk(plain.text))
			continue;
		add(scene, run, "overwrites", &words[i]);
		coop_risk_catastrophe(scene, run->name, "overwrites", &words[i]);
	}
}

static void find_disk(const struct coop_scene *scene, const struct coop_run *run)
{
	if (only_shows(run, coop_runs_words(scene->runs, run)))
		return;
	add(scene, run, "makes a new file system or partition", NULL);
	find_onto_disk(scene, run);
}

/* chmod -R, chown -R: the first argument is no file. */
static void find_chmod(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	struct coop_args args = coop_runs_args(scene->runs, run);
	bool first = !coop_args_have(run->program, words, run->count, 0, "--reference");

	if (!coop_args_have(run->program, words, run->count, 'R', "--recursive"))
		return;
	while (coop_args_next(&args)) {
		struct coop_target target;

		if (!coop_args_plain(&args))
			continue;
		if (!first && coop_target_make(scene, run, args.word, &target) &&
		    coop_target_vital(scene, &target))
			add(scene, run, "changes the rights of all of", args.word);
		first = false;
	}
}

static void find_mv(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);

	for (size_t i = 0; i + 1 < run->count; i++) {
		struct coop_target target;

		if (words[i].text[0] != '-' && coop_target_make(scene, run, &words[i], &target) &&
		    coop_target_vital(scene, &target))
			add(scene, run, "moves away", &words[i]);
	}
	find_onto_disk(scene, run);
}

/* rsync --delete removes from where it copies to. */
static void find_rsync(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);

	const struct coop_word *last = &words[run->count - 1];
	struct coop_target target;
	bool removes = false;

	for (size_t i = 0; i + 1 < run->count; i++)
		removes |= !strncmp(words[i].text, "--del", 5);
	if (!removes || strchr(last->text, ':') || !coop_target_make(scene, run, last, &target))
		return;
	if (!coop_target_inside(scene, &target))
		add(scene, run, "removes what it does not copy from", last);
	if (!strcmp(target.path.text, "/"))
		check_vital(scene, run, last, &target);
}

void coop_destruction_find(const struct coop_scene *scene, const struct coop_run *run)
{
	switch ((int)run->program->kind) {
	case COOP_KIND_RM:
		find_rm(scene, run);
		break;
	case COOP_KIND_FIND:
		if (find_removes(coop_runs_words(scene->runs, run), run->count))
			check_find(scene, run, run);
		break;
	case COOP_KIND_DISK:
		find_disk(scene, run);
		break;
	case COOP_KIND_CHMOD:
		find_chmod(scene, run);
		break;
	case COOP_KIND_MV:
		find_mv(scene, run);
		break;
	case COOP_KIND_CP:
	case COOP_KIND_DD:
	case COOP_KIND_TEE:
	case COOP_KIND_SHRED:
		find_onto_disk(scene, run);
		break;
	case COOP_KIND_SCP:
		find_rsync(scene, run);
		break;
	default:
		break;
	}
}

void coop_destruction_redirect(const struct coop_scene *scene, uint32_t command,
			       const struct coop_word *word)
{
	const char *program = coop_risk_program(scene, command);
	struct coop_path path;

	if (!coop_path_make(&path, "/", word->text) || !coop_path_disk(path.text))
		return;
	coop_risk_add(scene, COOP_RISK_DESTRUCTIVE, program, "overwrites", word);
	coop_risk_catastrophe(scene, program, "overwrites", word);
}
