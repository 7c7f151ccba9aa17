#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "interface/bounds.h"
#include "interface/err.h"
#include "sandbox/policy/limits.h"
#include "sandbox/policy/members.h"
#include "sandbox/policy/pathlist.h"
#include "sandbox/policy/policy.h"
#include "sandbox/policy/protection.h"
#include "sandbox/policy/shares.h"

_Static_assert(COOP_SANDBOX_PROFILES_MAX <= 64, "said_new_privileges has a bit for each");

/* Bits of coop_profiles.said. */
enum { SAID_PRIVILEGED = 1, SAID_SLOTS = 2 };

static const char at_most[] = "at_most_";
static const char *const yes_no[] = {"no", "yes", NULL};

int coop_profile_parse(const char *name)
{
	static const char *const presets[] = {"restricted", "baseline", "privileged", NULL};
	int profile = coop_names_find(coop_profile_names, name);

	return profile < 0 ? coop_names_find(presets, name) : profile;
}

void coop_profiles_init(struct coop_profiles *profiles)
{
	*profiles = (struct coop_profiles){.slots = COOP_SANDBOX_SLOTS};
	coop_sandbox_policy_init(&profiles->defaults);
	coop_sandbox_policy_init(&profiles->ceiling);
	coop_shares_init(&profiles->shares);
}

void coop_profiles_clear(struct coop_profiles *profiles)
{
	for (size_t i = 0; i < profiles->own_count; i++)
		coop_sandbox_policy_clear(&profiles->own[i]);
	free(profiles->own);
	free(profiles->user);
	coop_sandbox_policy_clear(&profiles->defaults);
	coop_sandbox_policy_clear(&profiles->ceiling);
	coop_profiles_init(profiles);
}

static struct coop_sandbox_policy *find_own(const struct coop_profiles *profiles, const char *name)
{
	for (size_t i = 0; profiles && i < profiles->own_count; i++) {
		if (!strcmp(profiles->own[i].name, name))
			return &profiles->own[i];
	}
	return NULL;
}

const struct coop_sandbox_policy *coop_profiles_own(const struct coop_profiles *profiles,
						    const char *name)
{
	return find_own(profiles, name);
}

static int check_name(const char *name, struct coop_err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-.";

	if (!*name || strlen(name) > COOP_PROFILE_NAME_MAX || name[strspn(name, letters)])
		return coop_err_field(err, COOP_INVALID_INPUT, "profile",
				      "a profile's name is made of at most %u letters, digits, "
				      "_, - and .",
				      COOP_PROFILE_NAME_MAX);
	if (coop_profile_parse(name) >= 0 ||
	    coop_names_find(coop_sandbox_profile_choices, name) >= 0)
		return coop_err_field(err, COOP_INVALID_INPUT, "profile",
				      "%s is a profile that is built in", name);
	return 0;
}

int coop_profiles_open(struct coop_profiles *profiles, const char *name, size_t *ret_index,
		       struct coop_err *err)
{
	const struct coop_sandbox_policy *found = find_own(profiles, name);
	int r = found ? 0 : check_name(name, err);

	if (r < 0)
		return r;
	if (found) {
		*ret_index = (size_t)(found - profiles->own);
		return 0;
	}
	if (profiles->own_count >= COOP_SANDBOX_PROFILES_MAX)
		return coop_err_field(err, COOP_TOO_LARGE, "profile", "more than %u profiles",
				      COOP_SANDBOX_PROFILES_MAX);
	struct coop_sandbox_policy *grown =
		coop_mem_realloc(profiles->own, (profiles->own_count + 1) * sizeof *profiles->own);
	if (!grown)
		return coop_err_no_memory(err);
	profiles->own = grown;
	struct coop_sandbox_policy *own = &grown[profiles->own_count];
	coop_sandbox_policy_init(own);
	own->name = coop_mem_strdup(name);
	if (!own->name)
		return coop_err_no_memory(err);
	*ret_index = profiles->own_count++;
	return 0;
}

