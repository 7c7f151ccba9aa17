/* Between the files of confine. */
#ifndef COOP_KEEPER_CONFINE_PRIVATE_H
#define COOP_KEEPER_CONFINE_PRIVATE_H

#include "keeper/confine.h"
#include "keeper/draft.h"
#include "keeper/homes.h"

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
	struct coop_grant
		tmp; /* what is /tmp for all commands of the agent; path NULL: each has its own */
	struct coop_homes homes; /* of the command's user */
};

/* Opens workspace, allow_write and allow_read; refuses what nobody may get. 0, or the error filled. */
int coop_grants_open(struct coop_draft *draft, struct coop_confine *confine,
		     struct coop_grants *ret);
/* Opens what the agent's commands share as /tmp, unless a limit asks for a private one. 0, or the error filled. */
int coop_grants_tmp(struct coop_draft *draft, const struct coop_confine *confine,
		    struct coop_grants *grants);
/* The working directory lies in the workspace, if there is one; the workspace is also where a request begins that names none. Without
 * one it must be seen in the view; where it would be hidden it is shown read-only. In the shared /tmp it is named as it is seen. */
int coop_grants_cwd(struct coop_draft *draft, const struct coop_confine *confine,
		    struct coop_grants *grants);
/* Whether what a door offers as TMPDIR is there, and writable, in the view that has been laid out. */
bool coop_grants_show_tmpdir(const struct coop_draft *draft, const struct coop_confine *confine,
			     const struct coop_grants *grants);
void coop_grants_close(struct coop_grants *grants);

/* confine_check.c: whether the agent may write anywhere on disk. The user himself may; others where they were given roots. */
bool coop_grants_may_write(const struct coop_agent *agent);
/* Refuses the path where it may not, before anything is looked at: 0, or the error filled, here and in the following. */
int coop_grants_check_asked(const struct coop_agent *agent, const char *field, const char *path,
			    struct coop_err *err);
/* Refuses a folder, resolved, that is not to be written to by this agent, or by anybody. */
int coop_grants_check_writable(const struct coop_draft *draft, const struct coop_homes *homes,
			       const char *field, const char *path);
/* Refuses what lies outside of the ceilings. */
int coop_grants_check_ceilings(const struct coop_draft *draft, const char *field, const char *path,
			       bool writes);

/* Chooses the mechanisms for confine->policy, and says what holds. */
void coop_means_choose(const struct coop_keeper *keeper, struct coop_confine *confine);
/* Refuses where something required does not hold. Called when all is known; says last what of it the request itself named. */
int coop_means_check(struct coop_confine *confine, struct coop_err *err);

#endif
