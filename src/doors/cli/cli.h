/* What every verb has in common: its row of the table, the connection, requests, and what is said
 * to people. */
#ifndef COOP_CLI_CLI_H
#define COOP_CLI_CLI_H

#include <coop.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "doors/cli/options.h"
#include "interface/operations.h"

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_TIMED_OUT = 124,   /* as timeout(1) */
	CLI_OWN_FAILURE = 125, /* verbs that give a command's exit code: coop itself failed */
	CLI_CANNOT_EXECUTE = 126,
	CLI_NOT_FOUND = 127,
	CLI_SIGNAL_BASE = 128,
};

struct cli {
	const struct cli_verb *verb;
	const struct cli_option *options; /* the verb's, completed */
	const void *settings;             /* what they filled */
	/* act as the agent whose token is there; NULL: as COOP_TOKEN says */
	const char *token_file;
	struct coop *coop; /* NULL until cli_open() */
	bool json;
	const char *about; /* what an error of cli_once() is about; NULL: nothing in particular */
	bool lines; /* with --json: several values, a line each, so that an error is one of them */
};

enum cli_start {
	CLI_START_KEEPER,
	/* do not start a keeper: without one there is nothing to be seen anyway */
	CLI_ONLY_RUNNING,
	CLI_START_IF_RECORDED, /* start one if an earlier one left records, of which it tells */
};

/* Looks at one result of cli_each() and, without --json, says it in words. False: it was carried
 * out, and the answer is no. */
typedef bool cli_show(const struct cli *cli, const char *id, const json_t *result);

/* One row of the table of verbs. A verb that is made of others ("agent") has a table of its own for
 * them and cli_group_run() as its `run`. */
struct cli_verb {
	const char *name;                       /* all its words: "ps", "agent add" */
	const char *synopsis;                   /* what follows the name on a command line */
	const char *summary;                    /* one line */
	const char *text;                       /* help: more about it, or NULL */
	const struct coop_operation *operation; /* whose arguments its options are; NULL: of none */
	const struct cli_option *options;       /* NULL: none of its own */
	size_t settings_size;                   /* of the struct that the options fill */
	enum cli_operands operands;
	size_t min_operands, max_operands; /* checked before `run` */
	/* Its exit codes when coop fails and when the command line is wrong; 0: CLI_FAILED,
	 * CLI_USAGE. */
	int failure, usage;
	bool no_keeper; /* it talks to none, so that there is nothing to log in to */
	const struct cli_verb *const *subs; /* ends with NULL; NULL: it is no group */
	/* Of one that has no `run`, but is its operation: on each of the ids that are its
	 * operands (any number), or with the argument `operand`. */
	const char *operand;
	enum cli_start start;
	cli_show *show;
	/* Carries it out; operands end with NULL. Returns the exit code. */
	int (*run)(struct cli *cli, const void *settings, size_t count, char **operands);
};

#define CLI_ANY_NUMBER ((size_t)-1)

/* The table, in the order of help; ends with NULL. */
extern const struct cli_verb *const cli_verbs[];

/* The verb that the words (NULL at the end) begin with, and how many of them are its name: of
 * "agent add x" two. A group without one of its verbs behind it is found as itself. NULL: there is
 * none of that name. */
const struct cli_verb *cli_verb_find(char *const *words, size_t *ret_used);

/* The last word of its name. */
const char *cli_verb_word(const struct cli_verb *verb);

/* Says which verbs the group has: nobody gets here who named one of them. */
int cli_group_run(struct cli *cli, const void *settings, size_t count, char **operands);

/* What verbs take besides their own options. */
struct cli_common {
	const char *token_file;
	bool json, help;
};

/* The rows for that which the verb takes. */
const struct cli_option *cli_common_options(const struct cli_verb *verb);

/* Its exit code when coop fails. */
int cli_failure(const struct cli_verb *verb);

/* Carries out a verb that has no `run`. */
int cli_run_operation(struct cli *cli, size_t count, char **operands);

