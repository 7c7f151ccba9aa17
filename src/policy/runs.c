#include "policy/runs.h"

#include <stdlib.h>
#include <string.h>

#include "policy/parser.h"
#include "policy/paths.h"

/* A range of words of a command that names a program and its arguments. */
struct range {
	uint32_t command;
	size_t first, end;
	unsigned depth;
	bool wrapped, fed, sourced;
};

static void read_range(struct coop_runs *runs, struct range range);

void coop_runs_init(struct coop_runs *runs, const char *home)
{
	coop_words_init(&runs->words, home);
	runs->items = runs->space;
	runs->count = 0;
	runs->capacity = sizeof runs->space / sizeof *runs->space;
	runs->unknown = false;
}

void coop_runs_clear(struct coop_runs *runs)
{
	coop_words_clear(&runs->words);
	if (runs->items != runs->space)
		free(runs->items);
}

static bool stopped(const struct coop_runs *runs)
{
	return runs->words.no_memory || runs->words.too_long;
}

/* How many texts lie around the command: each costs a turn of reading. */
static unsigned depth_of(const struct coop_words *words, uint32_t command)
{
	unsigned depth = 1;

	while ((command = words->commands[command].parent) != COOP_SIMPLE_NONE)
		depth++;
	return depth;
}

/* A shell will read this text. */
static void read_text(struct coop_runs *runs, uint32_t command, const char *text, uint32_t word)
{
	struct coop_parser_place place = {.cwd = runs->words.commands[command].cwd,
					  .parent = command,
					  .word = word,
					  .via = COOP_VIA_TEXT,
					  .depth = depth_of(&runs->words, command)};

	coop_parser_read(&runs->words, text, strlen(text), &place);
}

/* Several words as one text, with `between` between them. */
static void read_joined(struct coop_runs *runs, uint32_t command, size_t first, size_t end,
			char between)
{
	struct coop_words *words = &runs->words;
	size_t start = words->scratch_count;
	uint32_t id = first < end ? words->words[first].id : 0;

	for (size_t i = first; i < end; i++) {
		const char *text = words->words[i].text, *escape;
		/* printf's and echo -e's way to write a newline. */
		while (between == '\n' && (escape = strstr(text, "\\n"))) {
			coop_words_add_scratch(words, text, (size_t)(escape - text));
			coop_words_add_scratch(words, "\n", 1);
			text = escape + 2;
		}
		coop_words_add_scratch(words, text, strlen(text));
		coop_words_add_scratch(words, &between, 1);
	}
	const char *text =
		coop_words_text(words, words->scratch + start, words->scratch_count - start);
	words->scratch_count = start;
	if (text)
		read_text(runs, command, text, id);
}

/* Marks the commands that fetch and those around them, then counts. */
static void count_fetching(struct coop_runs *runs)
{
	struct coop_simple *commands = runs->words.commands;
	uint32_t count = 0;

	for (size_t i = 0; i < runs->count; i++) {
		uint32_t at = runs->items[i].command;
		if (!(runs->items[i].program->traits & COOP_TRAIT_FETCH))
			continue;
		for (; at != COOP_SIMPLE_NONE && !commands[at].fetching; at = commands[at].parent)
			commands[at].fetching = 1;
	}
	for (size_t i = 0; i < runs->words.command_count; i++) {
		bool fetches = commands[i].fetching;
		commands[i].fetching = count;
		count += fetches;
	}
	runs->fetching = count;
}

/* sh -c TEXT, and sh <<END, sh <<<TEXT. */
static void read_shell(struct coop_runs *runs, const struct coop_run *run)
{
	const struct coop_word *text = coop_runs_text(runs, run);

	if (text) {
		read_text(runs, run->command, text->text, text->id);
		return;
	}
	if (!coop_runs_from_stdin(runs, run))
		return;
	coop_words_charge(&runs->words, coop_runs_command(runs, run)->redirects);
	const struct coop_word *here = coop_runs_redirect(runs, run, COOP_ROLE_HERE);
	if (here)
		read_text(runs, run->command, here->text, here->id);
	runs->unknown |= !here && coop_runs_piped(runs, run, NULL);
}

/* find .. -exec COMMAND ; */
static void read_find(struct coop_runs *runs, const struct coop_run *run, unsigned depth)
{
	static const char starts[] = " -exec -execdir -ok -okdir ";
	size_t end = run->first + run->count;

	for (size_t i = run->first; i < end; i++) {
		if (!coop_program_listed(starts, runs->words.words[i].text))
			continue;
		size_t stop = ++i;
		while (stop < end && strcmp(runs->words.words[stop].text, ";") != 0 &&
		       strcmp(runs->words.words[stop].text, "+") != 0)
			stop++;
		read_range(runs, (struct range){.command = run->command,
						.first = i,
						.end = stop,
						.depth = depth + 1,
						.wrapped = true,
						.fed = true});
		i = stop;
	}
}

