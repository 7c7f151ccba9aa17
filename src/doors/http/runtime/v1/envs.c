#include "doors/http/runtime/v1/envs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_TEXT 40

/* The shortest text that is the same number again. */
static void write_real(double value, char text[NUMBER_TEXT])
{
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, NUMBER_TEXT, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			return;
	}
}

/* The variable's text; NULL without memory. */
static json_t *text_of(const json_t *value)
{
	char text[NUMBER_TEXT];

	if (json_is_string(value))
		return json_stringn(json_string_value(value), json_string_length(value));
	if (json_is_boolean(value))
		return json_string(json_is_true(value) ? "true" : "false");
	if (json_is_integer(value))
		(void)snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT,
			       json_integer_value(value));
	else
		write_real(json_real_value(value), text);
	return json_string(text);
}

/* An environment is made of C strings: none of them has a NUL. */
static bool has_nul(const json_t *value)
{
	return json_is_string(value) &&
	       strlen(json_string_value(value)) != json_string_length(value);
}

int coop_envs_read(const json_t *given, const char *field, json_t *env, json_t *removed,
		   char *ret_error, size_t error_size)
{
	const char *name;
	json_t *value;

	if (given && !json_is_object(given)) {
		(void)snprintf(ret_error, error_size, "%s must be an object", field);
		return -EINVAL;
	}
	json_object_foreach((json_t *)(uintptr_t)given, name, value)
	{
		int r = 0;
		if (json_is_object(value) || json_is_array(value) || has_nul(value)) {
			(void)snprintf(ret_error, error_size,
				       "%s.%.100s must be a string, a number, a boolean or null",
				       field, name);
			return -EINVAL;
		}
		if (!json_is_null(value))
			r = json_object_set_new(env, name, text_of(value));
		else if (removed)
			r = json_array_append_new(removed, json_string(name));
		if (r < 0)
			return -ENOMEM;
	}
	return 0;
}
