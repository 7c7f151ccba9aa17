#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "interface/choices.h"
#include "interface/err.h"
#include "interface/fields.h"
#include "interface/schema.h"
#include "sandbox/policy/limits.h"
#include "sandbox/policy/members.h"
#include "sandbox/policy/pathlist.h"
#include "sandbox/policy/policy.h"
#include "sandbox/policy/protection.h"

#define FIELD_MAX 96u

/* Of `sandbox_profile`. */
const char *const coop_sandbox_profile_choices[] = {"unrestricted", "worktree", "os_hardened",
						    NULL};

static int refuse(const char *field, const char *what, struct coop_err *err)
{
	return coop_err_field(err, COOP_INVALID_INPUT, field, "%s %s", field, what);
}

/* The text, or NULL with the error filled. */
static const char *text_of(const json_t *value, const char *field, struct coop_err *err)
{
	if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
		return json_string_value(value);
	(void)refuse(field, "must be a string without NUL characters", err);
	return NULL;
}

static int no_allowlist(struct coop_err *err)
{
	int r = coop_err_set(err, COOP_SANDBOX_UNAVAILABLE,
			     "sandbox: network cannot be enforced: there are no allow-lists of "
			     "domains yet (network none, loopback or host)");

	coop_err_detail(err, "protection", "network");
	coop_err_detail(err, "reason", "there are no allow-lists of domains yet");
	return r;
}

static int read_choice(struct coop_sandbox_policy *policy, const struct coop_choice_row *row,
		       const json_t *value, struct coop_err *err)
{
	const char *text = text_of(value, row->field, err);

	if (!text)
		return -EINVAL;
	int choice = coop_names_find(row->names, text);
	if (choice < 0 && !strcmp(row->name, "network") && !strcmp(text, "allowlist"))
		return no_allowlist(err);
	if (choice < 0)
		return coop_names_refuse(row->names, row->field, err);
	*coop_choice_at(policy, row) = choice;
	return 0;
}

static int read_list(struct coop_sandbox_policy *policy, const struct coop_list_row *row,
		     const json_t *value, struct coop_err *err)
{
	char ***list = coop_list_at(policy, row);
	char field[FIELD_MAX];
	size_t count = json_array_size(value);

	if (!json_is_array(value))
		return refuse(row->field, "must be a list of strings", err);
	if (count > COOP_SANDBOX_PATHS_MAX)
		return coop_err_field(err, COOP_TOO_LARGE, row->field,
				      "%s has more than %u entries", row->field,
				      COOP_SANDBOX_PATHS_MAX);
	int r = coop_pathlist_give(list, err);
	for (size_t i = 0; r == 0 && i < count; i++) {
		(void)snprintf(field, sizeof field, "%s[%zu]", row->field, i);
		const char *text = text_of(json_array_get(value, i), field, err);
		r = text ? coop_pathlist_add(list, row->kind, text, field, err) : -EINVAL;
	}
	return r;
}

static int read_protections(const json_t *value, const char *name, uint32_t *ret,
			    struct coop_err *err)
{
	char field[FIELD_MAX];
	uint32_t set = 0;

	(void)snprintf(field, sizeof field, "sandbox.%s", name);
	if (!json_is_array(value))
		return refuse(field, "must be a list of protections", err);
	for (size_t i = 0; i < json_array_size(value); i++) {
		(void)snprintf(field, sizeof field, "sandbox.%s[%zu]", name, i);
		const char *text = text_of(json_array_get(value, i), field, err);
		if (!text)
			return -EINVAL;
		enum coop_protection protection = coop_protection_parse(text);
		if (protection == COOP_PROTECT_COUNT)
			return refuse(field,
				      "must be one of files, network, identity, ipc, privileges, "
				      "seccomp, kill, or the name of a limit",
				      err);
		set |= COOP_PROTECT_BIT(protection);
	}
	*ret = set;
	return 0;
}

static int read_workspace(struct coop_sandbox_policy *policy, const json_t *value,
			  struct coop_err *err)
{
	static const char field[] = "sandbox.workspace";
	const char *text = text_of(value, field, err);

	if (!text)
		return -EINVAL;
	policy->workspace = coop_pathlist_plain(COOP_PATHLIST_FOLDER, text, field, err);
	return policy->workspace ? 0 : err->code == COOP_INTERNAL ? -ENOMEM : -EINVAL;
}

/* The name alone; what it stands for is laid under the rest at the end. */
static int read_profile(struct coop_sandbox_policy *policy, const json_t *value,
			struct coop_err *err)
{
	const char *text = text_of(value, "sandbox.profile", err);

	if (!text)
		return -EINVAL;
	policy->name = coop_mem_strdup(text);
	return policy->name ? 0 : coop_err_no_memory(err);
}