/* su USER -c TEXT, and runuser where it has no -u: what stands before is a name. Behind -- the
 * shell's own options come. */
static void read_su(struct coop_runs *runs, const struct coop_run *run)
{
	struct coop_args args = coop_runs_args(runs, run);
	bool wanted = false;

	while (coop_args_next(&args)) {
		bool option = args.option &&
			      (args.letter == 'c' || coop_args_is(args.option, 0, "--command") ||
			       coop_args_is(args.option, 0, "--session-command"));
		if (option && args.value)
			read_text(runs, run->command, args.value, args.word->id);
		if (!args.option && wanted)
			read_text(runs, run->command, args.word->text, args.word->id);
		wanted = !args.option && !strcmp(args.word->text, "-c");
	}
}

/* parallel TEXT ::: VALUES, parallel ::: TEXTS. The words are also read as a program with its
 * arguments. */
static void read_parallel(struct coop_runs *runs, const struct coop_run *run, size_t at)
{
	size_t end = run->first + run->count, stop = at;

	while (stop < end && strncmp(runs->words.words[stop].text, ":::", 3) != 0)
		stop++;
	if (stop > at) {
		read_joined(runs, run->command, at, stop, ' ');
		return;
	}
	while (++stop < end)
		read_text(runs, run->command, runs->words.words[stop].text,
			  runs->words.words[stop].id);
}

/* What stands behind a wrapper's own options and arguments. */
static void read_wrapped(struct coop_runs *runs, const struct coop_run *run, unsigned depth)
{
	struct coop_args args = coop_runs_args(runs, run);
	unsigned skip = run->program->skip;
	enum coop_kind kind = run->program->kind;

	if (kind == COOP_KIND_SU &&
	    (run->program->traits & COOP_TRAIT_RAISE ||
	     !coop_args_have(run->program, args.words, args.count, 'u', "--user"))) {
		read_su(runs, run);
		return;
	}
	while (coop_args_next(&args)) {
		if (args.option) {
			if (kind == COOP_KIND_COMMAND && strpbrk(args.option, "vV"))
				return; /* only asks what it would run */
			if ((kind == COOP_KIND_ENV &&
			     coop_args_is(args.option, 'S', "--split-string")) ||
			    (kind == COOP_KIND_FLOCK &&
			     coop_args_is(args.option, 'c', "--command"))) {
				if (args.value)
					read_text(runs, run->command, args.value, args.word->id);
				return;
			}
			continue;
		}
		if (skip || coop_words_assignment(args.word->text)) {
			skip -= skip > 0;
			continue;
		}
		if (kind == COOP_KIND_PARALLEL)
			read_parallel(runs, run, run->first + args.next - 1);
		read_range(runs, (struct range){.command = run->command,
						.first = run->first + args.next - 1,
						.end = run->first + run->count,
						.depth = depth + 1,
						.wrapped = true,
						.fed = run->fed || kind == COOP_KIND_XARGS ||
						       kind == COOP_KIND_PARALLEL});
		return;
	}
}

/* alias NAME=TEXT: read where it is made, as if it ran there. */
static void read_alias(struct coop_runs *runs, const struct coop_run *run)
{
	for (size_t i = run->first; i < run->first + run->count; i++) {
		const struct coop_word word = runs->words.words[i];
		const char *equal = strchr(word.text, '=');

		if (!equal)
			continue;
		runs->unknown |= (word.flags & COOP_WORD_COMPUTED) != 0;
		read_text(runs, run->command, equal + 1, word.id);
	}
}

/* . FILE */
static void read_source(struct coop_runs *runs, const struct coop_run *run, unsigned depth)
{
	struct coop_args args = coop_runs_args(runs, run);

	while (coop_args_next(&args)) {
		if (args.option)
			continue;
		read_range(runs, (struct range){.command = run->command,
						.first = run->first + args.next - 1,
						.end = run->first + args.next,
						.depth = depth + 1,
						.wrapped = true,
						.sourced = true});
		return;
	}
}

/* eval WORDS, trap TEXT SIGNAL, watch WORDS, script -c TEXT. */
static void read_texts(struct coop_runs *runs, const struct coop_run *run)
{
	struct coop_args args = coop_runs_args(runs, run);

	if (run->program->kind == COOP_KIND_EVAL) {
		read_joined(runs, run->command, run->first, run->first + run->count, ' ');
		return;
	}
	if (run->program->kind == COOP_KIND_ALIAS) {
		read_alias(runs, run);
		return;
	}
	while (coop_args_next(&args)) {
		bool script = run->program->kind == COOP_KIND_SCRIPT;
		if (args.option) {
			if (script && args.value && coop_args_is(args.option, 'c', "--command"))
				read_text(runs, run->command, args.value, args.word->id);
			continue;
		}
		if (script)
			continue;
		size_t at = run->first + args.next - 1;
		size_t end =
			run->program->kind == COOP_KIND_TRAP ? at + 1 : run->first + run->count;
		read_joined(runs, run->command, at, end, ' ');
		return;
	}
}

