#include "keeper/link/connections.h"

#include "base/mem.h"
#include "keeper/core/keeper.h"

struct coop_connections *coop_connections_new(struct coop_keeper *keeper,
					      const struct coop_conn_watch *const *watch,
					      const struct coop_intake_calls *calls)
{
	struct coop_connections *connections = coop_mem_zalloc(sizeof *connections);

	if (!connections)
		return NULL;
	connections->watch = watch;
	connections->calls = calls;
	coop_list_init(&connections->all);
	coop_admission_init(&connections->admission, keeper);
	return connections;
}

struct coop_link *coop_connections_all(const struct coop_keeper *keeper)
{
	return &coop_connections_of(keeper)->all;
}

unsigned coop_connections_count(const struct coop_keeper *keeper)
{
	return coop_connections_of(keeper)->count;
}
