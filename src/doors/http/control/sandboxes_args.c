#include "doors/http/control/sandboxes_args.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "doors/http/control/sandboxes.h"
#include "doors/http/runtime/v1/envs.h"

#define PREFIX "sbx-"
#define RANDOM_BYTES 8
#define ERROR_MAX 256

int coop_sandbox_new_id(char ret[COOP_SANDBOX_ID_SIZE])
{
	uint8_t random[RANDOM_BYTES];

	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return -errno;
	(void)snprintf(ret, COOP_SANDBOX_ID_SIZE, PREFIX);
	for (size_t i = 0; i < RANDOM_BYTES; i++)
		(void)snprintf(ret + strlen(PREFIX) + 2 * i, 3, "%02x", random[i]);
	return 0;
}

bool coop_sandbox_is_id(const char *name)
{
	return strlen(name) == COOP_SANDBOX_ID_SIZE - 1 && !strncmp(name, PREFIX, strlen(PREFIX)) &&
	       strspn(name + strlen(PREFIX), "0123456789abcdef") == 2 * RANDOM_BYTES;
}

bool coop_sandbox_take_timeout(struct coop_http_exchange *exchange, bool needed, json_t *args)
{
	const json_t *timeout = json_object_get(exchange->json, "timeout");
	double seconds = json_number_value(timeout);

	if (!needed && (!timeout || json_is_null(timeout)))
		return true;
	if (!json_is_number(timeout) || !(seconds > 0) || seconds > COOP_SANDBOX_TIMEOUT_MAX) {
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "timeout must be a number of seconds, more than 0 and at most %d",
				 COOP_SANDBOX_TIMEOUT_MAX);
		return false;
	}
	/* What is less than a millisecond is one. */
	json_int_t ms = (json_int_t)(seconds * 1000);
	(void)json_object_set_new(args, "expires_in_ms", json_integer(ms < 1 ? 1 : ms));
	return true;
}

/* An object of strings. */
static bool take_metadata(struct coop_http_exchange *exchange, json_t *args)
{
	json_t *map = json_object_get(exchange->json, "metadata"), *value;
	const char *name;

	if (!map || json_is_null(map))
		return true;
	if (!json_is_object(map)) {
		coop_http_refuse(exchange, 400, "invalid_argument", "metadata must be an object");
		return false;
	}
	json_object_foreach(map, name, value)
	{
		if (json_is_string(value))
			continue;
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "metadata.%.100s must be a string", name);
		return false;
	}
	(void)json_object_set(args, "metadata", map);
	return true;
}

static bool take_envs(struct coop_http_exchange *exchange, json_t *args)
{
	const json_t *given = json_object_get(exchange->json, "envs");
	json_t *env = json_object();
	char why[ERROR_MAX];
	/* A null is a variable that is not set here; the machine's own stay what they are. */
	int r = coop_envs_read(json_is_null(given) ? NULL : given, "envs", env, NULL, why,
			       sizeof why);

	if (r == 0 && json_object_set_new(args, "env", env) == 0)
		return true;
	if (r < 0)
		json_decref(env);
	if (r == -EINVAL)
		coop_http_refuse(exchange, 400, "invalid_argument", "%s", why);
	else
		coop_http_refuse(exchange, 500, "internal", "no memory is left for this");
	return false;
}

bool coop_sandbox_take_maps(struct coop_http_exchange *exchange, json_t *args)
{
	return take_metadata(exchange, args) && take_envs(exchange, args);
}

bool coop_sandbox_only_timeout(struct coop_http_exchange *exchange)
{
	const char *name;
	json_t *value;

	json_object_foreach(exchange->json, name, value)
	{
		if (!strcmp(name, "timeout") || json_is_null(value))
			continue;
		coop_http_refuse(exchange, 400, "invalid_argument", "%.100s is not known here",
				 name);
		return false;
	}
	return true;
}
