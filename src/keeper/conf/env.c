#include "keeper/conf/env.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text/glob.h"
#include "interface/choices.h"
#include "interface/schema.h"

#define NAME_LIMIT 1024u
#define STANDARD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The names that every door may send, whatever the operator says. */
static bool may_inherit(const char *name)
{
	for (size_t i = 0; coop_usual_variables[i]; i++) {
		if (coop_glob_match(coop_usual_variables[i], name, NULL))
			return true;
	}
	return false;
}

void coop_env_clear(struct coop_env *env)
{
	for (size_t i = 0; i < env->count; i++)
		free(env->variables[i]);
	free(env->variables);
	*env = (struct coop_env){0};
}

static char **find(const struct coop_env *env, const char *name)
{
	size_t size = strlen(name);

	for (size_t i = 0; i < env->count; i++) {
		if (!strncmp(env->variables[i], name, size) && env->variables[i][size] == '=')
			return &env->variables[i];
	}
	return NULL;
}

const char *coop_env_get(const struct coop_env *env, const char *name)
{
	char **place = find(env, name);

	return place ? *place + strlen(name) + 1 : NULL;
}

/* The last one takes the place: variables have no order. */
static void drop(struct coop_env *env, const char *name)
{
	char **place = find(env, name);

	if (!place)
		return;
	free(*place);
	*place = env->variables[--env->count];
	env->variables[env->count] = NULL;
}

/* Dropped first, so that a name is there once: of two, programs would take either. */
int coop_env_set(struct coop_env *env, const char *name, const char *value)
{
	size_t name_size = strlen(name), value_size = strlen(value);
	char *text;

	drop(env, name);
	if (env->count + 1 >= env->capacity) {
		size_t capacity = env->capacity ? env->capacity * 2 : 32;
		char **grown = coop_mem_realloc(env->variables, capacity * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		env->variables = grown;
		env->capacity = capacity;
	}
	text = coop_mem_alloc(name_size + value_size + 2);
	if (!text)
		return -ENOMEM;
	memcpy(text, name, name_size);
	text[name_size] = '=';
	memcpy(text + name_size + 1, value, value_size + 1);
	env->variables[env->count++] = text;
	env->variables[env->count] = NULL;
	return 0;
}

/* The name is repeated, the value never. */
int coop_env_check(const char *argument, const char *name, const char *value, struct coop_err *err)
{
	char field[160];

	if (coop_env_valid_name(name) && strlen(name) <= NAME_LIMIT &&
	    (!value || strlen(value) <= COOP_ENV_VALUE_MAX))
		return 0;
	(void)snprintf(field, sizeof field, "%s.%.100s", argument, name);
	if (!coop_env_valid_name(name))
		return coop_err_field(err, COOP_INVALID_INPUT, field,
				      "%s: a variable's name is made of letters, digits and _",
				      field);
	if (strlen(name) > NAME_LIMIT)
		return coop_err_field(err, COOP_INVALID_INPUT, field,
				      "%s\u2026: a variable's name has at most %u bytes", field,
				      NAME_LIMIT);
	return coop_err_field(err, COOP_INVALID_INPUT, field, "%s is longer than %u bytes", field,
			      COOP_ENV_VALUE_MAX);
}

static int refuse_base(const char *name, struct coop_err *err)
{
	char field[160];

	(void)snprintf(field, sizeof field, "base_env.%.100s", name);
	return coop_err_field(
		err, COOP_INVALID_INPUT, field,
		"%s: a base holds only PATH, HOME, USER, LOGNAME, SHELL, "
		"TERM, TMPDIR, LANG, LC_* and TZ, and what coop.conf lets doors pass on",
		field);
}

/* PATH and HOME stay whatever the operator denies: hardly a program runs without them. */
static bool denied(const struct coop_env_rules *rules, const char *name)
{
	return strcmp(name, "PATH") != 0 && strcmp(name, "HOME") != 0 &&
	       coop_env_rules_denies(rules, name);
}

/* What a door offers. What it may offer and what must not get through is left out without a word: a
 * door sends all that the hello lets it send, and cannot know the rest. */
static int lay_base(struct coop_env *env, const json_t *offered, const struct coop_env_how *how,
		    struct coop_err *err)
{
	const struct coop_env_rules *rules = how->rules;
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)offered, name, value)
	{
		bool standard = may_inherit(name);
		int r = coop_env_check("base_env", name, json_string_value(value), err);
		if (r < 0)
			return r;
		if (!standard && !coop_env_rules_inherits(rules, name))
			return refuse_base(name, err);
		if (denied(rules, name) ||
		    (!standard && (coop_env_never_inherited(name) ||
				   (how->restricted && coop_env_injects(name)))))
			continue;
		if (how->no_tmpdir && !strcmp(name, "TMPDIR"))
			continue;
		if (coop_env_set(env, name, json_string_value(value)) < 0)
			return coop_err_no_memory(err);
	}
	return 0;
}

