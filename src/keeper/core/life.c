#include "keeper/core/life.h"

#include "keeper/core/keeper.h"

bool coop_life_stopping(const struct coop_keeper *keeper)
{
	return coop_life_of(keeper)->stopping;
}

bool coop_life_finished(const struct coop_keeper *keeper)
{
	return coop_life_of(keeper)->finished;
}

void coop_life_look(struct coop_keeper *keeper)
{
	coop_later(coop_laters_of(keeper), &coop_life_of(keeper)->look);
}

void coop_life_reap(struct coop_keeper *keeper)
{
	coop_later(coop_laters_of(keeper), &coop_life_of(keeper)->reap);
}

/* The function is main/'s: what leaving takes, this room does not know. */
void coop_life_end(struct coop_keeper *keeper, uint64_t grace_ms, struct coop_request *request)
{
	coop_life_of(keeper)->shutdown(keeper, grace_ms, request);
}

void coop_life_disk_begin(struct coop_keeper *keeper)
{
	coop_life_of(keeper)->disk_jobs++;
}

void coop_life_disk_end(struct coop_keeper *keeper)
{
	coop_life_of(keeper)->disk_jobs--;
}
