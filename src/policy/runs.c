#include "policy/runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "policy/parser.h"
#include "policy/paths.h"

/* A range of words of a command that names a program and its arguments. */
struct range {
	uint32_t command;
	size_t first, end;
	unsigned depth;
	bool wrapped, fed;
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

static bool make_room(struct coop_runs *runs)
{
	if (runs->count < runs->capacity)
		return true;
	if (runs->count >= COOP_RUNS_MAX) {
		runs->words.too_long = true;
		return false;
	}
	bool own = runs->items != runs->space;
	struct coop_run *grown =
		coop_mem_realloc(own ? runs->items : NULL, runs->capacity * 2 * sizeof *grown);
	if (!grown) {
		runs->words.no_memory = true;
		return false;
	}
	if (!own)
		memcpy(grown, runs->space, sizeof runs->space);
	runs->items = grown;
	runs->capacity *= 2;
	return true;
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
		for (const char *c = words->words[i].text; *c; c++) {
			/* printf's and echo -e's way to write a newline. */
			bool escaped = between == '\n' && c[0] == '\\' && c[1] == 'n';
			coop_words_add_scratch(words, escaped ? '\n' : *c);
			c += escaped;
		}
		coop_words_add_scratch(words, between);
	}
	const char *text =
		coop_words_text(words, words->scratch + start, words->scratch_count - start);
	words->scratch_count = start;
	if (text)
		read_text(runs, command, text, id);
}

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
					   enum coop_role role, size_t n)
{
	const struct coop_simple *command = coop_runs_command(runs, run);
	const struct coop_word *word = coop_words_of(&runs->words, command) + command->arguments;

	for (size_t i = 0; i < command->redirects; i++, word++) {
		if (word->role == role && n-- == 0)
			return word;
	}
	return NULL;
}

bool coop_runs_piped(const struct coop_runs *runs, const struct coop_run *run,
		     const struct coop_pipe **ret_pipe)
{
	for (size_t i = 0; i < runs->words.pipe_count; i++) {
		const struct coop_pipe *pipe = &runs->words.pipes[i];

		if (!coop_words_within(&runs->words, run->command, pipe->middle, pipe->end))
			continue;
		if (ret_pipe)
			*ret_pipe = pipe;
		return true;
	}
	return false;
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
	const struct coop_word *here = coop_runs_redirect(runs, run, COOP_ROLE_HERE, 0);
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

/* What stands behind a wrapper's own options and arguments. */
static void read_wrapped(struct coop_runs *runs, const struct coop_run *run, unsigned depth)
{
	struct coop_args args = coop_runs_args(runs, run);
	unsigned skip = run->program->skip;
	enum coop_kind kind = run->program->kind;

	while (coop_args_next(&args)) {
		if (args.option) {
			if (kind == COOP_KIND_COMMAND && strpbrk(args.option, "vV"))
				return; /* only asks what it would run */
			if ((kind == COOP_KIND_ENV &&
			     coop_args_is(args.option, 'S', "--split-string")) ||
			    ((kind == COOP_KIND_SU || kind == COOP_KIND_FLOCK) &&
			     coop_args_is(args.option, 'c', "--command"))) {
				if (args.value)
					read_text(runs, run->command, args.value, args.word->id);
				return;
			}
			continue;
		}
		/* su USER -c TEXT: what stands before is a name. */
		if (kind == COOP_KIND_SU && run->program->traits & COOP_TRAIT_RAISE)
			continue;
		if (skip || coop_words_assignment(args.word->text)) {
			skip -= skip > 0;
			continue;
		}
		read_range(runs, (struct range){.command = run->command,
						.first = run->first + args.next - 1,
						.end = run->first + run->count,
						.depth = depth + 1,
						.wrapped = true,
						.fed = run->fed || kind == COOP_KIND_XARGS});
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
	if (range.first >= range.end || !make_room(runs))
		return;
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
			       .wrapped = range.wrapped,
			       .fed = range.fed};
	run.program = coop_program_find(run.name);
	runs->unknown |= (run.flags & COOP_WORD_COMPUTED) != 0;
	runs->items[runs->count++] = run;
	uint32_t traits = run.program->traits;
	if (traits & COOP_TRAIT_WRAPPER)
		read_wrapped(runs, &run, range.depth);
	else if (traits & COOP_TRAIT_SHELL)
		read_shell(runs, &run);
	else if (traits & COOP_TRAIT_TEXT)
		read_texts(runs, &run);
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
	for (size_t i = 0; i < runs->count; i++) {
		const struct coop_run *run = &runs->items[i];
		if ((run->program->traits & COOP_TRAIT_SHELL) && run->command >= pipe->middle &&
		    run->command < pipe->end && coop_runs_from_stdin(runs, run))
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
		for (; command < runs->words.command_count && !runs->words.no_memory; command++) {
			size_t before = runs->words.command_count;
			read_command(runs, command);
			/* A shell that is not known as one is told by the line. */
			if (!command && line && runs->words.command_count == before)
				read_text(runs, 0, line, 0);
		}
		for (; pipe < runs->words.pipe_count; pipe++) {
			struct coop_pipe copy = runs->words.pipes[pipe];
			read_printed(runs, &copy);
		}
	} while (command < runs->words.command_count && !runs->words.no_memory);
}