static void read_range(struct coop_runs *runs, struct range range)
{
	if (range.first >= range.end || stopped(runs))
		return;
	struct coop_run *items =
		coop_words_room(&runs->words, runs->items, runs->space, sizeof *items, runs->count,
				&runs->capacity, COOP_RUNS_MAX);
	if (!items)
		return;
	runs->items = items;
	if (range.depth > COOP_WORDS_DEPTH_MAX) {
		runs->words.too_long = true;
		return;
	}
	const struct coop_word *word = &runs->words.words[range.first];
	struct coop_run run = {.typed = word->text,
			       .name = coop_path_name(word->text),
			       .first = range.first + 1,
			       .count = range.end - range.first - 1,
			       .command = range.command,
			       .flags = word->flags,
			       .head = word->head,
			       .tail = word->tail,
			       .wrapped = range.wrapped,
			       .fed = range.fed,
			       .sourced = range.sourced};
	run.program = coop_program_find(run.sourced ? "" : run.name);
	runs->unknown |= (run.flags & COOP_WORD_COMPUTED) != 0;
	runs->items[runs->count++] = run;
	uint32_t traits = run.program->traits;
	if (traits & COOP_TRAIT_WRAPPER)
		read_wrapped(runs, &run, range.depth);
	else if (traits & COOP_TRAIT_SHELL)
		read_shell(runs, &run);
	else if (traits & COOP_TRAIT_TEXT)
		read_texts(runs, &run);
	else if (traits & COOP_TRAIT_SHELL_FILE)
		read_source(runs, &run, range.depth);
	else if (run.program->kind == COOP_KIND_FIND)
		read_find(runs, &run, range.depth);
}

static void read_command(struct coop_runs *runs, uint32_t command)
{
	const struct coop_simple *simple = &runs->words.commands[command];
	size_t first = simple->first, end = first + simple->arguments;

	/* Without a shell NAME=x is a program's name. */
	while (simple->shell && first < end && coop_words_assignment(runs->words.words[first].text))
		first++;
	read_range(runs, (struct range){.command = command, .first = first, .end = end});
}

/* echo TEXT | sh, cat <<END | sh: what the first prints is what the second runs. */
static void read_printed(struct coop_runs *runs, const struct coop_pipe *pipe)
{
	uint32_t shell = COOP_SIMPLE_NONE;

	if (pipe->middle != pipe->first + 1)
		return;
	for (size_t i = coop_runs_from(runs, pipe->middle);
	     i < runs->count && runs->items[i].command < pipe->end; i++) {
		const struct coop_run *run = &runs->items[i];
		if ((run->program->traits & COOP_TRAIT_SHELL) && coop_runs_from_stdin(runs, run))
			shell = run->command;
	}
	const struct coop_simple *left = &runs->words.commands[pipe->first];
	if (shell == COOP_SIMPLE_NONE || !left->arguments)
		return;
	const struct coop_word *words = coop_words_of(&runs->words, left);
	if (coop_program_find(words->text)->traits & COOP_TRAIT_PRINTS) {
		size_t first = left->first + 1, end = left->first + left->arguments;
		while (first < end && runs->words.words[first].text[0] == '-')
			first++;
		read_joined(runs, shell, first, end, strcmp(words->text, "echo") ? '\n' : ' ');
	} else if (!strcmp(words->text, "cat") && left->redirects) {
		const struct coop_word *here = words + left->arguments;
		if (here->role == COOP_ROLE_HERE)
			read_text(runs, shell, here->text, here->id);
	}
}

void coop_runs_read(struct coop_runs *runs, const char *const *argv, const char *line,
		    const char *cwd)
{
	uint32_t command = 0;
	size_t pipe = 0;

	coop_words_argv(&runs->words, argv, cwd);
	/* Reading a command may add others behind it. */
	do {
		for (; command < runs->words.command_count && !stopped(runs); command++) {
			size_t before = runs->words.command_count;
			read_command(runs, command);
			/* A shell that is not known as one is told by the line. */
			if (!command && line && runs->words.command_count == before)
				read_text(runs, 0, line, 0);
		}
		for (; pipe < runs->words.pipe_count && !stopped(runs); pipe++) {
			struct coop_pipe copy = runs->words.pipes[pipe];
			read_printed(runs, &copy);
		}
	} while (command < runs->words.command_count && !stopped(runs));
	count_fetching(runs);
}
