/* Who owns processes: agents, in a tree for each principal. Every connection acts as one; every
 * process belongs to one.
 *
 * An agent lives as long as somebody holds it: the tree, until it is removed; its processes,
 * sessions and connections; and the agents below it, which hold the one above them. So whatever an
 * ancestor must answer for can always be followed upwards. */
#ifndef COOP_KEEPER_AGENT_H
#define COOP_KEEPER_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/jsonw.h"
#include "base/list.h"
#include "interface/err.h"
#include "keeper/owner/agent_settings.h"
#include "keeper/owner/queue.h"
#include "sandbox/cgroup/cgroup.h"

#define COOP_AGENT_NAME_MAX 64u
#define COOP_AGENT_DEPTH_MAX 8u
#define COOP_AGENT_FIRST "main" /* of each principal */

struct coop_keeper;
struct coop_net;

struct coop_principal {
	struct coop_link in_keeper;
	char *name;
	struct coop_agent *first;   /* NULL once it is removed */
	unsigned agents;            /* structs that point here */
	unsigned live;              /* processes */
	unsigned retained;          /* finished persistent records */
	struct coop_link processes; /* all of them, in the order of their start */
	struct coop_link receipts;  /* oldest first */
	unsigned receipt_count;
	uint64_t spool_bytes;
};

struct coop_agent {
	struct coop_keeper *keeper;
	unsigned refs;
	int64_t id; /* in the database; never used again */
	struct coop_principal *principal;
	struct coop_agent *parent; /* a reference; NULL: the principal's first */
	struct coop_link children, in_parent;
	char *path;
	const char *name; /* the path's last part */
	int64_t created_at;
	bool removed;
	bool expiring;     /* its removal is under way */
	bool expiry_tried; /* and did not come about */
	struct coop_agent_settings settings;

	/* What it and all below it use. */
	unsigned live, finished;
	uint64_t buffer_bytes; /* of rings, and the next */
	uint64_t unread_bytes; /* that wait to be sent to its clients */
	uint64_t receipts_dropped;
	unsigned connections; /* of tokens; see admission.h */

	/* Its own finished records that may become receipts: those whose end it has been told, and
	 * the others; oldest first. */
	struct coop_link told, untold;
	unsigned evictable;
	struct coop_link in_crowded; /* it has more of them than it may keep */

	struct coop_net *net;     /* of its default session; NULL: none */
	struct coop_cgroup group; /* of it and all below it, if it has limits; path NULL: none */
	struct coop_cgroup rest;  /* in that: of its processes that have no group of their own */
	uint64_t oom_kills;       /* in `rest`, that ends have been told of */
	struct coop_completions completions; /* of its default session */
	struct coop_link sessions, tokens;
	unsigned session_count, token_count;
};

/* Of the user whose keeper it is. */
struct coop_agent *coop_agents_main(const struct coop_keeper *keeper);
bool coop_agent_is_main(const struct coop_agent *agent); /* NULL is not */
/* struct coop_principal */
struct coop_link *coop_agents_principals(const struct coop_keeper *keeper);

/* A new agent that is in no tree yet; the caller holds it. `parent` NULL makes the principal, too,
 * which must not be there. Takes the settings over. NULL without memory: the settings are still the
 * caller's. */
struct coop_agent *coop_agent_make(struct coop_keeper *keeper, const char *principal,
				   struct coop_agent *parent, const char *name,
				   struct coop_agent_settings *settings);
/* Puts it into its tree, which takes over the caller's hold. */
void coop_agent_enter(struct coop_agent *agent);
struct coop_agent *coop_agent_ref(struct coop_agent *agent);
void coop_agent_unref(struct coop_agent *agent); /* NULL is fine */

/* Takes it, with all below it, out of the tree. What they own is the caller's affair, before. */
void coop_agent_detach(struct coop_agent *agent);

/* NULL: there is none. */
struct coop_principal *coop_principal_find(const struct coop_keeper *keeper, const char *name);

/* The caller's own, or one below it. */
bool coop_agent_sees(const struct coop_agent *viewer, const struct coop_agent *owner);

/* What a record calls its owner: "self" or the owner's name. */
const char *coop_agent_label(const struct coop_agent *viewer, const struct coop_agent *owner);

/* Whether a filter (self, a label, a path) means this owner. NULL means all. */
bool coop_agent_matches(const struct coop_agent *viewer, const struct coop_agent *owner,
			const char *filter);

/* What an `agent` argument means: a path that begins with `base`'s own, or one below it. NULL with
 * the error filled. */
struct coop_agent *coop_agent_find(struct coop_agent *base, const char *text, struct coop_err *err);

/* The words for one that is not there, or not to be seen. */
int coop_agent_none(struct coop_err *err);

/* The same for one that is yet to be made: its parent, and where its name begins in `text`. */
struct coop_agent *coop_agent_find_parent(struct coop_agent *base, const char *text,
					  const char **ret_name, struct coop_err *err);

bool coop_agent_valid_name(const char *name);
bool coop_agent_valid_path(const char *path); /* names and single slashes between them */

/* The path of a child (parent NULL: of a first agent), for the caller to free; NULL without
 * memory. */
char *coop_agent_join(const struct coop_agent *parent, const char *name);

/* Walks the tree below and with `top`, parents first: NULL starts it, NULL ends it. */
struct coop_agent *coop_agent_next(struct coop_agent *top, const struct coop_agent *at);

/* The limit in force for its own processes and those below; settings where it has none of its
 * own. */
int64_t coop_agent_max_running(const struct coop_agent *agent);
int64_t coop_agent_max_finished(const struct coop_agent *agent);
int64_t coop_agent_max_buffer(const struct coop_agent *agent); /* -1: none */
/* The same over all above it, too. */
int64_t coop_agent_effective_running(const struct coop_agent *agent);
int64_t coop_agent_effective_buffer(const struct coop_agent *agent);
bool coop_agent_may_persist(const struct coop_agent *agent);
bool coop_agent_restricted(const struct coop_agent *agent);
/* The nearest workspace roots at or above it, NULL-terminated; NULL: not bound. Those of all levels
 * hold. */
char *const *coop_agent_workspace(const struct coop_agent *agent);

void coop_agent_write(const struct coop_agent *agent, struct coop_jsonw *w, const char *name);

#endif