/* The verb's options, completed, for the caller to free; NULL: no memory. */
struct cli_option *cli_verb_options(const struct cli_verb *verb);

/* Help on one verb, on stdout. */
void cli_help_verb(const struct cli_verb *verb);

/* Connects, as the agent of the token if there is one. 0, or a negative errno with *error filled;
 * nothing has been said yet. -ECONNREFUSED: none is running, which is an answer for a verb that
 * only looks. Not so with a token, which nobody can check then: -ENOTCONN. */
int cli_open(struct cli *cli, enum cli_start start, struct coop_error *error);
void cli_close(struct cli *cli);

/* What a verb that must not start a keeper answers without one: `line`, or with --json the result
 * that says the same, which is taken over. Returns the exit code. */
int cli_nothing_to_do(const struct cli *cli, json_t *result, const char *line);

/* One operation, waited for. Takes over `args` (NULL: it could not be made, which is an error; use
 * json_object() for none). On success *ret is the result, the caller's. On failure *error is
 * filled. */
int cli_call(struct cli *cli, const char *op, json_t *args, json_t **ret, struct coop_error *error);

/* The same, with bytes for it. */
int cli_call_data(struct cli *cli, const char *op, json_t *args, const void *data, size_t size,
		  json_t **ret, struct coop_error *error);

/* Queues one operation. Takes over `args`. */
int cli_submit(struct cli *cli, const char *op, json_t *args, const void *data, size_t size,
	       const struct coop_handler *handler, uint64_t *ret_request, struct coop_error *error);

/* {"id": …}; NULL if the text is not UTF-8. */
json_t *cli_id_args(const char *id);

/* What the options say and, unless `name` is NULL, {name: text}. NULL if something is not UTF-8. */
json_t *cli_args(const struct cli *cli, const char *name, const char *text);

/* The usual shape of a verb on many ids: opens a connection (unless that was done), carries `op`
 * out on each (with `args` besides the id, taken over), goes on after a failure. `show` may be
 * NULL. With --json prints the result, of several ids an array. Returns the exit code. */
int cli_each(struct cli *cli, const char *op, json_t *args, size_t count, char **ids,
	     cli_show *show);

/* The shape of a verb that is one operation without a process: opens (unless that was done), calls,
 * shows, and prints the result as JSON if that is asked for; of one that has a single member, which
 * is an object or a list, that one. Takes over `args`. */
int cli_once(struct cli *cli, enum cli_start start, const char *op, json_t *args, cli_show *show);

/* One line on stderr, "coop: …". Control characters become "?". */
__attribute__((format(printf, 1, 2))) void cli_say(const char *format, ...);

/* Says an error in one line with the way out, if there is one; `about` (may be NULL) stands in
 * front. With --json also prints {"error": …}. Returns the verb's exit code for failures. */
int cli_fail(const struct cli *cli, const char *about, const struct coop_error *original);

/* Refuses a command line: "run: --cols goes with -t", with code "usage". Returns the verb's exit
 * code for that. */
__attribute__((format(printf, 2, 3))) int cli_misuse(const struct cli *cli, const char *format,
						     ...);

/* Fills an error that was found here and not by the keeper. */
__attribute__((format(printf, 3, 4))) void cli_error(struct coop_error *error, const char *code,
						     const char *format, ...);

/* Says an error of the keeper's about an argument in the words of the option that it came from.
 * cli_fail() does so itself. */
void cli_error_translate(const struct cli *cli, struct coop_error *error);

/* {"error": {"code", "message", "details"}}, without "type". */
json_t *cli_error_json(const struct coop_error *error);

/* One JSON value on stdout and a newline; indented for people if stdout is a terminal. */
void cli_print_json(const json_t *value);
/* The same on one line, always: a member of JSON lines. */
void cli_print_json_line(const json_t *value);

/* Flushes stdout. The exit code, or the verb's failure code if not all could be written. */
int cli_finish(const struct cli *cli, int code);

#endif