static int read_member(struct coop_sandbox_policy *policy, const char *name, const json_t *value,
		       struct coop_err *err)
{
	char field[FIELD_MAX];

	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++) {
		if (!strcmp(coop_choice_rows[i].name, name))
			return read_choice(policy, &coop_choice_rows[i], value, err);
	}
	for (size_t i = 0; i < COOP_LIST_ROWS; i++) {
		if (!strcmp(coop_list_rows[i].name, name))
			return read_list(policy, &coop_list_rows[i], value, err);
	}
	if (!strcmp(name, "profile"))
		return read_profile(policy, value, err);
	if (!strcmp(name, "workspace"))
		return read_workspace(policy, value, err);
	if (!strcmp(name, "require")) {
		policy->require_set = true;
		return read_protections(value, name, &policy->require, err);
	}
	if (!strcmp(name, "tolerate"))
		return read_protections(value, name, &policy->tolerate, err);
	(void)snprintf(field, sizeof field, "sandbox.%.64s", name);
	/* It says how the request came to its paths; what follows from that is not of the
	 * policy. */
	if (!strcmp(name, "names")) {
		const char *text = text_of(value, field, err);
		return !text ? -EINVAL
		       : coop_names_find(coop_choices_names, text) < 0
			       ? coop_names_refuse(coop_choices_names, field, err)
			       : 0;
	}
	/* Given at all they ask for what cannot be had: an empty list allows nothing. */
	return json_is_array(value) ? no_allowlist(err)
				    : refuse(field, "must be a list of strings", err);
}

static bool known(const char *name)
{
	for (const struct coop_field *field = coop_sandbox_fields; field->name; field++) {
		if (!strcmp(field->name, name))
			return true;
	}
	return false;
}

static int read_object(struct coop_sandbox_policy *policy, const json_t *json, struct coop_err *err)
{
	char field[FIELD_MAX];
	const char *name;
	json_t *value;
	int r;

	if (!json_is_object(json))
		return refuse("sandbox", "must be an object", err);
	/* jansson's iteration takes no const; nothing is changed. */
	json_object_foreach((json_t *)(uintptr_t)json, name, value)
	{
		(void)snprintf(field, sizeof field, "sandbox.%.64s", name);
		if (!known(name))
			return refuse(field, "is not known", err);
		r = json_is_null(value) ? 0 : read_member(policy, name, value, err);
		if (r < 0)
			return r;
	}
	if (policy->require & policy->tolerate)
		return refuse("sandbox.tolerate", "names what sandbox.require names, too", err);
	return 0;
}

/* `sandbox_profile`: names that say how much must hold as well. */
static int read_alias(struct coop_sandbox_policy *policy, const json_t *value, struct coop_err *err)
{
	static const char field[] = "sandbox_profile";
	const char *text = text_of(value, field, err);

	if (!text)
		return -EINVAL;
	if (policy->name)
		return refuse(field, "and sandbox.profile cannot both be given", err);
	int alias = coop_names_find(coop_sandbox_profile_choices, text);
	if (alias < 0)
		return coop_names_refuse(coop_sandbox_profile_choices, field, err);
	policy->profile = alias ? COOP_PROFILE_WORKSPACE_WRITE : COOP_PROFILE_FULL;
	policy->require_set |= alias != 0;
	policy->require |= alias == 2 ? COOP_PROTECT_ALL : 0;
	if (policy->require & policy->tolerate)
		return refuse("sandbox.tolerate", "names what os_hardened requires", err);
	policy->name = coop_mem_strdup(text);
	return policy->name ? 0 : coop_err_no_memory(err);
}

static int find_profile(struct coop_sandbox_policy *policy, const struct coop_profiles *profiles,
			struct coop_err *err)
{
	static const char field[] = "sandbox.profile";
	const struct coop_sandbox_policy *own = coop_profiles_own(profiles, policy->name);

	if (own)
		return coop_sandbox_policy_under(policy, own, err);
	policy->profile = coop_profile_parse(policy->name);
	if (policy->profile < 0)
		return refuse(field,
			      "must be read-only, workspace-write, full, or one of coop.conf", err);
	if (!strcmp(policy->name, "privileged") && !(profiles && profiles->privileged))
		return coop_err_field(err, COOP_PERMISSION_DENIED, field,
				      "%s: privileged is not granted by the operator "
				      "([sandbox] privileged in coop.conf)",
				      field);
	return 0;
}

int coop_sandbox_policy_read(const json_t *args, const struct coop_profiles *profiles,
			     struct coop_sandbox_policy *ret, struct coop_err *err)
{
	const json_t *object = coop_arg(args, "sandbox"), *limits = coop_arg(args, "limits"),
		     *alias = coop_arg(args, "sandbox_profile");
	struct coop_sandbox_policy policy;

	coop_sandbox_policy_init(&policy);
	int r = object ? read_object(&policy, object, err) : 0;
	if (r == 0 && limits)
		r = coop_limits_read(limits, &policy.limits, &policy.limits_asked, err);
	if (r == 0 && alias)
		r = read_alias(&policy, alias, err);
	else if (r == 0 && policy.name)
		r = find_profile(&policy, profiles, err);
	if (r < 0)
		coop_sandbox_policy_clear(&policy);
	else
		*ret = policy;
	return r;
}
