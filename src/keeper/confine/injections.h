/* Files that a request gives to its process (`file_injections`): read and checked here, with their
 * contents. Contents stand in no record, log or audit. */
#ifndef COOP_KEEPER_INJECTIONS_H
#define COOP_KEEPER_INJECTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interface/bounds.h"
#include "interface/err.h"
#include "sandbox/layout/layout.h"

/* Where the files of variables lie in a view of the process's own. */
#define COOP_INJECTIONS_FOLDER "/run/coop/files"
#define COOP_INJECTIONS_OTHER_FOLDER "/tmp/.coop-files" /* on a host without /run */

struct coop_injections {
	struct coop_injection files[COOP_INJECTIONS_MAX]; /* path NULL: not placed yet */
	const char
		*names[COOP_INJECTIONS_MAX];   /* of the variables, borrowed; NULL: given by path */
	char *paths[COOP_INJECTIONS_MAX];      /* owned */
	uint8_t *decoded[COOP_INJECTIONS_MAX]; /* owned; other contents are borrowed */
	size_t count;
};

/* The bytes that came with a request: those of files first, in the order of the list; stdin gets
 * the rest. */
struct coop_injections_data {
	const uint8_t *bytes;
	size_t size;
};

/* Reads the argument. `restricted`: names by which code could be slipped into a program are
 * refused. 0 with *ret filled (to be cleared, and not to outlive args and data); NULL there: there
 * are none. Or the error filled. */
int coop_injections_read(const json_t *args, struct coop_injections_data data, bool restricted,
			 struct coop_injections **ret, struct coop_err *err);

/* What of the data is stdin's, also where the arguments were never checked, or are wrong. */
struct coop_injections_data coop_injections_rest(const json_t *args,
						 struct coop_injections_data data);

/* Gives every file of a variable its path in that folder. 0 or -ENOMEM. */
int coop_injections_place(struct coop_injections *injections, const char *folder);

/* The first that has a fixed path; NULL: there is none. */
const char *coop_injections_fixed(const struct coop_injections *injections);

void coop_injections_free(struct coop_injections *injections);

#endif
