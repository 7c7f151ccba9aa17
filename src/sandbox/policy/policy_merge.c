#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "interface/err.h"
#include "sandbox/policy/limits.h"
#include "sandbox/policy/members.h"
#include "sandbox/policy/pathlist.h"
#include "sandbox/policy/policy.h"

/* What a merge looks at. */
struct merge {
	const struct coop_sandbox_policy *request;
	/* Where the request is silent: the own profile that the operator made the default, then
	 * [sandbox]. NULL: none. */
	const struct coop_sandbox_policy *silent[2];
	const struct coop_sandbox_policy *const *ceilings; /* of agents */
	size_t count;                                      /* of them; the operator's follows */
	const struct coop_sandbox_policy *operators;
	int64_t pids; /* of a confined process that nobody says it of; 0: any number */
	struct coop_err *err;
};

static const struct coop_sandbox_policy *ceiling(const struct merge *m, size_t i)
{
	return i < m->count ? m->ceilings[i] : m->operators;
}

static int refuse(const struct merge *m, const char *field, const char *what)
{
	return coop_err_field(m->err, COOP_INVALID_INPUT, field, "%s %s", field, what);
}

/* What it would be without ceilings. */
static int wanted_profile(const struct merge *m)
{
	int profile = m->request->profile;

	for (size_t i = 0; profile < 0 && i < 2; i++)
		profile = m->silent[i] ? m->silent[i]->profile : -1;
	return profile < 0 ? COOP_PROFILE_WORKSPACE_WRITE : profile;
}

static void merge_profile(const struct merge *m, struct coop_sandbox_policy *merged)
{
	merged->profile = wanted_profile(m);
	for (size_t i = 0; i <= m->count; i++) {
		int most = coop_policy_widest(ceiling(m, i));
		if (merged->profile > most)
			merged->profile = most;
	}
}

static void merge_choice(const struct merge *m, const struct coop_choice_row *row,
			 struct coop_sandbox_policy *merged)
{
	int choice = coop_choice_of(m->request, row);

	for (size_t i = 0; choice < 0 && i < 2; i++)
		choice = m->silent[i] ? coop_choice_of(m->silent[i], row) : -1;
	choice = choice < 0 ? row->standard : choice;
	for (size_t i = 0; i <= m->count; i++) {
		int most = coop_choice_of(ceiling(m, i), row);
		if (most >= 0 && choice > most)
			choice = most;
	}
	*coop_choice_at(merged, row) = choice;
}

/* What forbids: all that anybody says. */
static int merge_denials(const struct merge *m, const struct coop_list_row *row,
			 struct coop_sandbox_policy *merged)
{
	char ***list = coop_list_at(merged, row);
	bool protect = list == &merged->protect, replaced = m->request->protect_replaces;
	int r = coop_pathlist_join(list, coop_list_of(m->request, row), row->field, m->err);

	/* `protect_only` is all that the operator's side protects. */
	for (size_t i = 0; r == 0 && i < 2; i++) {
		if (!m->silent[i] || (protect && replaced))
			continue;
		r = coop_pathlist_join(list, coop_list_of(m->silent[i], row), row->field, m->err);
		replaced = m->silent[i]->protect_replaces;
	}
	if (protect)
		merged->protect_replaces = replaced;
	for (size_t i = 0; r == 0 && i <= m->count; i++)
		r = coop_pathlist_join(list, coop_list_of(ceiling(m, i), row), row->field, m->err);
	return r;
}

/* Whether every ceiling lets a path be had. */
static bool all_let(const struct merge *m, const char *path, bool write)
{
	for (size_t i = 0; i <= m->count; i++) {
		if (!(write ? coop_policy_lets_write(ceiling(m, i), path)
			    : coop_policy_lets_read(ceiling(m, i), path)))
			return false;
	}
	return true;
}

/* What allows: the request's, which the ceilings were asked about; where it says nothing the
 * defaults', as far as the ceilings let. */
static int merge_grants(const struct merge *m, const struct coop_list_row *row,
			struct coop_sandbox_policy *merged)
{
	char *const *given = coop_list_of(m->request, row);
	char ***list = coop_list_at(merged, row);
	bool write = row == &coop_list_rows[COOP_ROW_ALLOW_WRITE];
	int r = 0;

	if (given)
		return coop_pathlist_join(list, given, row->field, m->err);
	for (size_t i = 0; !given && i < 2; i++)
		given = m->silent[i] ? coop_list_of(m->silent[i], row) : NULL;
	for (; r == 0 && given && *given; given++) {
		char *const one[] = {*given, NULL};
		if (all_let(m, *given, write))
			r = coop_pathlist_join(list, one, row->field, m->err);
	}
	return r;
}

