/* The keeper's context: where each part lives. For main/, which makes the parts; everybody else
 * asks core/keeper.h. */
#ifndef COOP_KEEPER_CONTEXT_H
#define COOP_KEEPER_CONTEXT_H

#include "keeper/core/keeper.h"

struct coop_keeper {
	uv_loop_t loop;
	struct coop_place place;
	struct coop_life *life;
	struct coop_config *config;
	struct coop_meters *meters;
	struct coop_connections *connections;
	struct coop_listeners *listeners;
	struct coop_spools *spools;
	struct coop_registry *registry;
	struct coop_eviction *eviction;
	struct coop_notices *notices;
	const struct coop_observer *const *observers;
	struct coop_tree *tree;
	struct coop_kills *kills;
	struct coop_agents *agents;
	struct coop_keeper_host *host;
	struct coop_views *views;
	struct coop_groups *groups;
	struct coop_nets *nets;
	struct coop_launchers *launchers;
	struct coop_slots *slots;
	struct coop_books *books;
	struct coop_journal *journal;
	struct coop_ports *ports;
	struct coop_questions *questions;
};

#endif
