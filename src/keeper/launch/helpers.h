/* Helpers: programs of coop's own that run as kept processes inside the sandbox concerned. The
 * keeper carries them inside itself, as it does the launcher, and has them executed from a
 * descriptor: so they run wherever coop lives, whatever of that a sandbox shows, and what runs is
 * what was built. */
#ifndef COOP_KEEPER_HELPERS_H
#define COOP_KEEPER_HELPERS_H

/* In the order of coop_choices_helper. */
enum coop_helper { COOP_HELPER_FILES, COOP_HELPERS };

/* Sealed memfds, made when they are first needed; 0: not yet (the number is a standard
 * stream's). */
struct coop_helpers {
	int fds[COOP_HELPERS];
};

/* The program's name, its only argument. */
const char *coop_helper_name(enum coop_helper helper);

/* A descriptor of the program, which stays the keeper's; -errno. */
int coop_helper_fd(struct coop_helpers *helpers, enum coop_helper helper);

void coop_helpers_close(struct coop_helpers *helpers);

#endif
