/* Policies of the sandbox from and to JSON, for its tests. */
#ifndef COOP_TESTS_SANDBOXING_H
#define COOP_TESTS_SANDBOXING_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/policy/policy.h"

/* In these texts ' stands for ". To be freed. */
static inline json_t *json_of(const char *text)
{
	char *copy = strdup(text);
	json_error_t fault;

	assert_non_null(copy);
	for (char *at = copy; (at = strchr(at, '\''));)
		*at = '"';
	json_t *json = json_loads(copy, JSON_ALLOW_NUL, &fault);
	if (!json)
		fail_msg("%s: %s", copy, fault.text);
	free(copy);
	return json;
}

/* Reads arguments; the result of coop_sandbox_policy_read. */
static inline int try_read(const char *text, const struct coop_profiles *profiles,
			   struct coop_sandbox_policy *ret, struct coop_err *err)
{
	json_t *args = json_of(text);

	*err = (struct coop_err){0};
	int r = coop_sandbox_policy_read(args, profiles, ret, err);
	json_decref(args);
	return r;
}

static inline struct coop_sandbox_policy policy_of(const char *text,
						   const struct coop_profiles *profiles)
{
	struct coop_sandbox_policy policy;
	struct coop_err err;

	if (try_read(text, profiles, &policy, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	return policy;
}

/* {"sandbox":…,"limits":…}, to be freed. */
static inline char *text_of_policy(const struct coop_sandbox_policy *policy)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	coop_jsonw_begin(&w, NULL);
	coop_sandbox_policy_write(policy, &w, "sandbox");
	coop_sandbox_limits_write(&policy->limits, &w, "limits");
	coop_jsonw_end(&w);
	assert_false(w.failed);
	/* Not strndup(): what is written has no end mark, and sanitizers look for one beyond the
	 * size given. */
	char *text = calloc(1, coop_buf_size(&out) + 1);
	assert_non_null(text);
	memcpy(text, coop_buf_front(&out), coop_buf_size(&out));
	coop_buf_clear(&out);
	return text;
}

/* As above: the policy is written so. */
static inline void written(const struct coop_sandbox_policy *policy, const char *expected)
{
	char *text = text_of_policy(policy);
	json_t *is = json_loads(text, 0, NULL), *wanted = json_of(expected);

	if (!json_equal(is, wanted))
		fail_msg("%s\nnot %s", text, expected);
	json_decref(is);
	json_decref(wanted);
	free(text);
}

static inline void set_lines(struct coop_profiles *profiles, const char *section,
			     const char *const *lines)
{
	struct coop_err err = {0};
	const char *key;
	size_t index;

	if (section && coop_profiles_open(profiles, section, &index, &err) < 0)
		fail_msg("%s: %s", section, err.message);
	for (; *lines; lines += 2) {
		if (coop_profiles_set(profiles, section, lines[0], lines[1], &err) < 0)
			fail_msg("%s = %s: %s", lines[0], lines[1], err.message);
	}
	if (coop_profiles_finish(profiles, &index, &key, &err) < 0)
		fail_msg("%s", err.message);
}

#define SET_LINES(profiles, section, ...) \
	set_lines(profiles, section, (const char *const[]){__VA_ARGS__, NULL})

/* The error names that field. */
static inline void names_field(const struct coop_err *err, const char *field, const char *about)
{
	char expected[128];

	(void)snprintf(expected, sizeof expected, "\"field\":\"%s\"", field);
	if (strncmp(err->details, expected, strlen(expected)) != 0 || !strstr(err->message, field))
		fail_msg("%s\n-> %s {%s}, not %s", about, err->message, err->details, field);
}

#endif