/* The request's own, else that of the nearest ceiling that all of them let. */
static int merge_workspace(const struct merge *m, struct coop_sandbox_policy *merged)
{
	const char *workspace = m->request->workspace;

	for (size_t i = m->count; !workspace && i > 0; i--) {
		const char *granted = m->ceilings[i - 1]->workspace;
		if (granted && all_let(m, granted, true))
			workspace = granted;
	}
	if (!workspace)
		return 0;
	merged->workspace = coop_mem_strdup(workspace);
	return merged->workspace ? 0 : coop_err_no_memory(m->err);
}

static void drop_list(char ***list)
{
	coop_pathlist_free(*list);
	*list = NULL;
}

/* `read-only` has no writable paths. The workspace is still one to be read, which needs to be said
 * where the root is minimal. */
static int take_writes_away(const struct merge *m, struct coop_sandbox_policy *merged)
{
	char *const workspace[] = {merged->workspace, NULL};
	int r = 0;

	/* Where it would not be read-only by itself, a ceiling is in the way. */
	if (coop_pathlist_count(m->request->allow_write))
		return wanted_profile(m) == COOP_PROFILE_READ_ONLY
			       ? refuse(m, "sandbox.allow_write",
					"needs the profile workspace-write")
			       : coop_err_field(m->err, COOP_PERMISSION_DENIED,
						"sandbox.allow_write",
						"sandbox.allow_write is more than is allowed "
						"here: the profile read-only");
	if (merged->root == COOP_ROOT_MINIMAL && merged->workspace)
		r = coop_pathlist_join(&merged->allow_read, workspace, "sandbox.workspace", m->err);
	free(merged->workspace);
	merged->workspace = NULL;
	drop_list(&merged->allow_write);
	return r;
}

static int needs_minimal(const struct merge *m)
{
	int r = refuse(m, "sandbox.allow_read", "needs sandbox.root minimal");

	coop_err_detail(m->err, "needs", "sandbox.root");
	return r;
}

static int merge_confined(const struct merge *m, struct coop_sandbox_policy *merged)
{
	int r = merge_workspace(m, merged);

	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++)
		merge_choice(m, &coop_choice_rows[i], merged);
	for (size_t i = 0; r == 0 && i < COOP_LIST_ROWS; i++) {
		const struct coop_list_row *row = &coop_list_rows[i];
		r = row->grants ? merge_grants(m, row, merged) : merge_denials(m, row, merged);
	}
	if (r == 0 && merged->profile == COOP_PROFILE_READ_ONLY)
		r = take_writes_away(m, merged);
	if (r == 0 && merged->root == COOP_ROOT_HOST) {
		if (coop_pathlist_count(m->request->allow_read))
			return needs_minimal(m);
		drop_list(&merged->allow_read);
	}
	return r;
}

/* What the request asks of `full` must be what that has. */
static int merge_full(const struct merge *m, struct coop_sandbox_policy *merged)
{
	const char *beyond = "cannot be had with the profile full, which confines nothing";

	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++) {
		const struct coop_choice_row *row = &coop_choice_rows[i];
		int choice = coop_choice_of(m->request, row);
		if (choice >= 0 && choice != row->widest)
			return refuse(m, row->field, beyond);
		*coop_choice_at(merged, row) = row->widest;
	}
	for (size_t i = 0; i < COOP_LIST_ROWS; i++) {
		const struct coop_list_row *row = &coop_list_rows[i];
		if (!row->grants && coop_pathlist_count(coop_list_of(m->request, row)))
			return refuse(m, row->field, beyond);
	}
	if (m->request->require & ~COOP_PROTECT_PLAIN)
		return refuse(m, "sandbox.require", beyond);
	merged->new_privileges = m->request->new_privileges;
	if (m->request->profile < 0 && m->silent[0])
		merged->new_privileges = m->silent[0]->new_privileges;
	return merge_workspace(m, merged);
}

