/* The sockets of the host that have a name in the file system. Connecting is no write: a process
 * reaches each one that it can see, so its view is made without them. */
#ifndef COOP_SANDBOX_HOST_SOCKETS_H
#define COOP_SANDBOX_HOST_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define COOP_HOST_SOCKETS_MAX 4096u

struct coop_silence;

struct coop_host_sockets {
	char **paths; /* canonical, NULL-terminated; NULL: none yet */
	size_t count;
	struct coop_buf unseen; /* names on what can be silent, each with its NUL */
	char **cold;            /* names on this host's disks that nobody has looked up yet */
	size_t cold_count;
	unsigned generation; /* of the mounts that they were resolved by */
	char **lent;         /* canonical ones of the unseen, looked up by others */
	size_t lent_count;
	const char **all;              /* both together, while some are lent */
	uint64_t read_at, resolved_at; /* monotonic */
	struct coop_buf names;         /* that they were found by: each with its NUL, sorted */
	struct coop_buf found;         /* now: the same, unsorted */
	int fd;                        /* to ask the kernel by, if opened */
	bool opened;
	bool unanswered; /* it does not tell: its table is read instead */
};

/* Those that exist now: listening or bound, of our network namespace, by an absolute path. Beyond
 * the bound the rest is left out. Where there are many the answer may be a quarter of a second old.
 * NULL-terminated, until the next call; NULL: none, or not to be had. Names on a file system that
 * can be silent (`unseen`), or that the kernel does not have at hand (`cold`), are not waited for:
 * their sockets are in the list only as far as somebody else has looked them up. */
const char *const *coop_host_sockets_list(struct coop_host_sockets *sockets,
					  const struct coop_silence *silence);

/* A socket's canonical path joins the list, until all are taken back. Without memory it does
 * not. */
void coop_host_sockets_lend(struct coop_host_sockets *sockets, const char *path);

/* Of a cold name it is known now where it led by the mounts of that generation: the canonical path
 * of a socket, or "". It is as good as those that were at hand, and not asked for again before
 * they are. What does not fit to the list any more is lent. */
void coop_host_sockets_learn(struct coop_host_sockets *sockets, unsigned generation,
			     const char *name, const char *path);
void coop_host_sockets_take_back(struct coop_host_sockets *sockets);

void coop_host_sockets_clear(struct coop_host_sockets *sockets);

#endif
