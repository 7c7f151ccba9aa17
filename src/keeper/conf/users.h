/* Names for the user that a confined process runs as, where /etc/passwd and /etc/group have none:
 * copies of both with a line more, for its view. */
#ifndef COOP_KEEPER_USERS_H
#define COOP_KEEPER_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "sandbox/layout/layout.h"

#define COOP_USERS_FILES 2u

/* One of the two files, as it was read. */
struct coop_users_file {
	bool read;
	uint32_t id; /* whom it was made for */
	struct stat seen;
	struct coop_buf text; /* empty: nothing is missing there */
	const char *name;     /* that it has for the id; NULL: none */
};

struct coop_users {
	struct coop_users_file files[COOP_USERS_FILES];
	char **names; /* all that were ever found: processes point to them */
	size_t name_count;
};

/* Fills in those that a view needs so that uid and gid have names; how many. They are made again
 * when the host's file has changed, and live until the next call. */
size_t coop_users_files(struct coop_users *users, uint32_t uid, uint32_t gid,
			struct coop_injection ret[COOP_USERS_FILES]);

/* The name by which `id` knows the uid inside, with those files in the view or without; NULL: none.
 * Lives as long as `users`. */
const char *coop_users_name(struct coop_users *users, uint32_t uid, uint32_t gid, bool view);

void coop_users_clear(struct coop_users *users);

#endif
