#include <stdio.h>

#include "interface/err.h"
#include "sandbox/policy/limits.h"
#include "sandbox/policy/members.h"
#include "sandbox/policy/pathlist.h"
#include "sandbox/policy/policy.h"
#include "sandbox/policy/protection.h"

/* `full` holds none of what a policy can say besides, and no protection wholly: such a ceiling is
 * one against `full`, too. */
static bool confines(const struct coop_sandbox_policy *policy)
{
	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++) {
		int choice = coop_choice_of(policy, &coop_choice_rows[i]);
		if (choice >= 0 && choice < coop_choice_rows[i].widest)
			return true;
	}
	for (size_t i = 0; i < COOP_LIST_ROWS; i++) {
		char *const *list = coop_list_of(policy, &coop_list_rows[i]);
		if (list && (coop_list_rows[i].grants || *list))
			return true;
	}
	return policy->workspace || policy->require & COOP_PROTECT_ALL;
}

int coop_policy_widest(const struct coop_sandbox_policy *policy)
{
	int profile = policy->profile < 0 ? COOP_PROFILE_FULL : policy->profile;

	return profile == COOP_PROFILE_FULL && confines(policy) ? COOP_PROFILE_WORKSPACE_WRITE
								: profile;
}

static int too_wide(enum coop_code code, const char *field, const char *asked, const char *most,
		    struct coop_err *err)
{
	int r = coop_err_field(err, code, field, "%s %s is more than is allowed here: %s", field,
			       asked, most);

	coop_err_detail(err, "maximum", most);
	return r;
}

/* Who only named one of the operator's profiles is told which part of it is in the way. */
static int profile_too_wide(enum coop_code code, const char *profile,
			    const struct coop_choice_row *row, int choice, int max,
			    struct coop_err *err)
{
	static const char field[] = "sandbox.profile";
	int r = coop_err_field(err, code, field,
			       "%s %s has the %s %s, which is more than is allowed here: %s", field,
			       profile, row->name, row->names[choice], row->names[max]);

	coop_err_detail(err, "maximum", row->names[max]);
	return r;
}

bool coop_policy_lets_write(const struct coop_sandbox_policy *ceiling, const char *path)
{
	if (!ceiling->workspace && !ceiling->allow_write)
		return true;
	return (ceiling->workspace && coop_pathlist_within(path, ceiling->workspace)) ||
	       coop_pathlist_holds(ceiling->allow_write, path);
}

bool coop_policy_lets_read(const struct coop_sandbox_policy *ceiling, const char *path)
{
	return !ceiling->allow_read || coop_pathlist_holds(ceiling->allow_read, path) ||
	       ((ceiling->workspace || ceiling->allow_write) &&
		coop_policy_lets_write(ceiling, path));
}

static int outside(enum coop_code code, const char *field, const char *path, struct coop_err *err)
{
	return coop_err_field(err, code, field, "%s %.300s is outside of what is allowed here",
			      field, path);
}

static int narrow_paths(const struct coop_sandbox_policy *policy,
			const struct coop_sandbox_policy *ceiling, enum coop_code code,
			struct coop_err *err)
{
	if (policy->workspace && !coop_policy_lets_write(ceiling, policy->workspace))
		return outside(code, "sandbox.workspace", policy->workspace, err);
	for (char *const *path = policy->allow_write; path && *path; path++) {
		if (!coop_policy_lets_write(ceiling, *path))
			return outside(code, "sandbox.allow_write", *path, err);
	}
	for (char *const *path = policy->allow_read; path && *path; path++) {
		if (!coop_policy_lets_read(ceiling, *path))
			return outside(code, "sandbox.allow_read", *path, err);
	}
	return 0;
}

/* Those of an own profile are the operator's and not asked for: they only give way. */
static int narrow_limits(const struct coop_sandbox_policy *policy,
			 const struct coop_sandbox_limits *most, enum coop_code code,
			 struct coop_err *err)
{
	char field[64], asked[32], allowed[32];

	for (size_t i = 0; i < COOP_LIMIT_COUNT; i++) {
		int64_t value = coop_limit_get(&policy->limits, i), max = coop_limit_get(most, i);
		bool asked_for = policy->limits_asked & COOP_PROTECT_BIT(coop_limit_protection(i));
		if (!asked_for || !max || value <= max)
			continue;
		(void)snprintf(field, sizeof field, "limits.%s",
			       coop_protection_name(coop_limit_protection(i)));
		coop_limit_text(i, value, asked, sizeof asked);
		coop_limit_text(i, max, allowed, sizeof allowed);
		int r = coop_err_field(err, code, field, "%s %s is more than is allowed here: %s",
				       field, asked, allowed);
		coop_err_detail_raw(err, "asked", asked);
		coop_err_detail_raw(err, "maximum", allowed);
		return r;
	}
	return 0;
}

int coop_sandbox_policy_narrow(const struct coop_sandbox_policy *policy,
			       const struct coop_sandbox_policy *ceiling, enum coop_code code,
			       struct coop_err *err)
{
	int most = coop_policy_widest(ceiling);

	if (policy->profile > most)
		return too_wide(code, "sandbox.profile", coop_profile_names[policy->profile],
				coop_profile_names[most], err);
	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++) {
		const struct coop_choice_row *row = &coop_choice_rows[i];
		int choice = coop_choice_of(policy, row), max = coop_choice_of(ceiling, row);
		if (max < 0 || choice <= max)
			continue;
		if (policy->from_profile & 1u << i && policy->name)
			return profile_too_wide(code, policy->name, row, choice, max, err);
		return too_wide(code, row->field, row->names[choice], row->names[max], err);
	}
	int r = narrow_paths(policy, ceiling, code, err);
	return r < 0 ? r : narrow_limits(policy, &ceiling->limits, code, err);
}
