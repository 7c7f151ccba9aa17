/* The shells that mode "shell" can use. */
#ifndef COOP_KEEPER_SHELLS_H
#define COOP_KEEPER_SHELLS_H

#include <stdbool.h>
#include <stddef.h>

struct coop_shell {
	const char *id, *label, *path;
	bool login, interactive; /* what it supports */
};

/* The shell with that id or path, or (NULL) the default one; NULL if there is none such on this
 * host. */
const struct coop_shell *coop_shells_find(const char *name);

/* Row `index` of the table, or NULL past the last. */
const struct coop_shell *coop_shells_row(size_t index);
bool coop_shells_available(const struct coop_shell *shell);

#endif
