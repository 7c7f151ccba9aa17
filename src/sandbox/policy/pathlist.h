/* Lists of paths of a policy: as text, made plain when they are read and not looked up here. NULL
 * is a list that was not given, which is not the same as an empty one. */
#ifndef COOP_SANDBOX_PATHLIST_H
#define COOP_SANDBOX_PATHLIST_H

#include <stdbool.h>
#include <stddef.h>

#include "interface/err.h"

/* What a path may look like. All but a workspace may begin with `~/`, which stays as it is. */
enum coop_pathlist_kind {
	COOP_PATHLIST_FOLDER,    /* absolute, nothing else: a workspace */
	COOP_PATHLIST_PLAIN,     /* no pattern */
	COOP_PATHLIST_PATTERN,   /* may be a pattern */
	COOP_PATHLIST_PROTECTED, /* no pattern; may be relative to what is writable */
};

/* The path without `.`, `..` and doubled slashes, for the caller to free. NULL with the error
 * filled, naming `field`. */
char *coop_pathlist_plain(enum coop_pathlist_kind kind, const char *text, const char *field,
			  struct coop_err *err);

/* Makes `text` plain and adds it, unless it is there already. 0, or the error filled and the list
 * as it was. */
int coop_pathlist_add(char ***list, enum coop_pathlist_kind kind, const char *text,
		      const char *field, struct coop_err *err);

/* Makes an empty list of one that was not given. */
int coop_pathlist_give(char ***list, struct coop_err *err);

/* Adds all of `more` (NULL: nothing), each once. `field` is told where they are too many. */
int coop_pathlist_join(char ***list, char *const *more, const char *field, struct coop_err *err);

size_t coop_pathlist_count(char *const *list);
void coop_pathlist_free(char **list);

/* Whether a plain path is one of the list's or lies in one. */
bool coop_pathlist_holds(char *const *list, const char *path);
bool coop_pathlist_within(const char *path, const char *root);

#endif
