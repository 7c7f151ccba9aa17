#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "policy/rules.h"

static const char *const action_names[] = {
	[COOP_ACTION_ALLOW] = "allow",     [COOP_ACTION_EXPLAIN_ONLY] = "explain_only",
	[COOP_ACTION_DRY_RUN] = "dry_run", [COOP_ACTION_REQUIRE_APPROVAL] = "require_approval",
	[COOP_ACTION_DENY] = "deny",
};

static const char *const risk_names[COOP_RISK_COUNT] = {
	[COOP_RISK_DESTRUCTIVE] = "destructive",
	[COOP_RISK_WRITE_INTENT] = "write_intent",
	[COOP_RISK_CURL_PIPE_SHELL] = "curl_pipe_shell",
	[COOP_RISK_CREDENTIAL_FILE_READ] = "credential_file_read",
	[COOP_RISK_NETWORK_EXFIL] = "network_exfil",
	[COOP_RISK_SUDO] = "sudo",
	[COOP_RISK_PACKAGE_INSTALL] = "package_install",
	[COOP_RISK_GIT_FORCE_PUSH] = "git_force_push",
	[COOP_RISK_PROCESS_KILL] = "process_kill",
	[COOP_RISK_OUTSIDE_WORKSPACE] = "outside_workspace",
	[COOP_RISK_DENY_PATTERN] = "deny_pattern",
};

const char *coop_action_name(enum coop_action action)
{
	return action_names[action];
}

const char *coop_risk_name(enum coop_risk risk)
{
	return risk_names[risk];
}

struct coop_policy *coop_policy_new(void)
{
	return coop_mem_zalloc(sizeof(struct coop_policy));
}

static void rules_clear(struct coop_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		free(rules->items[i].text);
	free(rules->items);
	*rules = (struct coop_rules){0};
}

void coop_policy_free(struct coop_policy *policy)
{
	if (!policy)
		return;
	rules_clear(&policy->denied);
	rules_clear(&policy->allowed);
	rules_clear(&policy->patterns);
	free(policy);
}

static void put_source(char *ret, const char *source)
{
	/* An empty one would read as "not chosen". */
	(void)snprintf(ret, COOP_RULES_SOURCE_MAX, "%s", source && *source ? source : "policy");
}

static void choose(struct coop_choice *choice, enum coop_action action, const char *source)
{
	choice->action = action;
	put_source(choice->source, source);
}

void coop_policy_standard(struct coop_policy *policy)
{
	static const enum coop_risk denied[] = {COOP_RISK_DESTRUCTIVE, COOP_RISK_CURL_PIPE_SHELL,
						COOP_RISK_CREDENTIAL_FILE_READ,
						COOP_RISK_NETWORK_EXFIL};

	for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
		choose(&policy->risk[denied[i]], COOP_ACTION_DENY, "standard policy");
}

static int rules_add(struct coop_rules *rules, const char *text, const char *source)
{
	if (rules->count == rules->capacity) {
		size_t capacity = rules->capacity ? rules->capacity * 2 : 8;
		struct coop_rule *grown =
			coop_mem_realloc(rules->items, capacity * sizeof *rules->items);
		if (!grown)
			return -ENOMEM;
		rules->items = grown;
		rules->capacity = capacity;
	}
	struct coop_rule *rule = &rules->items[rules->count];
	rule->text = coop_mem_strdup(text);
	if (!rule->text)
		return -ENOMEM;
	put_source(rule->source, source);
	rules->count++;
	return 0;
}

/* `field` is how messages name it: "risk.sudo", or "policy.risk.sudo" of JSON. */
static int set_list(struct coop_policy *policy, struct coop_rules *rules, const char *field,
		    const char *value, const char *source, struct coop_err *err)
{
	if (!*value && rules != &policy->allowed)
		return coop_err_field(err, COOP_INVALID_INPUT, field, "%s must not be empty",
				      field);
	if (strlen(value) > COOP_RULES_TEXT_MAX)
		return coop_err_field(err, COOP_TOO_LARGE, field, "%s has more than %u bytes",
				      field, COOP_RULES_TEXT_MAX);
	if (rules->count >= COOP_RULES_MAX)
		return coop_err_field(err, COOP_TOO_LARGE, field, "%s has more than %u entries",
				      field, COOP_RULES_MAX);
	if (*value && rules_add(rules, value, source) < 0)
		return coop_err_no_memory(err);
	if (!rules->present)
		put_source(rules->source, source);
	rules->present = true;
	return 0;
}

static struct coop_rules *list_named(struct coop_policy *policy, const char *key)
{
	if (!strcmp(key, "denied_commands"))
		return &policy->denied;
	if (!strcmp(key, "allowed_commands"))
		return &policy->allowed;
	return strcmp(key, "deny_patterns") ? NULL : &policy->patterns;
}

static int set_risk(struct coop_policy *policy, const char *label, const char *field,
		    const char *value, const char *source, struct coop_err *err)
{
	static const enum coop_action choices[] = {COOP_ACTION_ALLOW, COOP_ACTION_REQUIRE_APPROVAL,
						   COOP_ACTION_DENY};
	size_t risk = 0;

	while (risk < COOP_RISK_COUNT && strcmp(risk_names[risk], label) != 0)
		risk++;
	if (risk == COOP_RISK_COUNT)
		return coop_err_field(err, COOP_INVALID_INPUT, field, "%s is not a risk label",
				      field);
	for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
		if (!strcmp(action_names[choices[i]], value)) {
			choose(&policy->risk[risk], choices[i], source);
			return 0;
		}
	}
	return coop_err_field(err, COOP_INVALID_INPUT, field,
			      "%s must be one of allow, require_approval, deny", field);
}

