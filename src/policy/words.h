/* What a command line says: simple commands, each with its words, and how they are tied together.
 *
 * A reading of the text, made without running anything. Quotes and escapes are gone; what only the
 * shell could know at run time is left as written and marked. The parser (policy/parser.h) fills
 * it; everything lies in memory of its own, and small lines need none but the struct itself. */
#ifndef COOP_POLICY_WORDS_H
#define COOP_POLICY_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Beyond these a line is too long to judge, and denied. Words of argv are only pointed to: no text
 * limits hold for them. */
#define COOP_WORDS_TEXT_MAX ((size_t)1024 * 1024)       /* bytes of one text for a shell */
#define COOP_WORDS_TOTAL_MAX ((size_t)2 * 1024 * 1024)  /* of it and the texts inside it */
#define COOP_WORDS_STORED_MAX ((size_t)8 * 1024 * 1024) /* bytes of all words together */
#define COOP_WORDS_WORK_MAX                                                  \
	((size_t)8 * 1024 * 1024) /* bytes put together and places looked at \
				   */
#define COOP_WORDS_COMMANDS_MAX 16384u
#define COOP_WORDS_MAX 135168u
#define COOP_WORDS_DEPTH_MAX 24u /* of things inside each other */
#define COOP_WORDS_VARIABLES 256u

enum {
	COOP_WORD_COMPUTED = 1, /* has a part that is known only when it runs */
	COOP_WORD_QUOTED = 2,   /* some of it was quoted */
	COOP_WORD_GLOB = 4,     /* has a pattern character that the shell would expand */
	COOP_WORD_SUBSTITUTED =
		8, /* commands of this reading make (part of) it: see coop_simple.word */
};

enum coop_role {
	COOP_ROLE_ARGUMENT,
	COOP_ROLE_READ,  /* < file */
	COOP_ROLE_WRITE, /* > file, and its kin */
	COOP_ROLE_HERE,  /* the text of a here-document or here-string */
};

#define COOP_WORD_LITERAL UINT8_MAX

struct coop_word {
	const char *text;
	uint32_t id; /* differs for every word */
	uint8_t flags, role;
	/* Of a computed word: how many bytes at its beginning and end are sure. LITERAL: all of
	 * them are, the rest of what was computed is in words before or after it. */
	uint8_t head, tail;
};

/* Where a command stands with regard to its parent. */
enum coop_via {
	COOP_VIA_NOTHING,      /* argv itself, or an outermost line */
	COOP_VIA_SUBSTITUTION, /* $(..), `..` */
	COOP_VIA_PROCESS,      /* <(..), >(..) */
	COOP_VIA_TEXT,         /* sh -c TEXT, eval TEXT, … */
};

#define COOP_SIMPLE_NONE UINT32_MAX

struct coop_simple {
	size_t first;                /* of its words; arguments, then redirections */
	size_t arguments, redirects; /* how many */
	const char *cwd;             /* where it runs, absolute; NULL: not known */
	uint32_t parent; /* index of the command that it stands in, or COOP_SIMPLE_NONE */
	uint32_t word;   /* id of the parent's word that it stands in; 0: none */
	uint32_t pipe;   /* the innermost that brings it input, or COOP_SIMPLE_NONE */
	/* how many commands before this one fetch something, or have a text in them that does */
	uint32_t fetching;
	uint8_t via;
	bool shell; /* read by a shell, where some names are its own */
	bool background;
};

/* The output of commands [first, middle) goes to commands [middle, end). */
struct coop_pipe {
	uint32_t first, middle, end;
	uint32_t outer; /* the next one around it on the receiving side, or COOP_SIMPLE_NONE */
};

/* A function's body is the commands [first, end). */
struct coop_function {
	const char *name;
	uint32_t first, end;
};

struct coop_variable {
	const char *name, *value; /* NULL: known only when it runs */
};

struct coop_words_chunk;

struct coop_words {
	struct coop_word *words;
	struct coop_simple *commands;
	struct coop_pipe *pipes;
	struct coop_function *functions;
	size_t word_count, command_count, pipe_count, function_count;
	const char *home;
	bool too_long, no_memory; /* the reading is not whole */

	/* For the parser. Words of commands that are not finished, and bytes of words that are
	 * not. */
	struct coop_word *pending;
	char *scratch;
	size_t pending_count, scratch_count, total, stored, work;
	uint32_t last_id;
	struct coop_variable variables[COOP_WORDS_VARIABLES];
	size_t variable_count;

	struct coop_words_chunk *chunks;
	size_t word_capacity, command_capacity, pipe_capacity, function_capacity;
	size_t pending_capacity, scratch_capacity, text_used;
	struct coop_word word_space[48], pending_space[32];
	struct coop_simple command_space[8];
	struct coop_pipe pipe_space[8];
	struct coop_function function_space[2];
	char scratch_space[512], text_space[2048];
};

void coop_words_init(struct coop_words *words, const char *home);
void coop_words_clear(struct coop_words *words);

/* Counts steps of work that a text could make many of; too many make it too long. */
void coop_words_charge(struct coop_words *words, size_t steps);

/* A copy that lives as long as the reading; NULL without memory (then no_memory is set). */
char *coop_words_text(struct coop_words *words, const char *text, size_t size);

/* A list that begins in `space`, with room for one more, perhaps elsewhere; NULL at the limit or
 * without memory, with the reason noted. */
void *coop_words_room(struct coop_words *words, void *items, const void *space, size_t size,
		      size_t count, size_t *capacity, size_t max);

/* Where there is no room, nothing is added, and the reason noted. A command's index comes back, or
 * COOP_SIMPLE_NONE. */
uint32_t coop_words_add_command(struct coop_words *words);
void coop_words_add_pipe(struct coop_words *words, struct coop_pipe pipe);
void coop_words_add_function(struct coop_words *words, struct coop_function function);
void coop_words_add_pending(struct coop_words *words, struct coop_word word);
void coop_words_add_scratch(struct coop_words *words, const char *bytes, size_t size);

/* Moves the pending words from `from` on into the command: arguments first, then redirections. */
void coop_words_finish(struct coop_words *words, uint32_t command, size_t from);

/* A command that no shell reads. The texts are borrowed. */
void coop_words_argv(struct coop_words *words, const char *const *argv, const char *cwd);

/* Variables that the line itself sets. A NULL value makes it one that is not known. */
void coop_words_assign(struct coop_words *words, const char *name, size_t size, const char *value);
const struct coop_variable *coop_words_variable(const struct coop_words *words, const char *name,
						size_t size);

/* The length of NAME where text is NAME=…, or 0. */
size_t coop_words_assignment(const char *text);

static inline const struct coop_word *coop_words_of(const struct coop_words *words,
						    const struct coop_simple *command)
{
	return words->words + command->first;
}

/* Whether `command` is one of [first, end) or stands inside one of them. */
bool coop_words_within(const struct coop_words *words, uint32_t command, uint32_t first,
		       uint32_t end);

#endif
