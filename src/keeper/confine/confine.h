/* How one process is confined: decided from its policy and from what this host can do before
 * anything is started, and kept with it for the report. */
#ifndef COOP_KEEPER_CONFINE_H
#define COOP_KEEPER_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/jsonw.h"
#include "keeper/launch/launcher.h"
#include "sandbox/cgroup/cgroup.h"
#include "sandbox/layout/layout.h"
#include "sandbox/plan/plan.h"
#include "sandbox/policy/policy.h"

struct coop_net;
struct coop_process;

#define COOP_CONFINE_LIMITS_MAX 10

enum coop_confine_kind { COOP_CONFINE_NONE, COOP_CONFINE_LANDLOCK, COOP_CONFINE_NAMESPACES };

/* What is needed to start it, and not afterwards. */
struct coop_confine_start {
	struct coop_layout layout;
	struct coop_plan_limit limits[COOP_CONFINE_LIMITS_MAX];
	uint32_t limit_count;
	int trees[COOP_PLAN_EXTRA_FDS_MAX];   /* what the layout's operations name */
	int folders[COOP_PLAN_EXTRA_FDS_MAX]; /* what they were made of; -1: without descriptors */
	uint32_t tree_count;
	char *cwd_name; /* as it was called */
};

struct coop_confine {
	struct coop_confine_start *start;  /* NULL once it was started, or will not be */
	struct coop_sandbox_policy policy; /* in force */
	struct coop_achieved *achieved;    /* see reports.h */
	char *asked;                       /* as the request had it: JSON text; NULL: nothing */
	enum coop_confine_kind kind;
	bool init; /* has a first process of its own, which ends with all of its tree */
	bool pooled;
	struct coop_launcher_class launcher;
	uint64_t namespaces;
	uint32_t flags; /* of the plan */
	uint32_t filter, landlock, scopes;
	int home;                  /* enum coop_home as achieved */
	char links[160];           /* of which credential hard links may be seen; "": of none */
	char globs[96];            /* how many matches globs had; "": there were none */
	struct coop_ghost *ghosts; /* placeholders that it holds */
	size_t ghost_count;
	char *tmpdir;   /* the /tmp that it shares, where it is not seen as /tmp; NULL: none */
	bool no_tmpdir; /* what the door calls TMPDIR is not to be had in its view */
	bool grouped, launched;
	bool parked; /* started by a launcher in its agent's group, and so in that: parks.h */
	bool shared; /* its agent's share holds, or held, for it */
	bool frozen, freezing;
	struct coop_net *net; /* the session's; NULL: none */
	const char *user;     /* by which `id` knows it inside; NULL: by its number */
	char *files; /* folder with the files that it was given; NULL: none, or its view has them */
	struct coop_cgroup group;
	struct coop_cgroup freezer;       /* that it was frozen in; path NULL: never */
	struct coop_cgroup_facts counted; /* by its group, when it has ended; zeroes: nothing */
};

/* An empty one, to be decided on; NULL without memory. And its end, where no process has it. */
struct coop_confine *coop_confine_new(void);
void coop_confine_discard(struct coop_confine *confine);

/* One of the trees that it is to be started with, made once more of the same folder. Its
 * descriptor, which is the caller's, or -errno. */
int coop_confine_tree_anew(const struct coop_process *process, uint32_t number);

/* The process has been started, or never will be: what only that needed is given up. */
void coop_confine_started(struct coop_process *process);

/* The name of the profile in force; NULL: it came to none. */
const char *coop_confine_profile(const struct coop_process *process);

/* Whom it runs as, as `id` tells inside: by name, else by number. `ret` has COOP_CONFINE_USER
 * bytes; NULL: it came to nothing. */
#define COOP_CONFINE_USER 16u
const char *coop_confine_user(const struct coop_process *process, char *ret);

#endif
