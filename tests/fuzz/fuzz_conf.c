/* coop.conf: any bytes are taken or refused with a line that is there, and what was taken holds
 * together. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/conf/conf.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static void check_error(const struct coop_err *err, const char *text, size_t size)
{
	unsigned line = 0, lines = 1;

	assert(err->code == COOP_INVALID_INPUT && !strncmp(err->message, "coop.conf:", 10));
	int n = sscanf(err->details, "\"field\":\"configuration\",\"line\":%u", &line);
	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	assert(n == 1 && line >= 1 && line <= lines);
}

/* What a request that says nothing gets, and one that names each of the profiles. A limit in
 * `require` that is nowhere set is refused only then, as a request may set it. */
static void check_profiles(const struct coop_profiles *profiles)
{
	struct coop_sandbox_policy request, merged;
	struct coop_err err = {0};

	coop_sandbox_policy_init(&request);
	assert(coop_sandbox_policy_merge(profiles, NULL, 0, &request, &merged, &err) == 0 ||
	       err.code == COOP_TOO_LARGE);
	if (!err.code)
		coop_sandbox_policy_clear(&merged);
	for (size_t i = 0; i < profiles->own_count; i++) {
		json_t *args = json_pack("{s:{s:s}}", "sandbox", "profile", profiles->own[i].name);
		assert(args && coop_sandbox_policy_read(args, profiles, &request, &err) == 0);
		json_decref(args);
		if (coop_sandbox_policy_merge(profiles, NULL, 0, &request, &merged, &err) == 0)
			coop_sandbox_policy_clear(&merged);
		coop_sandbox_policy_clear(&request);
	}
}

static void check_taken(const struct coop_conf *conf)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	for (size_t i = 0; i < conf->env.set.count; i++)
		assert(strchr(conf->env.set.items[i], '='));
	assert(conf->env.inherit.count <= COOP_ENV_RULES_MAX);
	check_profiles(&conf->profiles);
	(void)coop_env_rules_inherits(&conf->env, "CI_JOB");
	(void)coop_env_rules_denies(&conf->env, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
	coop_jsonw_begin(&w, NULL);
	coop_settings_write(&conf->settings, &w, "settings");
	coop_env_rules_write(&conf->env, &w, "inherit");
	coop_policy_write(conf->policy, &w, "policy");
	coop_jsonw_end(&w);
	json_t *json = json_loadb((const char *)coop_buf_front(&out), coop_buf_size(&out), 0, NULL);
	assert(!w.failed && json);
	json_decref(json);
	coop_buf_clear(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct coop_conf conf;
	struct coop_err err = {0};
	/* A copy of exactly that size, so that the sanitizer sees a read past it. */
	char *text = malloc(size ? size : 1);

	assert(text && coop_conf_init(&conf, &err) == 0);
	memcpy(text, input, size);
	if (coop_conf_parse(text, size, "coop.conf", &conf, &err) < 0)
		check_error(&err, text, size);
	else
		check_taken(&conf);
	coop_conf_clear(&conf);
	free(text);
	return 0;
}
