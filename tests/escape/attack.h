/* Attacks on the sandbox, made from inside. Each is one function that tries one thing and tells
 * what came of it; whether that is right is for expected/ to say, not for the program. */
#ifndef COOP_ESCAPE_ATTACK_H
#define COOP_ESCAPE_ATTACK_H

#include <stdbool.h>
#include <stddef.h>

#define ATTACK_PARAMS_MAX 64
#define ATTACK_VALUE_MAX 480

enum attack_kind {
	ATTACK_ERRNO, /* refused, with an errno */
	ATTACK_OK,    /* it went through */
	ATTACK_LOOK,  /* nothing was tried: a fact, in value */
};

struct attack_outcome {
	enum attack_kind kind;
	int error;
	char value[ATTACK_VALUE_MAX]; /* empty: nothing to add */
};

struct attack_param {
	char *name, *value;
};

/* What the runner outside has prepared, and what the program found when it began. */
struct attack_context {
	struct attack_param params[ATTACK_PARAMS_MAX];
	size_t param_count;
	char **args; /* words behind the case's name */
	int arg_count;
	int open_fds; /* above 2, at the start */
	int sockets;  /* among all */
};

typedef struct attack_outcome attack_run(const struct attack_context *context);

struct attack {
	const char *name; /* "S-001", or "S-001.variant" */
	attack_run *run;
	bool alone; /* needs a start of its own: `all` leaves it out */
};

/* The themes, each ended by a row without a name. */
extern const struct attack attack_files[];
extern const struct attack attack_setid[];
extern const struct attack attack_processes[];
extern const struct attack attack_terminal[];
extern const struct attack attack_kernel[];
extern const struct attack attack_proc[];
extern const struct attack attack_limits[];
extern const struct attack attack_network[];
extern const struct attack attack_trees[];

struct attack_outcome attack_refused(int error);
struct attack_outcome attack_succeeded(void);
__attribute__((format(printf, 1, 2))) struct attack_outcome attack_looked(const char *format, ...);
/* From what a system call returned: below 0 it was refused with errno. */
struct attack_outcome attack_from(long result);

/* Of two tries the one that went further: what was let in, else the first refusal that is not
 * ENOENT. */
struct attack_outcome attack_worse(struct attack_outcome first, struct attack_outcome second);

/* A parameter's value; the program ends with a message if the runner has not given it. */
const char *attack_param(const struct attack_context *context, const char *name);
/* The same, with a name appended. Points to one of a few buffers that are used in turn. */
const char *attack_path(const struct attack_context *context, const char *name, const char *rest);

/* The line `name` of /proc/self/status, without name and blanks. False if there is none. */
bool attack_status_line(const char *name, char *ret_text, size_t size);

/* Opens and reads: refused; "empty"; "let in" (ok) if the marker is in it; else "other". */
struct attack_outcome attack_read_secret(const struct attack_context *context, const char *path);
/* Opens only, without creating. */
struct attack_outcome attack_open(const char *path, int flags);

#endif
