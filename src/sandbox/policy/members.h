/* The members of a policy as rows, for what is done with each of them alike: reading, writing,
 * laying one over another. */
#ifndef COOP_SANDBOX_MEMBERS_H
#define COOP_SANDBOX_MEMBERS_H

#include "sandbox/policy/pathlist.h"
#include "sandbox/policy/policy.h"

/* A choice, from the strictest to the widest. */
struct coop_choice_row {
	const char *name;         /* "network" */
	const char *field;        /* "sandbox.network" */
	size_t offset;            /* of the int */
	const char *const *names; /* NULL-terminated */
	int standard, widest;     /* of the confined profiles, if nobody says; of all */
};

struct coop_list_row {
	const char *name, *field;
	size_t offset;
	enum coop_pathlist_kind kind;
	bool grants; /* it allows something; else it forbids */
};

#define COOP_CHOICE_ROWS 3u
#define COOP_LIST_ROWS 5u
enum { COOP_ROW_ALLOW_WRITE, COOP_ROW_ALLOW_READ };

extern const struct coop_choice_row coop_choice_rows[COOP_CHOICE_ROWS];
extern const struct coop_list_row coop_list_rows[COOP_LIST_ROWS];
extern const char *const coop_profile_names[];

static inline int *coop_choice_at(struct coop_sandbox_policy *policy,
				  const struct coop_choice_row *row)
{
	return (int *)(void *)((char *)policy + row->offset);
}

static inline int coop_choice_of(const struct coop_sandbox_policy *policy,
				 const struct coop_choice_row *row)
{
	return *(const int *)(const void *)((const char *)policy + row->offset);
}

static inline char ***coop_list_at(struct coop_sandbox_policy *policy,
				   const struct coop_list_row *row)
{
	return (char ***)(void *)((char *)policy + row->offset);
}

static inline char *const *coop_list_of(const struct coop_sandbox_policy *policy,
					const struct coop_list_row *row)
{
	return *(char **const *)(const void *)((const char *)policy + row->offset);
}

/* The place of `text` among the names; -1: it is none of them. */
int coop_names_find(const char *const *names, const char *text);

/* "must be one of none, loopback, host" and so on, naming the field. */
int coop_names_refuse(const char *const *names, const char *field, struct coop_err *err);

/* The profile that one of the three names or of the presets' means, or -1. */
int coop_profile_parse(const char *name);

/* The operator's own of that name; NULL: there is none. */
const struct coop_sandbox_policy *coop_profiles_own(const struct coop_profiles *profiles,
						    const char *name);

/* Lays an own profile under what a request says: choices and limits that are not said, lists
 * together. */
int coop_sandbox_policy_under(struct coop_sandbox_policy *policy,
			      const struct coop_sandbox_policy *own, struct coop_err *err);

/* The widest profile that a ceiling allows, all that it says considered. */
int coop_policy_widest(const struct coop_sandbox_policy *ceiling);

#endif
