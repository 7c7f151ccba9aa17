/* Many names in a folder, looked for at once: each folder that may hold some is read once, and what
 * lies in folders that are not there is not looked for. */
#ifndef COOP_SANDBOX_FOUND_H
#define COOP_SANDBOX_FOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a name is there. LINKED: one on the way, or the last, is a symbolic link. */
enum coop_found_state { COOP_FOUND_MISSING, COOP_FOUND_PLAIN, COOP_FOUND_LINKED };

struct coop_found {
	enum coop_found_state state;
	/* MISSING: the folder where it ends was read and does not have it; else it may be there
	 * and not be seen. */
	bool sure;
	/* MISSING: up to the end of the first name that is missing; LINKED: of the link */
	uint32_t known;
};

/* A table whose rows begin with a pointer to their name, relative; sorted name by name, a slash
 * before all else, and none lies in another. */
struct coop_rows {
	const void *first;
	size_t stride;
	uint32_t count;
};

/* `ret` has as many members as there are rows. In a folder that may be neither read nor searched
 * all are missing. */
void coop_found_look(const char *folder, const struct coop_rows *rows, struct coop_found *ret);

/* What a look found, for the next one through the same folder: it holds while none of the
 * folders that were looked at has changed. One look for each folder then does for reading all of
 * them. */
struct coop_found_memory;

/* The same, with a memory of its own (NULL: there is none yet, or no memory for one); always for
 * the same rows. To be freed with coop_found_forget. */
void coop_found_look_again(const char *folder, const struct coop_rows *rows,
			   struct coop_found_memory **memory, struct coop_found *ret);
void coop_found_forget(struct coop_found_memory *memory);

#endif
