/* What the views of all processes have in common, besides the host itself. Between the files of
 * this room, and for those who give what stands in it to a view. */
#ifndef COOP_KEEPER_VIEWS_H
#define COOP_KEEPER_VIEWS_H

#include <stdbool.h>

#include "base/list.h"
#include "keeper/conf/users.h"
#include "sandbox/layout/host_sockets.h"
#include "sandbox/layout/idmap.h"

struct coop_ghosts;
struct coop_keeper;

struct coop_views {
	struct coop_idmaps idmaps;
	struct coop_ghosts *ghosts;
	struct coop_users users;
	struct coop_host_sockets sockets;
	struct coop_link reports; /* see reports.h */
	char files_dir[4096]; /* "" until it is needed: files for processes that see the host's */
	bool loose;           /* something confined was started without a view of its own */
};

/* NULL without memory. */
struct coop_views *coop_views_new(void);
void coop_views_clear(struct coop_views *views);

/* Something confined is started without a view of its own: it may see the keeper's socket. */
void coop_views_loosen(struct coop_keeper *keeper);
/* Whether that has ever been. */
bool coop_views_loose(const struct coop_keeper *keeper);

#endif
