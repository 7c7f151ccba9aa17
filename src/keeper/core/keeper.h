/* The keeper as every room sees it: one context that is passed around, whose parts are asked for by
 * name. What a part is made of is known to its own module alone (core/context.h says where each
 * lives); here is only what belongs to none: numbers and paths that hold for as long as it runs. */
#ifndef COOP_KEEPER_KEEPER_H
#define COOP_KEEPER_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <uv.h>

#include "base/later.h"

#define COOP_PROTOCOL 1

struct coop_keeper;

struct coop_agents;
struct coop_books;
struct coop_conf;
struct coop_config;
struct coop_connections;
struct coop_eviction;
struct coop_groups;
struct coop_journal;
struct coop_keeper_host;
struct coop_kills;
struct coop_launchers;
struct coop_life;
struct coop_listeners;
struct coop_meters;
struct coop_nets;
struct coop_notices;
struct coop_observer;
struct coop_ports;
struct coop_questions;
struct coop_registry;
struct coop_slots;
struct coop_spools;
struct coop_tree;
struct coop_views;

/* Set before the loop runs. */
struct coop_place {
	char socket[4096];    /* "" for a private keeper */
	char state_dir[4096]; /* "" for a private keeper */
	char data_dir[4096];  /* for agents' folders; "" for a private keeper */
	const char *backlog;  /* the file beside the socket; NULL: there is none */
	bool private_mode;    /* it serves one client, over a socketpair */
	uint64_t mark; /* of its processes, without a record's number: see sandbox/plan/plan.h */
	int64_t started_at;
	int null_fd;
	struct rlimit original_nofile;
	rlim_t fd_limit; /* as raised */
};

const struct coop_conf *coop_conf_of(const struct coop_keeper *keeper);
const struct coop_place *coop_place_of(const struct coop_keeper *keeper);
uv_loop_t *coop_loop_of(const struct coop_keeper *keeper);
/* What is due at the end of the loop's turn. */
struct coop_laters *coop_laters_of(const struct coop_keeper *keeper);

struct coop_agents *coop_agents_of(const struct coop_keeper *keeper);
struct coop_books *coop_books_of(const struct coop_keeper *keeper);
struct coop_config *coop_config_of(const struct coop_keeper *keeper);
struct coop_connections *coop_connections_of(const struct coop_keeper *keeper);
struct coop_eviction *coop_eviction_of(const struct coop_keeper *keeper);
struct coop_groups *coop_groups_of(const struct coop_keeper *keeper);
struct coop_journal *coop_journal_of(const struct coop_keeper *keeper);
struct coop_keeper_host *coop_host_of(const struct coop_keeper *keeper);
struct coop_kills *coop_kills_of(const struct coop_keeper *keeper);
struct coop_launchers *coop_launchers_of(const struct coop_keeper *keeper);
struct coop_life *coop_life_of(const struct coop_keeper *keeper);
struct coop_listeners *coop_listeners_of(const struct coop_keeper *keeper);
struct coop_meters *coop_meters_of(const struct coop_keeper *keeper);
struct coop_nets *coop_nets_of(const struct coop_keeper *keeper);
struct coop_notices *coop_notices_of(const struct coop_keeper *keeper);
/* Who is told of what happens to processes, ended by NULL: process/observer.h. */
const struct coop_observer *const *coop_observers_of(const struct coop_keeper *keeper);
struct coop_ports *coop_ports_of(const struct coop_keeper *keeper);
struct coop_questions *coop_questions_of(const struct coop_keeper *keeper);
struct coop_registry *coop_registry_of(const struct coop_keeper *keeper);
struct coop_slots *coop_slots_of(const struct coop_keeper *keeper);
struct coop_spools *coop_spools_of(const struct coop_keeper *keeper);
struct coop_tree *coop_tree_of(const struct coop_keeper *keeper);
struct coop_views *coop_views_of(const struct coop_keeper *keeper);

/* The data folder as it resolves, made if need be: a root must be canonical. 0 or -errno. */
int coop_keeper_settle_data(struct coop_keeper *keeper, bool make);

/* Whether a further descriptor may be used: some are held back so that clients can always be
 * answered. */
bool coop_keeper_fd_allowed(const struct coop_keeper *keeper, int fd);

#endif
