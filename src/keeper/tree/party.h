/* Several processes that are ended together: somebody is told when the last of them is gone. */
#ifndef COOP_KEEPER_PARTY_H
#define COOP_KEEPER_PARTY_H

#include "base/list.h"
#include "keeper/tree/kill.h"

struct coop_keeper;
struct coop_trash;

struct coop_party {
	/* answered by `done`; NULL: it has gone meanwhile, or never was */
	struct coop_request *request;
	void (*done)(struct coop_party *party); /* called once; the party is freed afterwards */
	unsigned ended, survivors;
	unsigned agents; /* that were removed with them, for the answer */
	unsigned under_way;
	bool complete;              /* no further one will be added */
	json_t *ids;                /* of those that are ended; NULL where nobody wants them */
	struct coop_trash *trash;   /* to be emptied when they are gone; NULL: nothing */
	struct coop_keeper *keeper; /* where there is trash */
};

/* One process of a party, in the list of its kill. */
struct coop_party_member {
	struct coop_link in_kill;
	struct coop_party *party;
};

/* NULL without memory. Takes over the request, whose on_drop it sets. */
struct coop_party *coop_party_new(struct coop_request *request,
				  void (*done)(struct coop_party *party));

/* Gives one that was made without a request its request, or NULL. */
void coop_party_for(struct coop_party *party, struct coop_request *request);

/* Ends one more. Without memory it is ended all the same if possible, and not waited for. */
void coop_party_add(struct coop_party *party, struct coop_process *process,
		    const struct coop_kill_order *order);

/* That was all: `done` comes when they are gone, maybe at once. */
void coop_party_wait(struct coop_party *party);

/* A kill is over. */
void coop_party_left(struct coop_link *members, unsigned survivors);

#endif