static int set_mode(struct coop_policy *policy, const char *field, const char *value,
		    const char *source, struct coop_err *err)
{
	if (!strcmp(value, "enforce"))
		choose(&policy->mode, COOP_ACTION_ALLOW, source);
	else if (!strcmp(value, "dry_run"))
		choose(&policy->mode, COOP_ACTION_DRY_RUN, source);
	else if (!strcmp(value, "explain_only"))
		choose(&policy->mode, COOP_ACTION_EXPLAIN_ONLY, source);
	else
		return coop_err_field(err, COOP_INVALID_INPUT, field,
				      "%s must be one of enforce, dry_run, explain_only", field);
	return 0;
}

int coop_policy_set(struct coop_policy *policy, const char *key, const char *value,
		    const char *source, struct coop_err *err)
{
	struct coop_rules *rules = list_named(policy, key);

	if (rules)
		return set_list(policy, rules, key, value, source, err);
	if (!strncmp(key, "risk.", 5))
		return set_risk(policy, key + 5, key, value, source, err);
	if (!strcmp(key, "mode"))
		return set_mode(policy, key, value, source, err);
	return coop_err_field(err, COOP_INVALID_INPUT, key, "%s is not a policy key", key);
}

/* The text, or NULL with the error filled. */
static const char *text_of(const json_t *value, const char *field, struct coop_err *err)
{
	if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
		return json_string_value(value);
	(void)coop_err_field(err, COOP_INVALID_INPUT, field,
			     "%s must be a string without NUL characters", field);
	return NULL;
}

static int list_from_json(struct coop_policy *policy, struct coop_rules *rules, const char *name,
			  const json_t *list, const char *source, struct coop_err *err)
{
	char field[96];
	size_t i;
	const json_t *item;

	(void)snprintf(field, sizeof field, "policy.%s", name);
	if (!json_is_array(list))
		return coop_err_field(err, COOP_INVALID_INPUT, field,
				      "%s must be a list of strings", field);
	if (!json_array_size(list)) {
		rules->present = true;
		put_source(rules->source, source);
	}
	json_array_foreach(list, i, item)
	{
		(void)snprintf(field, sizeof field, "policy.%s[%zu]", name, i);
		const char *text = text_of(item, field, err);
		if (!text)
			return -EINVAL;
		if (!*text)
			return coop_err_field(err, COOP_INVALID_INPUT, field,
					      "%s must not be empty", field);
		int r = set_list(policy, rules, field, text, source, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int risk_from_json(struct coop_policy *policy, json_t *object, const char *source,
			  struct coop_err *err)
{
	const char *label;
	json_t *value;

	if (!json_is_object(object))
		return coop_err_field(err, COOP_INVALID_INPUT, "policy.risk",
				      "policy.risk must be an object");
	json_object_foreach(object, label, value)
	{
		char field[96];

		(void)snprintf(field, sizeof field, "policy.risk.%.64s", label);
		if (json_is_null(value))
			continue;
		const char *text = text_of(value, field, err);
		if (!text)
			return -EINVAL;
		int r = set_risk(policy, label, field, text, source, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int member_from_json(struct coop_policy *policy, const char *name, json_t *value,
			    const char *source, struct coop_err *err)
{
	struct coop_rules *rules = list_named(policy, name);
	char field[96];

	(void)snprintf(field, sizeof field, "policy.%.64s", name);
	if (rules)
		return json_is_null(value)
			       ? 0
			       : list_from_json(policy, rules, name, value, source, err);
	if (!strcmp(name, "risk"))
		return json_is_null(value) ? 0 : risk_from_json(policy, value, source, err);
	if (strcmp(name, "mode") != 0)
		return coop_err_field(err, COOP_INVALID_INPUT, field, "%s is not known", field);
	if (json_is_null(value))
		return 0;
	const char *text = text_of(value, field, err);
	return text ? set_mode(policy, field, text, source, err) : -EINVAL;
}

int coop_policy_from_json(const json_t *json, const char *source, struct coop_policy **ret,
			  struct coop_err *err)
{
	const char *name;
	json_t *value;

	if (!json_is_object(json))
		return coop_err_field(err, COOP_INVALID_INPUT, "policy",
				      "policy must be an object");
	struct coop_policy *policy = coop_policy_new();
	if (!policy)
		return coop_err_no_memory(err);
	/* Iterating changes nothing; jansson's iterators are not const all the same. */
	json_object_foreach((json_t *)(uintptr_t)json, name, value)
	{
		int r = member_from_json(policy, name, value, source, err);
		if (r < 0) {
			coop_policy_free(policy);
			return r;
		}
	}
	*ret = policy;
	return 0;
}

static void write_list(const struct coop_rules *rules, struct coop_jsonw *w, const char *name)
{
	coop_jsonw_array(w, name);
	for (size_t i = 0; i < rules->count; i++)
		coop_jsonw_string(w, NULL, rules->items[i].text);
	coop_jsonw_array_end(w);
}

void coop_policy_write(const struct coop_policy *policy, struct coop_jsonw *w, const char *name)
{
	coop_jsonw_begin(w, name);
	write_list(&policy->denied, w, "denied_commands");
	if (policy->allowed.present)
		write_list(&policy->allowed, w, "allowed_commands");
	write_list(&policy->patterns, w, "deny_patterns");
	coop_jsonw_begin(w, "risk");
	for (size_t i = 0; i < COOP_RISK_COUNT; i++) {
		if (coop_choice_made(&policy->risk[i]))
			coop_jsonw_string(w, risk_names[i], action_names[policy->risk[i].action]);
	}
	coop_jsonw_end(w);
	coop_jsonw_string(w, "mode",
			  policy->mode.action == COOP_ACTION_ALLOW
				  ? "enforce"
				  : action_names[policy->mode.action]);
	coop_jsonw_end(w);
}
