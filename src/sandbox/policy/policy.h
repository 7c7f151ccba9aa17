/* A sandbox policy: what one process may do, as data. It is read from a request, an agent's
 * settings or the operator's configuration, merged so that the strictest holds, and interpreted by
 * layout.h; it is never a command line. */
#ifndef COOP_SANDBOX_POLICY_H
#define COOP_SANDBOX_POLICY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json/jsonw.h"
#include "interface/bounds.h"
#include "interface/err.h"
#include "sandbox/policy/protection.h"
#include "sandbox/policy/shares.h"

#define COOP_SANDBOX_PROFILES_MAX 64u /* of the operator's own */

/* From the strictest to the widest, here and in the following. */
enum coop_profile { COOP_PROFILE_READ_ONLY, COOP_PROFILE_WORKSPACE_WRITE, COOP_PROFILE_FULL };
enum coop_network { COOP_NET_NONE, COOP_NET_LOOPBACK, COOP_NET_HOST };
enum coop_home { COOP_HOME_HIDDEN, COOP_HOME_READ_ONLY, COOP_HOME_COW };
enum coop_root { COOP_ROOT_MINIMAL, COOP_ROOT_HOST };

/* 0: not limited. */
struct coop_sandbox_limits {
	int64_t memory_bytes;
	int64_t cpu_quota_millis; /* thousandths of a core */
	int64_t max_pids;
	int64_t max_cpu_secs;
	int64_t max_open_files;
	int64_t max_file_bytes;
	int64_t tmp_bytes;
};

/* One layer, or the merged whole. Members that are not set say nothing: -1 of an enum, NULL of a
 * list, 0 of a limit. An empty list is one that was given: a ceiling with an empty allow_write
 * allows none. Paths are plain: absolute, or with `~/` at the front (the home; not of a workspace),
 * without `.`, `..` and doubled slashes. Those of `protect` may be relative to every writable root,
 * those of `deny_read` may be patterns. */
struct coop_sandbox_policy {
	int profile, network, home, root; /* enum, or -1 */
	char *name;                       /* the profile's name as it was asked for; NULL: none */
	char *workspace;                  /* NULL: none */
	char **allow_write, **allow_read, **deny_write, **deny_read;
	char **protect;        /* added to the default list; replaces it with protect_replaces */
	bool protect_replaces; /* only the operator's profiles say so */
	bool new_privileges; /* `full` without no_new_privs: only the operator's profiles say so */
	bool require_set;    /* else the profile's default */
	uint32_t require, tolerate;
	/* of a merged one: those of `require` that no request can tolerate away */
	uint32_t insisted;
	/* bits of choices, by their row: an own profile says so, not the request */
	uint32_t from_profile;
	struct coop_sandbox_limits limits;
	/* bits of protections: named by the request, not by an operator's default */
	uint32_t limits_asked;
	/* of a merged one, likewise: nobody said them, they are coop's own */
	uint32_t limits_builtin;
};

/* The profiles that there are: the three, their other names, and the operator's own. */
struct coop_profiles {
	struct coop_sandbox_policy *own; /* each with its name */
	size_t own_count;
	/* [sandbox]: what a request that says nothing gets; its name may be that of an own
	 * profile */
	struct coop_sandbox_policy defaults;
	/* [sandbox] at_most…, always_require: nobody gets more */
	struct coop_sandbox_policy ceiling;
	bool privileged; /* [sandbox] privileged = yes: the preset of that name is granted */
	/* [sandbox] user: name or uid that a root keeper's commands run as; NULL: chosen */
	char *user;
	int64_t slots;             /* [sandbox] slots: prepared at most, per kind; 0: none */
	bool any_pids;             /* [sandbox] max_pids = none: not even COOP_SANDBOX_PIDS */
	struct coop_shares shares; /* [sandbox] agent_memory_bytes and its like */
	/* For coop_profiles_set: keys that stand once, and which own profiles said
	 * new_privileges. */
	uint32_t said;
	uint64_t said_new_privileges;
};

#define COOP_SANDBOX_PIDS 4096 /* max_pids of a confined process, if nobody says */
#define COOP_SANDBOX_SLOTS 8   /* if the operator does not say */
#define COOP_SANDBOX_SLOTS_MAX 64

void coop_sandbox_policy_init(struct coop_sandbox_policy *policy);
/* Leaves it as after init. One of zeroes can be cleared, too. */
void coop_sandbox_policy_clear(struct coop_sandbox_policy *policy);
/* 0 with *to filled (to be cleared), or the error filled and *to untouched. */
int coop_sandbox_policy_copy(const struct coop_sandbox_policy *from, struct coop_sandbox_policy *to,
			     struct coop_err *err);