static int twice(const char *key, struct coop_err *err)
{
	return coop_err_field(err, COOP_INVALID_INPUT, key, "%s: said twice", key);
}

/* One of `names`, once: `value` is -1 before. */
static int set_choice(int *choice, const char *const *names, const char *key, const char *value,
		      struct coop_err *err)
{
	int found = coop_names_find(names, value);

	if (found < 0)
		return coop_names_refuse(names, key, err);
	if (*choice >= 0)
		return twice(key, err);
	*choice = found;
	return 0;
}

/* A list of protections; an empty value is the list without any. */
static int set_protection(uint32_t *set, const char *key, const char *value, struct coop_err *err)
{
	enum coop_protection protection = *value ? coop_protection_parse(value) : 0;

	if (*value && protection == COOP_PROTECT_COUNT)
		return coop_err_field(err, COOP_INVALID_INPUT, key,
				      "%s must be one of files, network, identity, ipc, "
				      "privileges, seccomp, kill, or the name of a limit",
				      key);
	*set |= *value ? COOP_PROTECT_BIT(protection) : 0;
	return 0;
}

/* -ENOENT: no such key. */
static int set_common(struct coop_sandbox_policy *policy, const char *key, const char *value,
		      struct coop_err *err)
{
	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++) {
		const struct coop_choice_row *row = &coop_choice_rows[i];
		if (!strcmp(row->name, key))
			return set_choice(coop_choice_at(policy, row), row->names, key, value, err);
	}
	for (size_t i = 0; i < COOP_LIST_ROWS; i++) {
		const struct coop_list_row *row = &coop_list_rows[i];
		if (!strcmp(row->name, key))
			return coop_pathlist_add(coop_list_at(policy, row), row->kind, value, key,
						 err);
	}
	if (coop_limits_known(key))
		return coop_limits_set(&policy->limits, key, key, value, err);
	if (!strcmp(key, "require")) {
		policy->require_set = true;
		return set_protection(&policy->require, key, value, err);
	}
	if (!strcmp(key, "tolerate"))
		return set_protection(&policy->tolerate, key, value, err);
	return -ENOENT;
}

/* The profile of [sandbox]: an own one may stand further down in the file, so only its name is kept
 * of it. */
static int set_default_profile(struct coop_sandbox_policy *defaults, const char *value,
			       struct coop_err *err)
{
	if (defaults->name)
		return twice("profile", err);
	if (!*value)
		return coop_err_field(err, COOP_INVALID_INPUT, "profile",
				      "profile must not be empty");
	defaults->name = coop_mem_strdup(value);
	if (!defaults->name)
		return coop_err_no_memory(err);
	defaults->profile = coop_profile_parse(value);
	return 0;
}

static int set_user(struct coop_profiles *profiles, const char *value, struct coop_err *err)
{
	bool digits = !value[strspn(value, "0123456789")];

	if (profiles->user)
		return twice("user", err);
	if (!*value || strlen(value) > 64 || strpbrk(value, ": /") ||
	    (digits && strlen(value) > 10))
		return coop_err_field(err, COOP_INVALID_INPUT, "user",
				      "user must be a user's name or number");
	/* A command with root's number owns what root owns, whatever else is taken from it. */
	if (!strcmp(value, "root") || (digits && !value[strspn(value, "0")]))
		return coop_err_field(err, COOP_INVALID_INPUT, "user", "user must not be root");
	profiles->user = coop_mem_strdup(value);
	return profiles->user ? 0 : coop_err_no_memory(err);
}

static int set_slots(struct coop_profiles *profiles, const char *value, struct coop_err *err)
{
	size_t digits = strspn(value, "0123456789");
	long slots = digits && digits < 4 && !value[digits] ? strtol(value, NULL, 10) : -1;

	if (profiles->said & SAID_SLOTS)
		return twice("slots", err);
	if (slots < 0 || slots > COOP_SANDBOX_SLOTS_MAX)
		return coop_err_field(err, COOP_INVALID_INPUT, "slots",
				      "slots must be an integer between 0 and %d",
				      COOP_SANDBOX_SLOTS_MAX);
	profiles->said |= SAID_SLOTS;
	profiles->slots = slots;
	return 0;
}

