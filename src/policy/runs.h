/* Which programs a command line runs: each simple command's own, and what wrappers, shells and
 * finders run in turn. */
#ifndef COOP_POLICY_RUNS_H
#define COOP_POLICY_RUNS_H

#include "policy/programs.h"
#include "policy/words.h"

#define COOP_RUNS_MAX 32768u

struct coop_run {
	const struct coop_known_program *program;
	const char *typed;   /* the program as written */
	const char *name;    /* without its folder */
	size_t first, count; /* its arguments, in words */
	uint32_t command;
	uint8_t flags; /* of the program's word, as are the next two */
	uint8_t head, tail;
	bool wrapped; /* not the first of its command: found behind a wrapper */
	bool fed;     /* gets further arguments when it runs (xargs, find -exec) */
	/* a file that . or source reads: a program for the lists, and nothing is known of it */
	bool sourced;
};

/* Zero-initialise the rest with coop_runs_init. */
struct coop_runs {
	struct coop_words words;
	struct coop_run *items;
	size_t count, capacity;
	uint32_t fetching; /* how many commands fetch, or have a text in them that does */
	bool unknown;      /* a program or a text for a shell is known only when it runs */
	struct coop_run space[16];
};

void coop_runs_init(struct coop_runs *runs, const char *home);
void coop_runs_clear(struct coop_runs *runs);

/* Fills it. `line` is the text that argv's shell reads, or NULL. */
void coop_runs_read(struct coop_runs *runs, const char *const *argv, const char *line,
		    const char *cwd);

static inline const struct coop_word *coop_runs_words(const struct coop_runs *runs,
						      const struct coop_run *run)
{
	return runs->words.words + run->first;
}

static inline const struct coop_simple *coop_runs_command(const struct coop_runs *runs,
							  const struct coop_run *run)
{
	return &runs->words.commands[run->command];
}

/* Arguments of a run, for coop_args_next. */
static inline struct coop_args coop_runs_args(const struct coop_runs *runs,
					      const struct coop_run *run)
{
	return (struct coop_args){
		.program = run->program, .words = coop_runs_words(runs, run), .count = run->count};
}

/* The first redirection of the run's command in that role, or NULL. */
const struct coop_word *coop_runs_redirect(const struct coop_runs *runs, const struct coop_run *run,
					   enum coop_role role);

/* The word with the text that an interpreter is given to run (-c TEXT, -e TEXT), or NULL. */
const struct coop_word *coop_runs_text(const struct coop_runs *runs, const struct coop_run *run);

/* Whether an interpreter takes its program from standard input. */
bool coop_runs_from_stdin(const struct coop_runs *runs, const struct coop_run *run);

/* The runs of commands from `command` on; those of one command stand together, in the order of the
 * commands. */
size_t coop_runs_from(const struct coop_runs *runs, uint32_t command);

/* Whether one of the commands [first, end), or of the texts in them, fetches something. */
bool coop_runs_fetching(const struct coop_runs *runs, uint32_t first, uint32_t end);

/* Whether something is piped into it. If so and `ret_pipe` is given: the innermost pipe. */
bool coop_runs_piped(const struct coop_runs *runs, const struct coop_run *run,
		     const struct coop_pipe **ret_pipe);

#endif
