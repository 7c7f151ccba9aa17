/* What is known of programs by their names, and how their arguments are told apart. */
#ifndef COOP_POLICY_PROGRAMS_H
#define COOP_POLICY_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/words.h"

enum {
	COOP_TRAIT_WRAPPER = 1 << 0, /* runs what its arguments name */
	COOP_TRAIT_SHELL = 1 << 1,
	COOP_TRAIT_SHELL_FILE = 1 << 2, /* . and source */
	COOP_TRAIT_TEXT = 1 << 3,       /* has a shell read an argument */
	COOP_TRAIT_INTERPRETER = 1 << 4,
	COOP_TRAIT_FETCH = 1 << 5,   /* prints what it gets from the network */
	COOP_TRAIT_SEND = 1 << 6,    /* sends what it reads */
	COOP_TRAIT_COPIES = 1 << 7,  /* prints what the files hold, in some form */
	COOP_TRAIT_PRINTS = 1 << 8,  /* prints its arguments */
	COOP_TRAIT_QUIET = 1 << 9,   /* does not read the content of the files it names */
	COOP_TRAIT_SCRIPT = 1 << 10, /* the first argument is a text in a language of its own */
	COOP_TRAIT_WRITE = 1 << 11,  /* changes files */
	COOP_TRAIT_RAISE = 1 << 12,  /* becomes another user */
	COOP_TRAIT_KILL = 1 << 13,
	COOP_TRAIT_PACKAGE = 1 << 14, /* installs, if the verb says so */
	COOP_TRAIT_BUILTIN = 1 << 15, /* a shell has it inside */
};

/* Whose arguments somebody looks into. */
enum coop_kind {
	COOP_KIND_NONE,
	COOP_KIND_ALIAS,
	COOP_KIND_ARCHIVE,
	COOP_KIND_CHMOD,
	COOP_KIND_CLOUD,
	COOP_KIND_COMMAND,
	COOP_KIND_CP,
	COOP_KIND_CURL,
	COOP_KIND_DD,
	COOP_KIND_DISK,
	COOP_KIND_ENV,
	COOP_KIND_EVAL,
	COOP_KIND_FIND,
	COOP_KIND_FLOCK,
	COOP_KIND_FUSER,
	COOP_KIND_GIT,
	COOP_KIND_GREP,
	COOP_KIND_INIT,
	COOP_KIND_INSTALLER,
	COOP_KIND_KILL,
	COOP_KIND_MV,
	COOP_KIND_OPENSSL,
	COOP_KIND_PACMAN,
	COOP_KIND_PARALLEL,
	COOP_KIND_PERL,
	COOP_KIND_PKILL,
	COOP_KIND_POWER,
	COOP_KIND_PYTHON,
	COOP_KIND_RM,
	COOP_KIND_SCP,
	COOP_KIND_SCRIPT,
	COOP_KIND_SED,
	COOP_KIND_SFTP,
	COOP_KIND_SHRED,
	COOP_KIND_SSH,
	COOP_KIND_SU,
	COOP_KIND_SUBPACKAGE,
	COOP_KIND_SYSTEMCTL,
	COOP_KIND_TEE,
	COOP_KIND_TRAP,
	COOP_KIND_WATCH,
	COOP_KIND_WGET,
	COOP_KIND_XARGS,
	COOP_KIND_YARN,
};

struct coop_known_program {
	uint32_t traits;
	enum coop_kind kind;
	unsigned skip;      /* wrappers: arguments before the command */
	const char *shorts; /* letters of options that take a value; NULL: none */
	const char *longs;  /* " --name --name " likewise */
	const char *verbs;  /* " install add ": those that install */
};

/* By the name without folder, also with a version behind it (python3.11). Never NULL; all zero for
 * one that is not known. */
const struct coop_known_program *coop_program_find(const char *name);

/* Whether the table is in the order that finding needs; for tests. */
bool coop_program_sorted(void);

/* Whether `list` (" a b ") has the word. */
bool coop_program_listed(const char *list, const char *word);

/* Steps through arguments and tells options, their values and the rest apart. Zero-initialise, then
 * set the first three. */
struct coop_args {
	const struct coop_known_program *program;
	const struct coop_word *words;
	size_t count;
	size_t next;
	bool rest; /* -- was seen */

	const struct coop_word *word; /* the current one */
	const char *option; /* "--name", "--name=x" or "-abc" whose value this is; else NULL */
	const char *value;  /* the value, or the argument's text; NULL: an option without one */
	char letter;        /* the short option with the value; 0 otherwise */
};

bool coop_args_next(struct coop_args *args);

/* Whether the current word is neither an option nor the value of one. */
static inline bool coop_args_plain(const struct coop_args *args)
{
	return !args->option;
}

/* Whether an option word means --name (also --name=x or cut short), or has the letter in its
 * cluster -abc. 0: no letter. */
bool coop_args_is(const char *option, char letter, const char *name);

/* Whether one of the words is such an option. */
bool coop_args_have(const struct coop_known_program *program, const struct coop_word *words,
		    size_t count, char letter, const char *name);

#endif
