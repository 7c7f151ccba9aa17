/* The `start` message of a client: whatever JSON comes, it becomes arguments of a spawn that have
 * the right form and say what the message said, or a text that names what is wrong. null is the
 * same as absent. */
#include <assert.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "doors/http/runtime/v1/start_message.h"
#include "doors/http/runtime/v1/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static bool is_text(const json_t *value)
{
	return json_is_string(value) &&
	       strlen(json_string_value(value)) == json_string_length(value);
}

/* A field that is there and not null. */
static const json_t *given(const json_t *message, const char *name)
{
	const json_t *value = json_object_get(message, name);

	return json_is_null(value) ? NULL : value;
}

static void check_argv(const json_t *message, const json_t *args)
{
	const json_t *argv = json_object_get(args, "argv"), *words = given(message, "args");

	assert(json_array_size(argv) == 1 + json_array_size(words));
	assert(json_equal(json_array_get(argv, 0), json_object_get(message, "cmd")));
	for (size_t i = 0; i < json_array_size(argv); i++)
		assert(is_text(json_array_get(argv, i)));
	for (size_t i = 0; i < json_array_size(words); i++)
		assert(json_equal(json_array_get(argv, i + 1), json_array_get(words, i)));
}

static void check_environment(const json_t *message, const json_t *args)
{
	const json_t *wanted = given(message, "environment");
	json_t *env = json_object_get(args, "env"), *remove = json_object_get(args, "env_remove");
	json_t *value;
	const char *name;

	if (!wanted)
		wanted = given(message, "envs");
	assert(json_object_size(env) + json_array_size(remove) == json_object_size(wanted));
	json_object_foreach(env, name, value)
	{
		assert(is_text(value));
		const json_t *source = json_object_get(wanted, name);
		assert(source && !json_is_null(source));
		if (json_is_string(source))
			assert(json_equal(source, value));
		if (json_is_real(source))
			assert(strtod(json_string_value(value), NULL) == json_real_value(source));
	}
}

static void check_rest(const json_t *message, const json_t *args)
{
	static const char *const same[] = {"cwd", "user", "tag"};
	const json_t *timeout = json_object_get(args, "timeout_ms");
	const json_t *alias = json_object_get(args, "alias");

	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		const json_t *value = given(message, same[i]);
		assert(!value == !json_object_get(args, same[i]));
		assert(!value || json_equal(value, json_object_get(args, same[i])));
	}
	assert(!alias == !given(message, "id"));
	if (alias)
		assert(!coop_process_is_id(json_string_value(alias)) &&
		       json_string_value(alias)[0] != '#' && json_string_length(alias) <= 128);
	assert(!timeout || json_integer_value(timeout) >= 1);
	if (given(message, "pty")) {
		const json_t *cols = json_object_get(args, "cols");
		assert(!cols ||
		       (json_integer_value(cols) >= 1 && json_integer_value(cols) <= 65535));
		assert(strcmp(json_string_value(json_object_get(args, "kind")), "pty") == 0);
	} else {
		assert(!json_object_get(args, "kind") && json_object_get(args, "stdin"));
	}
}

/* Without its nulls a message means the same. */
static void check_nulls(const json_t *message, const json_t *args)
{
	json_t *plain = json_copy((json_t *)(uintptr_t)message), *value;
	char error[COOP_START_ERROR_MAX];
	const char *name;
	void *next;

	assert(plain);
	json_object_foreach_safe(plain, next, name, value)
	{
		if (json_is_null(value))
			assert(json_object_del(plain, name) == 0);
	}
	json_t *again = coop_start_read(plain, error);
	assert(!again == !args && (!again || json_equal(again, args)));
	json_decref(again);
	json_decref(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char error[COOP_START_ERROR_MAX] = "?";
	json_t *message = json_loadb((const char *)input, size,
				     JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

	if (!json_is_object(message)) {
		json_decref(message);
		return 0;
	}
	json_t *args = coop_start_read(message, error);
	if (args) {
		check_argv(message, args);
		check_environment(message, args);
		check_rest(message, args);
	} else {
		assert(error[0] && memchr(error, 0, sizeof error));
	}
	check_nulls(message, args);
	json_decref(args);
	json_decref(message);
	return 0;
}
