/* Sandbox policies: any JSON is taken or refused by name; what was taken and merged lies within
 * every ceiling, and reads again as it was written. The input is a request with its ceilings beside
 * it: {"sandbox":…,"limits":…,"above":[{"sandbox":…}]}. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define ABOVE_MAX 4u

static char *write_text(const struct coop_sandbox_policy *policy)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	coop_jsonw_begin(&w, NULL);
	coop_sandbox_policy_write(policy, &w, "sandbox");
	coop_sandbox_limits_write(&policy->limits, &w, "limits");
	coop_jsonw_end(&w);
	assert(!w.failed && coop_buf_append(&out, "", 1) == 0);
	char *text = coop_mem_strdup((const char *)coop_buf_front(&out));
	coop_buf_clear(&out);
	assert(text);
	return text;
}

static void check_paths(char *const *list)
{
	for (size_t i = 0; list && list[i]; i++) {
		assert(*list[i] && !strstr(list[i], "//") && !strstr(list[i], "/../"));
		assert(i < COOP_SANDBOX_PATHS_MAX);
	}
}

/* Reads it again without the operator's profiles: the text stands for itself. */
static void check_again(const struct coop_sandbox_policy *policy)
{
	char *text = write_text(policy);
	json_t *json = json_loads(text, 0, NULL);
	struct coop_sandbox_policy again;
	struct coop_err err;

	assert(json && coop_sandbox_policy_read(json, NULL, &again, &err) == 0);
	char *second = write_text(&again);
	assert(!strcmp(text, second));
	check_paths(policy->allow_write);
	check_paths(policy->allow_read);
	check_paths(policy->deny_write);
	check_paths(policy->deny_read);
	check_paths(policy->protect);
	coop_sandbox_policy_clear(&again);
	json_decref(json);
	free(second);
	free(text);
}

static void check_error(const struct coop_err *err)
{
	assert(*err->message && *err->details);
	assert(err->code == COOP_INVALID_INPUT || err->code == COOP_TOO_LARGE ||
	       err->code == COOP_PERMISSION_DENIED || err->code == COOP_SANDBOX_UNAVAILABLE);
}

static void check_within(const struct coop_sandbox_policy *merged,
			 const struct coop_sandbox_policy *ceiling)
{
	struct coop_sandbox_policy asked = *merged;
	struct coop_err err;

	/* All limits are compared, not only those that were asked for. A workspace that is only
	 * read is in allow_read. */
	asked.limits_asked = UINT32_MAX;
	asked.allow_read = NULL;
	assert(coop_sandbox_policy_narrow(&asked, ceiling, COOP_INVALID_INPUT, &err) == 0);
	assert((ceiling->require & ~merged->require & COOP_PROTECT_ALL) == 0);
	assert((ceiling->require & ~merged->insisted & COOP_PROTECT_ALL) == 0);
}

static void check_merged(const struct coop_sandbox_policy *merged,
			 const struct coop_sandbox_policy *const *above, size_t count,
			 const struct coop_sandbox_policy *operators)
{
	assert(merged->profile >= 0 && merged->network >= 0 && merged->home >= 0 &&
	       merged->root >= 0 && merged->require_set);
	assert(!(merged->require & merged->tolerate));
	assert(merged->profile != COOP_PROFILE_READ_ONLY ||
	       (!merged->workspace && !merged->allow_write));
	for (size_t i = 0; i < count; i++)
		check_within(merged, above[i]);
	check_within(merged, operators);
	check_again(merged);
}

static void merge(const json_t *args, const struct coop_profiles *profiles,
		  const struct coop_sandbox_policy *request)
{
	struct coop_sandbox_policy ceilings[ABOVE_MAX], merged;
	const struct coop_sandbox_policy *above[ABOVE_MAX];
	const json_t *list = json_object_get(args, "above");
	struct coop_err err;
	size_t count = 0;

	for (size_t i = 0; i < json_array_size(list) && count < ABOVE_MAX; i++) {
		if (coop_sandbox_policy_read(json_array_get(list, i), profiles, &ceilings[count],
					     &err) < 0) {
			check_error(&err);
			continue;
		}
		above[count] = &ceilings[count];
		count++;
	}
	if (coop_sandbox_policy_merge(profiles, above, count, request, &merged, &err) < 0) {
		check_error(&err);
	} else {
		check_merged(&merged, above, count, &profiles->ceiling);
		coop_sandbox_policy_clear(&merged);
	}
	while (count)
		coop_sandbox_policy_clear(&ceilings[--count]);
}

static void make_profiles(struct coop_profiles *profiles)
{
	static const char *const lines[][2] = {
		{"base", "workspace-write"},  {"network", "host"},   {"allow_write", "/cache"},
		{"deny_read", "~/private"},   {"protect_only", "a"}, {"memory_bytes", "4G"},
		{"require", "files"},         {"tolerate", "kill"},  {"root", "minimal"},
		{"allow_read", "/opt/tools"},
	};
	struct coop_err err;
	const char *key;
	size_t index;

	coop_profiles_init(profiles);
	assert(coop_profiles_open(profiles, "build", &index, &err) == 0);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		assert(coop_profiles_set(profiles, "build", lines[i][0], lines[i][1], &err) == 0);
	assert(coop_profiles_set(profiles, NULL, "allow_write", "/var/x", &err) == 0);
	assert(coop_profiles_set(profiles, NULL, "max_pids", "100", &err) == 0);
	assert(coop_profiles_set(profiles, NULL, "tolerate", "ipc", &err) == 0);
	assert(coop_profiles_set(profiles, NULL, "at_most_memory_bytes", "8G", &err) == 0);
	assert(coop_profiles_set(profiles, NULL, "always_require", "kill", &err) == 0);
	assert(coop_profiles_finish(profiles, &index, &key, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct coop_profiles profiles;
	static bool made;
	json_t *args = json_loadb((const char *)input, size, JSON_ALLOW_NUL, NULL);
	struct coop_sandbox_policy request;
	struct coop_err err;

	if (!made)
		make_profiles(&profiles);
	made = true;
	/* What is not an object never comes so far. */
	if (json_is_object(args)) {
		if (coop_sandbox_policy_read(args, &profiles, &request, &err) < 0) {
			check_error(&err);
		} else {
			check_again(&request);
			merge(args, &profiles, &request);
			coop_sandbox_policy_clear(&request);
		}
	}
	json_decref(args);
	return 0;
}