static void merge_limits(const struct merge *m, struct coop_sandbox_policy *merged)
{
	for (size_t i = 0; i < COOP_LIMIT_COUNT; i++) {
		uint32_t bit = COOP_PROTECT_BIT(coop_limit_protection(i));
		int64_t value = coop_limit_get(&m->request->limits, i);
		for (size_t j = 0; !value && j < 2; j++)
			value = m->silent[j] ? coop_limit_get(&m->silent[j]->limits, i) : 0;
		if (!value && bit == COOP_PROTECT_BIT(COOP_PROTECT_PIDS) &&
		    merged->profile != COOP_PROFILE_FULL && m->pids) {
			value = m->pids;
			merged->limits_builtin |= bit;
		}
		for (size_t j = 0; j <= m->count; j++) {
			int64_t most = coop_limit_get(&ceiling(m, j)->limits, i);
			if (most && (!value || value > most)) {
				value = most;
				merged->limits_builtin &= ~bit;
			}
		}
		coop_limit_put(&merged->limits, i, value);
	}
	merged->limits_asked = m->request->limits_asked;
}

static int merge_require(const struct merge *m, struct coop_sandbox_policy *merged)
{
	const struct coop_sandbox_policy *request = m->request;
	uint32_t tolerate = request->tolerate, unlimited = ~COOP_PROTECT_ALL;
	uint32_t require = merged->profile == COOP_PROFILE_FULL ? 0 : COOP_PROTECT_DEFAULT;

	unlimited &= ~coop_limits_bits(&merged->limits);
	if (request->require_set) {
		/* To insist on something gives up nothing else; to insist on nothing, by an empty
		 * list, does. */
		require = request->require ? require | request->require : 0;
		if (require & unlimited)
			return refuse(m, "sandbox.require", "names a limit that is not set");
	} else {
		bool set = false;
		for (size_t i = 0; i < 2; i++) {
			if (!m->silent[i])
				continue;
			if (!set && m->silent[i]->require_set)
				require =
					m->silent[i]->require ? require | m->silent[i]->require : 0;
			set |= m->silent[i]->require_set;
			tolerate |= m->silent[i]->tolerate;
		}
		/* The defaults are not about `full`, which has less to require. */
		if (merged->profile == COOP_PROFILE_FULL)
			require &= COOP_PROTECT_PLAIN;
	}
	require |= request->limits_asked;
	require &= ~tolerate;
	uint32_t insisted = m->operators->require;
	/* His limits are ceilings on every host; whether one that cannot hold them starts anything
	 * is his to say, too. */
	insisted |= coop_limits_bits(&m->operators->limits) & ~m->silent[1]->tolerate;
	for (size_t i = 0; i < m->count; i++)
		insisted |= m->ceilings[i]->require |
			    (coop_limits_bits(&m->ceilings[i]->limits) & ~m->ceilings[i]->tolerate);
	merged->require_set = true;
	merged->require = (require | insisted) & ~unlimited;
	merged->insisted = insisted & ~unlimited;
	merged->tolerate = tolerate & ~merged->require;
	return 0;
}

static int merge_name(const struct merge *m, struct coop_sandbox_policy *merged)
{
	const struct coop_sandbox_policy *named = m->request->name ? m->request : m->silent[0];

	if (!named || !named->name || named->profile != merged->profile)
		return 0;
	merged->name = coop_mem_strdup(named->name);
	return merged->name ? 0 : coop_err_no_memory(m->err);
}

int coop_sandbox_policy_merge(const struct coop_profiles *profiles,
			      const struct coop_sandbox_policy *const *ceilings,
			      size_t ceiling_count, const struct coop_sandbox_policy *request,
			      struct coop_sandbox_policy *ret, struct coop_err *err)
{
	struct merge m = {.request = request,
			  .silent = {NULL, &profiles->defaults},
			  .ceilings = ceilings,
			  .count = ceiling_count,
			  .operators = &profiles->ceiling,
			  .pids = profiles->any_pids ? 0 : COOP_SANDBOX_PIDS,
			  .err = err};
	struct coop_sandbox_policy merged;
	int r = 0;

	coop_sandbox_policy_init(&merged);
	if (request->profile < 0 && profiles->defaults.name)
		m.silent[0] = coop_profiles_own(profiles, profiles->defaults.name);
	for (size_t i = 0; r == 0 && i <= ceiling_count; i++)
		r = coop_sandbox_policy_narrow(request, ceiling(&m, i), COOP_PERMISSION_DENIED,
					       err);
	if (r < 0)
		return r;
	merge_profile(&m, &merged);
	merge_limits(&m, &merged);
	r = merge_name(&m, &merged);
	if (r == 0)
		r = merged.profile == COOP_PROFILE_FULL ? merge_full(&m, &merged)
							: merge_confined(&m, &merged);
	if (r == 0)
		r = merge_require(&m, &merged);
	if (r < 0)
		coop_sandbox_policy_clear(&merged);
	else
		*ret = merged;
	return r;
}
