/* Whether a program is one that a list names. */
#ifndef COOP_POLICY_MATCH_H
#define COOP_POLICY_MATCH_H

#include <sys/types.h>

#include "policy/rules.h"
#include "policy/runs.h"

#define COOP_MATCH_PROGRAMS 1024u /* that differ, of one line */
#define COOP_MATCH_LOOKUPS 4096u  /* in the file system, of one decision */
#define COOP_MATCH_BUCKETS 128u

/* Which file a path leads to. */
struct coop_match_file {
	dev_t device;
	ino_t inode;
	bool looked, there;
};

/* A program of the line and the file it is; looked up once, when first needed. */
struct coop_match {
	const struct coop_run *run; /* the first of its kind */
	const char *cwd;
	bool shell; /* typed into a shell, which may have it inside */
	bool looked;
	uint32_t next;  /* in its bucket */
	char *found;    /* as PATH has it; NULL: nowhere */
	char *resolved; /* without links; NULL likewise */
	struct coop_match_file file;
};

/* All programs of a line, each once however often it runs. */
struct coop_matches {
	const char *path;
	bool (*may_look)(void *user, const char *path); /* as of policy.h */
	void *user;
	bool path_relative; /* what it leads to depends on the working directory */
	bool too_long, no_memory;
	size_t lookups;
	struct coop_match *items;
	size_t count, capacity;
	uint32_t buckets[COOP_MATCH_BUCKETS];
};

/* A list, and the files of its entries as far as they were needed. */
struct coop_match_list {
	const struct coop_rules *rules;
	struct coop_match_file files[COOP_RULES_MAX];
};

/* Collects the programs. Where that fails it says so in `matches`; clear it all the same. */
struct coop_policy_command;
void coop_matches_make(struct coop_matches *matches, const struct coop_runs *runs,
		       const struct coop_policy_command *command);
void coop_matches_clear(struct coop_matches *matches);

void coop_match_list_init(struct coop_match_list *list, const struct coop_rules *rules);

/* The first entry that names it, or NULL. An entry with a slash is a path, any other a name. */
const struct coop_rule *coop_match_find(struct coop_matches *matches, struct coop_match_list *list,
					struct coop_match *match);

/* The first entry that a program could turn out to be whose name is known in part, or NULL. */
const struct coop_rule *coop_match_could(const struct coop_rules *rules,
					 const struct coop_match *match);

/* Whether there is such a program at all. */
bool coop_match_exists(struct coop_matches *matches, struct coop_match *match);

#endif
