#include "keeper/conf/env_rules.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text/glob.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"

bool coop_env_valid_name(const char *name)
{
	return *name && (*name < '0' || *name > '9') && name[strspn(name, LETTERS)] == 0;
}

static void clear_list(struct coop_env_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct coop_env_list){0};
}

void coop_env_rules_clear(struct coop_env_rules *rules)
{
	clear_list(&rules->inherit);
	clear_list(&rules->deny);
	clear_list(&rules->set);
}

static int add(struct coop_env_list *list, const char *key, const char *text, struct coop_err *err)
{
	if (list->count == COOP_ENV_RULES_MAX)
		return coop_err_set(err, COOP_INVALID_INPUT, "%s: more than %u of these", key,
				    COOP_ENV_RULES_MAX);
	char **grown = coop_mem_realloc(list->items, (list->count + 1) * sizeof *grown);
	if (!grown)
		return coop_err_no_memory(err);
	list->items = grown;
	char *copy = coop_mem_strdup(text);
	if (!copy)
		return coop_err_no_memory(err);
	list->items[list->count++] = copy;
	return 0;
}

static int check_pattern(const char *key, const char *text, bool only_at_end, struct coop_err *err)
{
	const char *star = strchr(text, '*');

	if (!*text || (*text >= '0' && *text <= '9') || text[strspn(text, LETTERS "*")])
		return coop_err_set(
			err, COOP_INVALID_INPUT,
			"%s: a variable's name is made of letters, digits and _; * stands "
			"for any of them",
			key);
	if (only_at_end && star && star[1])
		return coop_err_set(err, COOP_INVALID_INPUT,
				    "%s: only the end of a name can be a *", key);
	if (strlen(text) > COOP_ENV_RULES_PATTERN_MAX)
		return coop_err_set(err, COOP_INVALID_INPUT, "%s: longer than %u bytes", key,
				    COOP_ENV_RULES_PATTERN_MAX);
	return 0;
}

/* Twice the same name is refused: which of the two holds would depend on their order. */
static int add_value(struct coop_env_list *list, const char *assignment, struct coop_err *err)
{
	const char *equals = strchr(assignment, '=');
	size_t size = equals ? (size_t)(equals - assignment) : 0;
	char name[COOP_ENV_RULES_PATTERN_MAX + 1];

	if (size && size < sizeof name) {
		memcpy(name, assignment, size);
		name[size] = 0;
	}
	/* What was written is not repeated: it may be a value. */
	if (!size || size >= sizeof name || !coop_env_valid_name(name))
		return coop_err_set(err, COOP_INVALID_INPUT,
				    "set: must be NAME=VALUE, the name of letters, digits and _");
	for (size_t i = 0; i < list->count; i++) {
		if (!strncmp(list->items[i], assignment, size + 1))
			return coop_err_set(err, COOP_INVALID_INPUT, "set: %s is set twice", name);
	}
	return add(list, "set", assignment, err);
}

int coop_env_rules_set(struct coop_env_rules *rules, const char *key, const char *value,
		       struct coop_err *err)
{
	bool inherit = !strcmp(key, "inherit");

	if (!strcmp(key, "set"))
		return add_value(&rules->set, value, err);
	if (!inherit && strcmp(key, "deny") != 0)
		return coop_err_set(err, COOP_INVALID_INPUT, "%.60s: no such key", key);
	int r = check_pattern(key, value, inherit, err);
	return r < 0 ? r : add(inherit ? &rules->inherit : &rules->deny, key, value, err);
}

/* One that fits is enough; their order says nothing. */
static bool matches(const struct coop_env_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++) {
		if (coop_glob_match(list->items[i], name, NULL))
			return true;
	}
	return false;
}

bool coop_env_rules_inherits(const struct coop_env_rules *rules, const char *name)
{
	return matches(&rules->inherit, name);
}

bool coop_env_rules_denies(const struct coop_env_rules *rules, const char *name)
{
	return matches(&rules->deny, name);
}

/* By the ends of names, in any case of letters: an operator's `inherit = *` must not hand on what
 * is a secret by its name. */
bool coop_env_never_inherited(const char *name)
{
	static const char *const endings[] = {"_API_KEY", "_TOKEN", "_SECRET", "_KEY", "_PASSWORD"};
	size_t size = strlen(name);

	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
		size_t ending = strlen(endings[i]);
		if (size >= ending && !strcasecmp(name + size - ending, endings[i]))
			return true;
	}
	return !strncmp(name, "LD_", 3);
}

/* Variables by which interpreters and the dynamic linker load what nobody named on the command
 * line. */
bool coop_env_injects(const char *name)
{
	static const char *const names[] = {
		"BASH_ENV",   "ENV",        "GCONV_PATH", "NODE_OPTIONS", "PERL5OPT",
		"PYTHONHOME", "PYTHONPATH", "RUBYOPT",    "ZDOTDIR",
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (!strcmp(names[i], name))
			return true;
	}
	return !strncmp(name, "LD_", 3) || !strncmp(name, "DYLD_", 5);
}

void coop_env_rules_write(const struct coop_env_rules *rules, struct coop_jsonw *w,
			  const char *name)
{
	coop_jsonw_array(w, name);
	for (size_t i = 0; i < rules->inherit.count; i++)
		coop_jsonw_string(w, NULL, rules->inherit.items[i]);
	coop_jsonw_array_end(w);
}