static int set_privileged(struct coop_profiles *profiles, const char *value, struct coop_err *err)
{
	int choice = profiles->said & SAID_PRIVILEGED ? 0 : -1;
	int r = set_choice(&choice, yes_no, "privileged", value, err);

	if (r < 0)
		return r;
	profiles->said |= SAID_PRIVILEGED;
	profiles->privileged = choice == 1;
	return 0;
}

/* `at_most_` and the name of what nobody gets more of. -ENOENT: no such key. */
static int set_ceiling(struct coop_sandbox_policy *ceiling, const char *key, const char *value,
		       struct coop_err *err)
{
	const char *name = key + strlen(at_most);

	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++) {
		const struct coop_choice_row *row = &coop_choice_rows[i];
		if (!strcmp(row->name, name))
			return set_choice(coop_choice_at(ceiling, row), row->names, key, value,
					  err);
	}
	return coop_limits_known(name) ? coop_limits_set(&ceiling->limits, name, key, value, err)
				       : -ENOENT;
}

/* `max_pids` of [sandbox]: a number as of any limit, or the word that takes coop's own away. */
static int set_pids(struct coop_profiles *profiles, const char *value, struct coop_err *err)
{
	struct coop_sandbox_limits *limits = &profiles->defaults.limits;

	if (profiles->any_pids || (limits->max_pids && !strcmp(value, "none")))
		return twice("max_pids", err);
	if (strcmp(value, "none") != 0)
		return coop_limits_set(limits, "max_pids", "max_pids", value, err);
	profiles->any_pids = true;
	return 0;
}

static int set_sandbox(struct coop_profiles *profiles, const char *key, const char *value,
		       struct coop_err *err)
{
	if (!strcmp(key, "profile"))
		return set_default_profile(&profiles->defaults, value, err);
	if (!strcmp(key, "at_most"))
		return set_choice(&profiles->ceiling.profile, coop_profile_names, key, value, err);
	if (!strncmp(key, at_most, strlen(at_most)))
		return set_ceiling(&profiles->ceiling, key, value, err);
	if (!strcmp(key, "always_require")) {
		profiles->ceiling.require_set = true;
		return set_protection(&profiles->ceiling.require, key, value, err);
	}
	if (!strcmp(key, "privileged"))
		return set_privileged(profiles, value, err);
	if (!strcmp(key, "user"))
		return set_user(profiles, value, err);
	if (!strcmp(key, "slots"))
		return set_slots(profiles, value, err);
	if (!strcmp(key, "max_pids"))
		return set_pids(profiles, value, err);
	int r = coop_shares_set(&profiles->shares, key, value, err);
	return r == -ENOENT ? set_common(&profiles->defaults, key, value, err) : r;
}

/* `protect_only`: an empty value is the list without any. */
static int set_protect_only(struct coop_sandbox_policy *own, const char *value,
			    struct coop_err *err)
{
	if (own->protect && !own->protect_replaces)
		return coop_err_field(err, COOP_INVALID_INPUT, "protect_only",
				      "protect_only and protect cannot both be said");
	own->protect_replaces = true;
	return *value ? coop_pathlist_add(&own->protect, COOP_PATHLIST_PROTECTED, value,
					  "protect_only", err)
		      : coop_pathlist_give(&own->protect, err);
}

static int set_own(struct coop_profiles *profiles, struct coop_sandbox_policy *own, const char *key,
		   const char *value, struct coop_err *err)
{
	uint64_t bit = 1ULL << (own - profiles->own);
	int choice = profiles->said_new_privileges & bit ? 0 : -1;

	if (!strcmp(key, "base"))
		return set_choice(&own->profile, coop_profile_names, key, value, err);
	if (!strcmp(key, "protect_only"))
		return set_protect_only(own, value, err);
	if (!strcmp(key, "protect") && own->protect_replaces)
		return coop_err_field(err, COOP_INVALID_INPUT, key,
				      "protect_only and protect cannot both be said");
	if (strcmp(key, "new_privileges") != 0)
		return set_common(own, key, value, err);
	int r = set_choice(&choice, yes_no, key, value, err);
	if (r < 0)
		return r;
	profiles->said_new_privileges |= bit;
	own->new_privileges = choice == 1;
	return 0;
}

