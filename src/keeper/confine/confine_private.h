/* Between the files of confine, and for those who ask about the folders of agents. */
#ifndef COOP_KEEPER_CONFINE_PRIVATE_H
#define COOP_KEEPER_CONFINE_PRIVATE_H

#include "keeper/conf/homes.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/draft.h"

struct coop_lookable;

/* Folders that a process gets: opened once, and known by what they are. */
#define COOP_GRANTS_MAX 20u

struct coop_grant {
	char *path; /* as the kernel resolved it */
	int fd;     /* O_PATH */
	uint64_t dev, ino;
	uint32_t uid, gid; /* its owner */
	bool shown;        /* readable: also to somebody who may not read it by himself */
};

struct coop_grants {
	struct coop_grant writable[COOP_GRANTS_MAX], readable[COOP_GRANTS_MAX];
	size_t writable_count, readable_count;
	/* what is /tmp for all commands of the agent; path NULL: each has its own */
	struct coop_grant tmp;
	struct coop_homes homes;          /* of the command's user */
	const struct coop_lookable *seen; /* what may be looked at for the agent; NULL: anything */
	/* while they are opened: the next is named without links, and none is followed */
	bool fixed;
};

/* Opens workspace, allow_write and allow_read, looking where `seen` lets (NULL: anywhere; it is
 * kept); refuses what nobody may get. 0, or the error filled. */
int coop_grants_open(struct coop_draft *draft, struct coop_confine *confine,
		     const struct coop_lookable *seen, struct coop_grants *ret);
/* Opens what the agent's commands share as /tmp, unless a limit asks for a private one. 0, or the
 * error filled. */
int coop_grants_tmp(struct coop_draft *draft, const struct coop_confine *confine,
		    struct coop_grants *grants);
/* The working directory lies in the workspace, if there is one; the workspace is also where a
 * request begins that names none. Without one it must be seen in the view; where it would be hidden
 * it is shown read-only. In the shared /tmp it is named as it is seen. */
int coop_grants_cwd(struct coop_draft *draft, const struct coop_confine *confine,
		    struct coop_grants *grants);
/* Whether what a door offers as TMPDIR is there, and writable, in the view that has been laid
 * out. */
bool coop_grants_show_tmpdir(const struct coop_draft *draft, const struct coop_confine *confine,
			     const struct coop_grants *grants);
void coop_grants_close(struct coop_grants *grants);

/* confine_check.c: whether the agent may write anywhere on disk. The user himself may; others where
 * they were given roots. */
bool coop_grants_may_write(const struct coop_agent *agent);
/* Refuses the path where it may not, before anything is looked at: 0, or the error filled, here and
 * in the following. */
int coop_grants_check_asked(const struct coop_agent *agent, const char *field, const char *path,
			    struct coop_err *err);
/* Refuses a folder, resolved, that is not to be written to by this agent, or by anybody. `name` is
 * what it was called. */
int coop_grants_check_writable(const struct coop_draft *draft, const struct coop_homes *homes,
			       const char *field, const char *path, const char *name);
/* The refusal of a path that is not the agent's to be written to; whether it is there is not
 * said. */
int coop_grants_outside(const struct coop_draft *draft, const char *field, const char *name);
/* Whether the path, resolved, lies in the agent's roots and in those above it. Without any it
 * does. */
bool coop_grants_in_roots(const struct coop_agent *agent, const char *path);
/* Whether every ceiling lets a path, resolved, be written to or seen. */
bool coop_grants_let(const struct coop_draft *draft, const char *path, bool writes);
/* Refuses what lies outside of the ceilings. */
int coop_grants_check_ceilings(const struct coop_draft *draft, const char *field, const char *path,
			       bool writes);

/* confine_read.c: whether the place, resolved and open, is where the kernel speaks of itself, or
 * (to be read) holds that: nobody's to name. */
bool coop_grants_kernels(const char *path, int fd, bool writes);
/* Whether the agent may name the path, resolved, to be read: in its roots, in its ceilings' lists,
 * of the system. The user himself may. What is hidden there is another matter. */
bool coop_grants_may_read(const struct coop_agent *agent, const char *path);
/* Whether the path is the keeper's own or lies in it; whether it holds such a place. */
bool coop_grants_keepers(const struct coop_keeper *keeper, const char *path);
bool coop_grants_holds_keepers(const struct coop_keeper *keeper, const char *path);
/* Whether the path, resolved, is of those that are hidden from the agent, although it may lie in
 * its roots. */
bool coop_grants_hidden(const struct coop_agent *agent, const struct coop_homes *homes,
			const char *path);
/* Why the path, resolved, is not this agent's to name, be it to read or to write, although it may
 * lie in its roots; NULL: it is. `name` is what it was called, absolute: the user has what is
 * private by its own name alone. */
const char *coop_grants_private_place(const struct coop_draft *draft,
				      const struct coop_homes *homes, const char *path,
				      const char *name);
/* Whether who gives the path, resolved, to an agent under that name knows what it is: no link leads
 * to credentials. */
bool coop_grants_meant(const struct coop_keeper *keeper, const char *path, const char *name);
/* What the request says of its names: nothing; that they are without links and were typed so; that
 * they were resolved by a door. */
enum coop_names { COOP_NAMES_ANY, COOP_NAMES_AS_TYPED, COOP_NAMES_RESOLVED };
enum coop_names coop_grants_names(const struct coop_draft *draft);
/* Whether the path lies in the folder that the agent has of its own, or that one above it has in
 * which it works. */
bool coop_grants_own_folder(const struct coop_agent *agent, const char *path);
/* Refuses what is not to be shown to this agent, or to anybody. `given`: the operator lists it, so
 * that only what is hidden in it counts. */
int coop_grants_check_readable(const struct coop_draft *draft, const struct coop_homes *homes,
			       const char *field, const struct coop_grant *grant, const char *name,
			       bool given);
/* The refusal of a path that the agent may not name; whether it is there is not said. */
int coop_grants_unreadable(const struct coop_draft *draft, const char *field, const char *path);

/* Chooses the mechanisms for confine->policy, and says what holds. */
void coop_means_choose(const struct coop_keeper *keeper, struct coop_confine *confine);
/* Refuses where something required does not hold. Called when all is known; says last what of it
 * the request itself named. */
int coop_means_check(struct coop_confine *confine, struct coop_err *err);

#endif
