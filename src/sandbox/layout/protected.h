/* Files of a project that are run, or change what is run, by a person later and outside, without
 * being asked for. They stay read-only at the top of every writable root. The rows are data: what
 * does with them is in layout_protect.c. */
#ifndef COOP_SANDBOX_PROTECTED_H
#define COOP_SANDBOX_PROTECTED_H

#include <stdbool.h>
#include <stddef.h>

#include "sandbox/policy/found.h"

struct coop_protected {
	const char *name; /* relative to the root */
	/* What is missing is held by a placeholder: it cannot be made either. Else the row counts
	 * where the file is there, as its program asks before it runs one that it has not seen. */
	bool held;
	/* what stands there while it is missing is a folder; else a socket, which costs a
	 * fraction */
	bool folder;
	const char *content; /* of the plain file that must stand there; NULL: a socket does */
};

#define COOP_PROTECTED_MAX 128u

/* All rows, *ret_count how many, and which of them are in that folder. `ret` has COOP_PROTECTED_MAX
 * members. */
const struct coop_protected *coop_protected_look(const char *root, struct coop_found *ret,
						 size_t *ret_count);

/* Whether `path` is what a row names in `root`, or lies in it, or in a folder there that version
 * control keeps for itself. */
bool coop_protected_within(const char *root, const char *path);

/* Whether the path leads through a folder that version control keeps for itself, wherever that
 * is. */
bool coop_protected_repository(const char *path);

#endif
