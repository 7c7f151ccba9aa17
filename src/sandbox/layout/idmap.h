/* A folder shown with other owners: how a command that runs as somebody without rights works in a
 * folder of anybody's. Only a root keeper can do that. */
#ifndef COOP_SANDBOX_IDMAP_H
#define COOP_SANDBOX_IDMAP_H

#include <stdbool.h>
#include <stdint.h>

/* User namespaces whose maps have been made, one for each pair of owners. */
#define COOP_IDMAPS_MAX 32

struct coop_idmaps {
	struct {
		uint32_t uid, gid;
		int fd;
	} entries[COOP_IDMAPS_MAX];
	unsigned count, next; /* the oldest gives way */
};

/* A detached mount of the tree at `folder` (an O_PATH fd), in which what belongs to its owner
 * belongs to uid and gid, and the other way round for what is made in it. All other ids but 0 stay
 * as they are. The fd or -errno (-EINVAL: the file system, or one mounted below, does not take
 * part). */
int coop_idmap_tree(struct coop_idmaps *maps, int folder, uint32_t uid, uint32_t gid);

/* Tries it on a file system that is known to take part. 0 or -errno. */
int coop_idmap_probe(struct coop_idmaps *maps, uint32_t uid, uint32_t gid);

void coop_idmaps_clear(struct coop_idmaps *maps);

#endif
