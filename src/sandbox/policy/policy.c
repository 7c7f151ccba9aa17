#include "sandbox/policy/policy.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/policy/limits.h"
#include "sandbox/policy/members.h"
#include "sandbox/policy/pathlist.h"

const char *const coop_profile_names[] = {"read-only", "workspace-write", "full", NULL};
static const char *const network_names[] = {"none", "loopback", "host", NULL};
static const char *const home_names[] = {"hidden", "read-only", "cow", NULL};
static const char *const root_names[] = {"minimal", "host", NULL};

#define CHOICE(member, names, standard, widest)                                                   \
	{                                                                                         \
#member, "sandbox." #member, offsetof(struct coop_sandbox_policy, member), names, \
			standard, widest                                                          \
	}
#define LIST(member, kind, grants)                                                               \
	{                                                                                        \
#member, "sandbox." #member, offsetof(struct coop_sandbox_policy, member), kind, \
			grants                                                                   \
	}

const struct coop_choice_row coop_choice_rows[COOP_CHOICE_ROWS] = {
	CHOICE(network, network_names, COOP_NET_LOOPBACK, COOP_NET_HOST),
	CHOICE(home, home_names, COOP_HOME_COW, COOP_HOME_COW),
	CHOICE(root, root_names, COOP_ROOT_HOST, COOP_ROOT_HOST),
};

const struct coop_list_row coop_list_rows[COOP_LIST_ROWS] = {
	[COOP_ROW_ALLOW_WRITE] = LIST(allow_write, COOP_PATHLIST_PLAIN, true),
	[COOP_ROW_ALLOW_READ] = LIST(allow_read, COOP_PATHLIST_PLAIN, true),
	LIST(deny_write, COOP_PATHLIST_PLAIN, false),
	LIST(deny_read, COOP_PATHLIST_PATTERN, false),
	LIST(protect, COOP_PATHLIST_PROTECTED, false),
};

const char *coop_profile_name(enum coop_profile profile)
{
	return coop_profile_names[profile];
}

const char *coop_network_name(enum coop_network network)
{
	return network_names[network];
}

const char *coop_home_name(enum coop_home home)
{
	return home_names[home];
}

const char *coop_root_name(enum coop_root root)
{
	return root_names[root];
}

int coop_names_find(const char *const *names, const char *text)
{
	for (int i = 0; names[i]; i++) {
		if (!strcmp(names[i], text))
			return i;
	}
	return -1;
}

int coop_names_refuse(const char *const *names, const char *field, struct coop_err *err)
{
	char list[256];
	size_t used = 0;

	for (; *names && used < sizeof list; names++) {
		int n = snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", *names);
		used += n > 0 ? (size_t)n : 0;
	}
	return coop_err_field(err, COOP_INVALID_INPUT, field, "%s must be one of %s", field, list);
}

void coop_sandbox_policy_init(struct coop_sandbox_policy *policy)
{
	*policy =
		(struct coop_sandbox_policy){.profile = -1, .network = -1, .home = -1, .root = -1};
}

void coop_sandbox_policy_clear(struct coop_sandbox_policy *policy)
{
	for (size_t i = 0; i < COOP_LIST_ROWS; i++)
		coop_pathlist_free(*coop_list_at(policy, &coop_list_rows[i]));
	free(policy->name);
	free(policy->workspace);
	coop_sandbox_policy_init(policy);
}

int coop_sandbox_policy_copy(const struct coop_sandbox_policy *from, struct coop_sandbox_policy *to,
			     struct coop_err *err)
{
	struct coop_sandbox_policy copy = *from;
	int r = 0;

	/* Nothing of it is shared, so that a failure can clear what there is. */
	copy.name = copy.workspace = NULL;
	for (size_t i = 0; i < COOP_LIST_ROWS; i++)
		*coop_list_at(&copy, &coop_list_rows[i]) = NULL;
	if ((from->name && !(copy.name = coop_mem_strdup(from->name))) ||
	    (from->workspace && !(copy.workspace = coop_mem_strdup(from->workspace))))
		r = coop_err_no_memory(err);
	for (size_t i = 0; r == 0 && i < COOP_LIST_ROWS; i++) {
		const struct coop_list_row *row = &coop_list_rows[i];
		r = coop_pathlist_join(coop_list_at(&copy, row), coop_list_of(from, row),
				       row->field, err);
	}
	if (r < 0)
		coop_sandbox_policy_clear(&copy);
	else
		*to = copy;
	return r;
}

int coop_sandbox_policy_under(struct coop_sandbox_policy *policy,
			      const struct coop_sandbox_policy *own, struct coop_err *err)
{
	policy->profile = own->profile;
	policy->protect_replaces = own->protect_replaces;
	policy->new_privileges = own->new_privileges;
	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++) {
		int *choice = coop_choice_at(policy, &coop_choice_rows[i]);
		if (*choice >= 0)
			continue;
		*choice = coop_choice_of(own, &coop_choice_rows[i]);
		policy->from_profile |= 1u << i;
	}
	for (size_t i = 0; i < COOP_LIMIT_COUNT; i++) {
		if (!coop_limit_get(&policy->limits, i))
			coop_limit_put(&policy->limits, i, coop_limit_get(&own->limits, i));
	}
	if (!policy->require_set) {
		policy->require_set = own->require_set;
		policy->require = own->require & ~policy->tolerate;
	}
	policy->tolerate |= own->tolerate & ~policy->require;
	for (size_t i = 0; i < COOP_LIST_ROWS; i++) {
		const struct coop_list_row *row = &coop_list_rows[i];
		int r = coop_pathlist_join(coop_list_at(policy, row), coop_list_of(own, row),
					   row->field, err);
		if (r < 0)
			return r;
	}
	return 0;
}

bool coop_sandbox_policy_silent(const struct coop_sandbox_policy *policy)
{
	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++) {
		if (coop_choice_of(policy, &coop_choice_rows[i]) >= 0)
			return false;
	}
	for (size_t i = 0; i < COOP_LIST_ROWS; i++) {
		if (coop_list_of(policy, &coop_list_rows[i]))
			return false;
	}
	return policy->profile < 0 && !policy->workspace && !policy->require_set &&
	       !policy->tolerate;
}

static void write_list(char *const *list, struct coop_jsonw *w, const char *name)
{
	if (!list)
		return;
	coop_jsonw_array(w, name);
	for (; *list; list++)
		coop_jsonw_string(w, NULL, *list);
	coop_jsonw_array_end(w);
}

void coop_sandbox_policy_write(const struct coop_sandbox_policy *policy, struct coop_jsonw *w,
			       const char *name)
{
	if (coop_sandbox_policy_silent(policy)) {
		coop_jsonw_null(w, name);
		return;
	}
	coop_jsonw_begin(w, name);
	if (policy->profile >= 0)
		coop_jsonw_string(w, "profile", coop_profile_names[policy->profile]);
	if (policy->workspace)
		coop_jsonw_string(w, "workspace", policy->workspace);
	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++) {
		const struct coop_choice_row *row = &coop_choice_rows[i];
		if (coop_choice_of(policy, row) >= 0)
			coop_jsonw_string(w, row->name, row->names[coop_choice_of(policy, row)]);
	}
	for (size_t i = 0; i < COOP_LIST_ROWS; i++)
		write_list(coop_list_of(policy, &coop_list_rows[i]), w, coop_list_rows[i].name);
	if (policy->require_set)
		coop_protections_write(policy->require, w, "require");
	if (policy->tolerate)
		coop_protections_write(policy->tolerate, w, "tolerate");
	coop_jsonw_end(w);
}
