#include "keeper/tree/party.h"

#include <stdlib.h>

#include "base/io/log.h"
#include "base/mem.h"
#include "keeper/link/request.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"

/* The end goes on without the one who asked for it. */
static void detach(struct coop_request *request)
{
	struct coop_party *party = request->state;

	party->request = NULL;
}

struct coop_party *coop_party_new(struct coop_request *request,
				  void (*done)(struct coop_party *party))
{
	struct coop_party *party = coop_mem_zalloc(sizeof *party);

	if (!party)
		return NULL;
	party->done = done;
	coop_party_for(party, request);
	return party;
}

void coop_party_for(struct coop_party *party, struct coop_request *request)
{
	party->request = request;
	if (request) {
		request->state = party;
		request->on_drop = detach;
	}
}

/* A process that is being killed for another reason joins: the party waits for it all the same. */
void coop_party_add(struct coop_party *party, struct coop_process *process,
		    const struct coop_kill_order *order)
{
	bool live = coop_process_live(process);

	if (coop_kill_begin(process, order) < 0) {
		coop_log(COOP_LOG_ERROR, "out of memory: process goes on id=%s", process->id);
		party->survivors++;
		return;
	}
	party->ended += live;
	if (live && party->ids)
		(void)json_array_append_new(party->ids, json_string(process->id));
	if (!process->kill)
		return;
	struct coop_party_member *member = coop_mem_zalloc(sizeof *member);
	if (!member)
		return;
	member->party = party;
	party->under_way++;
	coop_list_add(&process->kill->members, &member->in_kill);
}

/* Told once all have been added: the first may be gone before the last was begun. */
static void look(struct coop_party *party)
{
	if (party->under_way || !party->complete)
		return;
	if (party->request)
		party->request->on_drop = NULL;
	party->done(party);
	json_decref(party->ids);
	free(party);
}

void coop_party_wait(struct coop_party *party)
{
	party->complete = true;
	look(party);
}

void coop_party_left(struct coop_link *members, unsigned survivors)
{
	while (!coop_list_empty(members)) {
		struct coop_party_member *member =
			COOP_LIST_ITEM(members->next, struct coop_party_member, in_kill);
		struct coop_party *party = member->party;
		coop_list_remove(&member->in_kill);
		free(member);
		party->under_way--;
		party->survivors += survivors;
		look(party);
	}
}