/* Whether nothing is said, the limits aside. */
bool coop_sandbox_policy_silent(const struct coop_sandbox_policy *policy);

void coop_profiles_init(struct coop_profiles *profiles);
void coop_profiles_clear(struct coop_profiles *profiles);

/* A section [profile NAME] begins, for the first time or again. 0, or the error filled. */
int coop_profiles_open(struct coop_profiles *profiles, const char *name, size_t *ret_index,
		       struct coop_err *err);

/* One line of [sandbox] (`section` NULL) or of [profile NAME] (`section` the name, which was
 * opened). 0, or the error filled; lists by repeated keys. */
int coop_profiles_set(struct coop_profiles *profiles, const char *section, const char *key,
		      const char *value, struct coop_err *err);

/* When all is set: an own profile without a base has workspace-write; the one that [sandbox] names
 * exists, nothing contradicts itself. 0, or the error filled, in *ret_index which own profile is
 * meant (own_count: [sandbox]) and in *ret_key which of its keys. */
int coop_profiles_finish(struct coop_profiles *profiles, size_t *ret_index, const char **ret_key,
			 struct coop_err *err);

/* Arguments `sandbox` (object), `sandbox_profile` (other names) and `limits` (object) of a request
 * or of an agent's settings; null is absent. Profiles are looked up by name and laid under what the
 * request says itself; `profiles` NULL: there are no own ones. 0 with *ret filled (to be cleared),
 * or the error filled, naming the field ("sandbox.allow_write[0]"), and *ret untouched. Besides
 * invalid_input: permission_denied for `privileged` without the operator's grant,
 * sandbox_unavailable for allow-lists of the network. */
int coop_sandbox_policy_read(const json_t *args, const struct coop_profiles *profiles,
			     struct coop_sandbox_policy *ret, struct coop_err *err);

/* Other names of profiles, of `sandbox_profile`. */
extern const char *const coop_sandbox_profile_choices[];

/* What is in force: `request` over the operator's defaults, and no wider than any of the ceilings
 * (agents from the tree's top to the asker; the operator's own is added). Where the request itself,
 * or the own profile that it names, asks for more than a ceiling: permission_denied, naming the
 * field; where it only did not say, the ceiling holds. What the profile cannot do (deny_read with
 * `full`, allow_write with `read-only`, allow_read with the host's root): invalid_input.
 *
 * Of the result (to be cleared) all enums are set. `require` is all that must be enforced for the
 * process to start: also the limits that the request asks for and does not tolerate, and those of
 * the ceilings. `workspace` and `allow_write` are writable: NULL with `read-only`. A request
 * without a workspace has that of the nearest ceiling that names one. With `full` nothing of files,
 * network and home is confined, and the lists are NULL. */
int coop_sandbox_policy_merge(const struct coop_profiles *profiles,
			      const struct coop_sandbox_policy *const *ceilings,
			      size_t ceiling_count, const struct coop_sandbox_policy *request,
			      struct coop_sandbox_policy *ret, struct coop_err *err);

/* Whether `policy` asks for nothing that is wider than `ceiling`: 0, or the error of that code
 * filled, naming the field. */
int coop_sandbox_policy_narrow(const struct coop_sandbox_policy *policy,
			       const struct coop_sandbox_policy *ceiling, enum coop_code code,
			       struct coop_err *err);

/* Whether a ceiling lets that path be written to, or be seen in a minimal root; one that names no
 * such paths says nothing. Paths are compared as text, here and in the two above: who knows only
 * what a path resolves to asks again about that. */
bool coop_policy_lets_write(const struct coop_sandbox_policy *ceiling, const char *path);
bool coop_policy_lets_read(const struct coop_sandbox_policy *ceiling, const char *path);

/* The `sandbox` object as it is given, for agents' settings in answers and in the database: what is
 * set, null where nothing is. Own profiles and other names are resolved (to what they meant when
 * they were read), so that it reads the same without them. */
void coop_sandbox_policy_write(const struct coop_sandbox_policy *policy, struct coop_jsonw *w,
			       const char *name);

/* The `limits` object as it is given: what is set, null where nothing is. */
void coop_sandbox_limits_write(const struct coop_sandbox_limits *limits, struct coop_jsonw *w,
			       const char *name);
/* All of them as members of an object that has begun, null where not set. */
void coop_sandbox_limits_write_members(const struct coop_sandbox_limits *limits,
				       struct coop_jsonw *w);
/* Takes away those whose bits are not among `bits`. */
void coop_sandbox_limits_keep(struct coop_sandbox_limits *limits, uint32_t bits);

const char *coop_profile_name(enum coop_profile profile);
const char *coop_network_name(enum coop_network network);
const char *coop_home_name(enum coop_home home);
const char *coop_root_name(enum coop_root root);

#endif
