/* Options of a verb as a table: each row says where in the verb's settings its value goes, and
 * which argument of the operation it is, whose row in the interface says the rest. Parsing, help,
 * completion and the request are all made from the rows. */
#ifndef COOP_CLI_OPTIONS_H
#define COOP_CLI_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interface/schema.h"

enum cli_option_kind {
	CLI_FLAG,     /* bool */
	CLI_TEXT,     /* const char * */
	CLI_CHOICE,   /* const char *, one of `argument`'s alternatives (a|b|c) */
	CLI_DURATION, /* struct cli_number, milliseconds */
	CLI_SIZE,     /* struct cli_number, bytes */
	CLI_COUNT,    /* struct cli_number */
	CLI_SECONDS,  /* struct cli_number, whole seconds; typed as a duration */
	CLI_SHARE,    /* struct cli_number, thousandths; as JSON a number with a fraction */
	CLI_TIME,     /* struct cli_number, milliseconds since 1970 */
	CLI_LIST,     /* struct cli_list, the option may be repeated */
	CLI_PAIRS,    /* the same of NAME=VALUE; as JSON an object */
};

struct cli_number {
	bool set;
	uint64_t value;
};

struct cli_list {
	const char **items;
	size_t count;
};

struct cli_option {
	const char *name; /* without its dashes */
	char letter;      /* 0: it has none */
	enum cli_option_kind kind;
	size_t offset; /* of the value in the settings */
	/* the argument of the operation that it is ("policy.mode": a member of one), or NULL */
	const char *field;
	const char *argument;         /* what help calls the value */
	const char *help;             /* NULL ends the table */
	const struct coop_field *row; /* of the argument; of completed tables */
};

/* A row for an argument of the operation: what is not said follows from the argument's row. */
#define CLI_ARG(FIELD, OFFSET, HELP, ...)                                   \
	{                                                                   \
		.field = FIELD, .offset = OFFSET, .help = HELP, __VA_ARGS__ \
	}

enum cli_operands {
	CLI_OPERANDS_MIXED, /* options may stand after operands */
	/* the first operand ends the options: what follows is somebody else's command line */
	CLI_OPERANDS_LAST,
	CLI_OPERANDS_ALL, /* every word is an operand: the whole is somebody else's command line */
};

/* A table and the struct that it fills. */
struct cli_option_set {
	const struct cli_option *options; /* NULL: an empty one */
	void *settings;
};

/* Room for the sentence that says what is wrong with a command line. */
#define CLI_OPTION_ERROR_MAX 256

/* Reads `args` (NULL at the end, the verb not among them) into the settings of the sets, which
 * start zeroed. Operands are moved to the front of `args`; *ret_operands is their number. On
 * failure, -EINVAL or -ENOMEM, `error` holds a sentence about the first fault; what else could be
 * read has been. Texts point into `args`; what lists allocate is ended with cli_options_free(). */
int cli_options_parse(const struct cli_option_set *sets, size_t set_count,
		      enum cli_operands operands, char **args, size_t *ret_operands,
		      char error[CLI_OPTION_ERROR_MAX]);

/* Adds every option that was given and has a `field` to the request's arguments. 0, or -EILSEQ: a
 * text is not UTF-8, and *ret_bad names the option. */
int cli_options_fields(const struct cli_option *options, const void *settings, json_t *args,
		       const char **ret_bad);

/* Is the option's value a struct cli_number? */
bool cli_option_is_number(const struct cli_option *option);

/* Was the option given? */
bool cli_option_given(const struct cli_option *option, const void *settings);

void cli_options_free(const struct cli_option *options, void *settings);

#endif
