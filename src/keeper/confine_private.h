/* Between the files of confine. */
#ifndef COOP_KEEPER_CONFINE_PRIVATE_H
#define COOP_KEEPER_CONFINE_PRIVATE_H

#include "keeper/confine.h"
#include "keeper/draft.h"

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
};

/* Opens workspace, allow_write and allow_read; refuses what nobody may get. 0, or the error filled. */
int coop_grants_open(struct coop_draft *draft, struct coop_confine *confine,
		     struct coop_grants *ret);
/* The working directory must be seen in the view; where it would be hidden it is shown read-only. */
int coop_grants_cwd(struct coop_draft *draft, const struct coop_confine *confine,
		    struct coop_grants *grants);
/* Whether what a door offers as TMPDIR is there, and writable, in the view that has been laid out. */
bool coop_grants_show_tmpdir(const struct coop_draft *draft, const struct coop_confine *confine,
			     const struct coop_grants *grants);
void coop_grants_close(struct coop_grants *grants);

/* Chooses the mechanisms for confine->policy, and says what holds. */
void coop_means_choose(const struct coop_keeper *keeper, struct coop_confine *confine);
/* Refuses where something required does not hold. Called when all is known. */
int coop_means_check(const struct coop_confine *confine, struct coop_err *err);

#endif
