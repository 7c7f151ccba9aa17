#include "keeper/host/views.h"

#include "base/mem.h"
#include "keeper/core/keeper.h"

struct coop_views *coop_views_new(void)
{
	struct coop_views *views = coop_mem_zalloc(sizeof *views);

	if (views)
		coop_list_init(&views->reports);
	return views;
}

void coop_views_clear(struct coop_views *views)
{
	coop_idmaps_clear(&views->idmaps);
	coop_users_clear(&views->users);
	coop_host_sockets_clear(&views->sockets);
}

void coop_views_loosen(struct coop_keeper *keeper)
{
	coop_views_of(keeper)->loose = true;
}

bool coop_views_loose(const struct coop_keeper *keeper)
{
	return coop_views_of(keeper)->loose;
}
