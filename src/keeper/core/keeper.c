#include "keeper/core/keeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io/paths.h"
#include "keeper/conf/config.h"
#include "keeper/core/context.h"
#include "keeper/core/life.h"

#define FDS_HELD_BACK 24 /* so that clients can always be answered, and /proc looked at */

#define PART(type, member)                                                       \
	struct coop_##type *coop_##member##_of(const struct coop_keeper *keeper) \
	{                                                                        \
		return keeper->member;                                           \
	}

PART(agents, agents)
PART(books, books)
PART(config, config)
PART(connections, connections)
PART(eviction, eviction)
PART(groups, groups)
PART(keeper_host, host)
PART(journal, journal)
PART(kills, kills)
PART(launchers, launchers)
PART(life, life)
PART(listeners, listeners)
PART(meters, meters)
PART(nets, nets)
PART(notices, notices)
PART(ports, ports)
PART(questions, questions)
PART(registry, registry)
PART(slots, slots)
PART(spools, spools)
PART(tree, tree)
PART(views, views)

const struct coop_place *coop_place_of(const struct coop_keeper *keeper)
{
	return &keeper->place;
}

/* Whoever has the context may use the loop: libuv's handles are no part of what is const here. */
uv_loop_t *coop_loop_of(const struct coop_keeper *keeper)
{
	return (uv_loop_t *)&keeper->loop;
}

struct coop_laters *coop_laters_of(const struct coop_keeper *keeper)
{
	return &keeper->life->laters;
}

const struct coop_observer *const *coop_observers_of(const struct coop_keeper *keeper)
{
	return keeper->observers;
}

const struct coop_conf *coop_conf_of(const struct coop_keeper *keeper)
{
	return coop_config_now(keeper->config);
}

int coop_keeper_settle_data(struct coop_keeper *keeper, bool make)
{
	char *path = keeper->place.data_dir;
	int r = make ? coop_paths_make_dir(path) : 0;

	if (r < 0)
		return r;
	COOP_AUTO_FREE char *real = realpath(path, NULL);
	if (!real)
		return -errno;
	if (strlen(real) >= sizeof keeper->place.data_dir)
		return -ENAMETOOLONG;
	memcpy(path, real, strlen(real) + 1);
	return 0;
}

/* By the number of the descriptor: the kernel gives the lowest that is free, so a high one tells
 * that there are few left. */
bool coop_keeper_fd_allowed(const struct coop_keeper *keeper, int fd)
{
	return (rlim_t)fd + FDS_HELD_BACK < keeper->place.fd_limit;
}