/* The agent's own, where it still may have them. */
static int lay_defaults(struct coop_env *env, const struct coop_env_how *how)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)how->defaults, name, value)
	{
		if (how->restricted && coop_env_injects(name))
			continue;
		if (coop_env_set(env, name, json_string_value(value)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* What the request itself says is refused where it may not stand, and not left out: its author
 * wants to know. */
static int lay_over(struct coop_env *env, const json_t *variables, bool restricted,
		    struct coop_err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)variables, name, value)
	{
		int r = coop_env_check("env", name, json_string_value(value), err);
		if (r < 0)
			return r;
		if (restricted && coop_env_injects(name)) {
			char field[160];
			(void)snprintf(field, sizeof field, "env.%.100s", name);
			return coop_err_field(err, COOP_CAPABILITY_DENIED, field,
					      "%s: this agent may not set variables that make a "
					      "program load other code",
					      field);
		}
		if (coop_env_set(env, name, json_string_value(value)) < 0)
			return coop_err_no_memory(err);
	}
	return 0;
}

const char *coop_env_home(void)
{
	static char home[4096];

	if (!*home) {
		const struct passwd *entry = getpwuid(geteuid());
		const char *own = getenv("HOME");
		/* A user whom the database does not know is believed. */
		if (entry && entry->pw_dir && *entry->pw_dir)
			own = entry->pw_dir;
		(void)snprintf(home, sizeof home, "%s", own && *own == '/' ? own : "/");
	}
	return home;
}

const char *coop_env_user(void)
{
	static char user[256];
	static bool known;

	if (!known) {
		const struct passwd *entry = getpwuid(geteuid());
		(void)snprintf(user, sizeof user, "%s", entry ? entry->pw_name : "");
		known = true;
	}
	return user;
}

/* What a command gets if no door offers anything better. */
static int set_standard(struct coop_env *env)
{
	static char shell[4096];
	const char *user = coop_env_user();

	if (!*shell) {
		const struct passwd *entry = getpwuid(geteuid());
		(void)snprintf(shell, sizeof shell, "%s",
			       entry && *entry->pw_shell ? entry->pw_shell : "/bin/sh");
	}
	if (coop_env_set(env, "PATH", STANDARD_PATH) < 0 ||
	    coop_env_set(env, "HOME", coop_env_home()) < 0 || coop_env_set(env, "SHELL", shell) < 0)
		return -ENOMEM;
	return *user && (coop_env_set(env, "USER", user) < 0 ||
			 coop_env_set(env, "LOGNAME", user) < 0)
		       ? -ENOMEM
		       : 0;
}

/* The base before a door offers anything: the user's own, without what the operator denies, under
 * what he sets. */
static int set_base(struct coop_env *env, const struct coop_env_rules *rules)
{
	static const char *const own[] = {"USER", "LOGNAME", "SHELL"};

	if (set_standard(env) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
		if (denied(rules, own[i]))
			drop(env, own[i]);
	}
	for (size_t i = 0; i < rules->set.count; i++) {
		char name[COOP_ENV_RULES_PATTERN_MAX + 1];
		const char *assignment = rules->set.items[i];
		const char *equals = strchr(assignment, '=');
		(void)snprintf(name, sizeof name, "%.*s", (int)(equals - assignment), assignment);
		if (coop_env_set(env, name, equals + 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Before what the request sets: it may take a variable away and give it anew. */
static int remove_all(struct coop_env *env, const json_t *names, struct coop_err *err)
{
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));
		int r = coop_env_check("env_remove", name, NULL, err);
		if (r < 0)
			return r;
		drop(env, name);
	}
	return 0;
}

/* One over the other: the base, what the door offers, the agent's own, then removals, then what the
 * request sets. `replace` begins with nothing. */
int coop_env_build(const json_t *args, const struct coop_env_how *how, struct coop_env *ret,
		   struct coop_err *err)
{
	struct coop_env env = {0};
	bool replace = !strcmp(coop_arg_string(args, "env_mode", "patch"), "replace");
	char number[24];
	int r = 0;

	if (!replace) {
		if (set_base(&env, how->rules) < 0)
			r = coop_err_no_memory(err);
		if (r == 0)
			r = lay_base(&env, coop_arg(args, "base_env"), how, err);
		if (r == 0 && how->tmpdir && !find(&env, "TMPDIR") &&
		    coop_env_set(&env, "TMPDIR", how->tmpdir) < 0)
			r = coop_err_no_memory(err);
		if (r == 0 && lay_defaults(&env, how) < 0)
			r = coop_err_no_memory(err);
	}
	if (r == 0)
		r = remove_all(&env, coop_arg(args, "env_remove"), err);
	if (r == 0)
		r = lay_over(&env, coop_arg(args, "env"), how->restricted, err);
	(void)snprintf(number, sizeof number, "%llu", (unsigned long long)how->n);
	if (r == 0 && ((how->n && coop_env_set(&env, "COOP_PROCESS", number) < 0) ||
		       (how->terminal && !find(&env, "TERM") &&
			coop_env_set(&env, "TERM", "xterm-256color") < 0)))
		r = coop_err_no_memory(err);
	if (r < 0) {
		coop_env_clear(&env);
		return r;
	}
	*ret = env;
	return 0;
}