int coop_profiles_set(struct coop_profiles *profiles, const char *section, const char *key,
		      const char *value, struct coop_err *err)
{
	struct coop_sandbox_policy *own = section ? find_own(profiles, section) : NULL;
	int r = own ? set_own(profiles, own, key, value, err)
		    : set_sandbox(profiles, key, value, err);

	if (r != -ENOENT)
		return r;
	return coop_err_field(err, COOP_INVALID_INPUT, key, "%.80s: no such key in [%s]", key,
			      own ? "profile" : "sandbox");
}

/* NULL: there is none. *ret_key is what cannot stand there. */
static const char *contradiction(const struct coop_sandbox_policy *own, const char **ret_key)
{
	bool full = own->profile == COOP_PROFILE_FULL;

	if (own->require & own->tolerate) {
		*ret_key = "tolerate";
		return "a protection is both required and tolerated";
	}
	if (own->new_privileges && !full) {
		*ret_key = "new_privileges";
		return "new_privileges = yes needs base = full";
	}
	if (coop_pathlist_count(own->allow_write) && own->profile == COOP_PROFILE_READ_ONLY) {
		*ret_key = "allow_write";
		return "allow_write needs base = workspace-write";
	}
	if (own->allow_read && own->root != COOP_ROOT_MINIMAL) {
		*ret_key = "allow_read";
		return "allow_read needs root = minimal";
	}
	for (size_t i = 0; full && i < COOP_CHOICE_ROWS; i++) {
		int choice = coop_choice_of(own, &coop_choice_rows[i]);
		*ret_key = coop_choice_rows[i].name;
		if (choice >= 0 && choice < coop_choice_rows[i].widest)
			return "base = full confines neither network nor home nor root";
	}
	for (size_t i = 0; full && i < COOP_LIST_ROWS; i++) {
		const struct coop_list_row *row = &coop_list_rows[i];
		bool replaces = own->protect_replaces && coop_list_of(own, row) == own->protect;
		*ret_key = replaces ? "protect_only" : row->name;
		if (coop_list_of(own, row))
			return "base = full confines no files";
	}
	*ret_key = "require";
	if (full && own->require & ~COOP_PROTECT_PLAIN)
		return "base = full has only privileges, kill and limits to require";
	return NULL;
}

/* The same of [sandbox]. */
static const char *default_contradiction(const struct coop_profiles *profiles, const char **ret_key)
{
	const struct coop_sandbox_policy *defaults = &profiles->defaults;

	*ret_key = "tolerate";
	if (defaults->require & defaults->tolerate)
		return "a protection is both required and tolerated";
	if (profiles->ceiling.require & defaults->tolerate)
		return "a protection is both always required and tolerated";
	*ret_key = "profile";
	if (defaults->name && defaults->profile < 0 && !coop_profiles_own(profiles, defaults->name))
		return "profile names one that is not there";
	return NULL;
}

int coop_profiles_finish(struct coop_profiles *profiles, size_t *ret_index, const char **ret_key,
			 struct coop_err *err)
{
	const char *fault = NULL;
	size_t i;

	for (i = 0; i < profiles->own_count && !fault; i++) {
		if (profiles->own[i].profile < 0)
			profiles->own[i].profile = COOP_PROFILE_WORKSPACE_WRITE;
		fault = contradiction(&profiles->own[i], ret_key);
	}
	*ret_index = fault ? i - 1 : profiles->own_count;
	if (fault)
		return coop_err_field(err, COOP_INVALID_INPUT, "profile", "[profile %s]: %s",
				      profiles->own[i - 1].name, fault);
	fault = default_contradiction(profiles, ret_key);
	return fault ? coop_err_field(err, COOP_INVALID_INPUT, "sandbox", "[sandbox]: %s", fault)
		     : 0;
}
