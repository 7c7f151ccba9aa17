#include "doors/http/runtime/v1/start_message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/http/runtime/v1/envs.h"
#include "doors/http/runtime/v1/view.h"

#define TIMEOUT_GRACE_MS 500 /* between TERM and KILL at the time limit */
#define INTEGER_MAX 9007199254740991

struct start {
	const json_t *message;
	json_t *args;
	char *error;
};

/* Always -1. An error without text is want of memory. */
static int wrong(struct start *start, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static int wrong(struct start *start, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(start->error, COOP_START_ERROR_MAX, format, args);
	va_end(args);
	return -1;
}

/* null is absent. */
static const json_t *field(const struct start *start, const char *name)
{
	const json_t *value = json_object_get(start->message, name);

	return json_is_null(value) ? NULL : value;
}

static int set(struct start *start, const char *name, json_t *value)
{
	return json_object_set_new(start->args, name, value); /* of NULL, too, it is -1 */
}

/* A string that a process can be given: C knows no NUL in it. */
static bool is_text(const json_t *value)
{
	return json_is_string(value) &&
	       strlen(json_string_value(value)) == json_string_length(value);
}

static json_t *copy_text(const json_t *value)
{
	return json_stringn(json_string_value(value), json_string_length(value));
}

static int read_text(struct start *start, const char *name, const char *as)
{
	const json_t *value = field(start, name);

	if (!value)
		return 0;
	if (!is_text(value))
		return wrong(start, "%s must be a string without NUL", name);
	return set(start, as, copy_text(value));
}

/* An integer, also one that was sent as 5.0. */
static bool is_count(const json_t *value, int64_t most)
{
	double number = json_number_value(value);

	if (json_is_integer(value))
		return json_integer_value(value) >= 0 && json_integer_value(value) <= most;
	return json_is_real(value) && number >= 0 && number <= (double)most &&
	       (double)(int64_t)number == number;
}

static int read_argv(struct start *start)
{
	const json_t *cmd = field(start, "cmd"), *args = field(start, "args");
	json_t *argv = json_array();

	if (set(start, "argv", argv) < 0)
		return -1;
	if (!cmd || !is_text(cmd) || !json_string_length(cmd))
		return wrong(start, "cmd must be a string that is not empty");
	if (args && !json_is_array(args))
		return wrong(start, "args must be an array of strings");
	if (json_array_append_new(argv, copy_text(cmd)) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(args); i++) {
		const json_t *arg = json_array_get(args, i);
		if (!is_text(arg))
			return wrong(start, "args[%zu] must be a string without NUL", i);
		if (json_array_append_new(argv, copy_text(arg)) < 0)
			return -1;
	}
	return 0;
}

static int read_environment(struct start *start)
{
	const char *name = field(start, "environment") ? "environment" : "envs";
	json_t *env = json_object(), *remove = json_array();

	if (set(start, "env", env) < 0 || set(start, "env_remove", remove) < 0)
		return -1;
	return coop_envs_read(field(start, name), name, env, remove, start->error,
			      COOP_START_ERROR_MAX) < 0
		       ? -1
		       : 0;
}

static int read_size(struct start *start, const json_t *pty, const char *name)
{
	const json_t *value = json_object_get(pty, name);

	if (!is_count(value, 65535) || json_number_value(value) < 1)
		return wrong(start, "pty.%s must be an integer from 1 to 65535", name);
	return set(start, name, json_integer((json_int_t)json_number_value(value)));
}

static int read_input(struct start *start)
{
	const json_t *pty = field(start, "pty"), *input = field(start, "stdin");

	if (input && !json_is_boolean(input))
		return wrong(start, "stdin must be true or false");
	if (!pty)
		return set(start, "stdin", json_string(json_is_true(input) ? "pipe" : "none"));
	if (!json_is_object(pty))
		return wrong(start, "pty must be an object with cols and rows");
	if (read_size(start, pty, "cols") < 0 || read_size(start, pty, "rows") < 0)
		return -1;
	return set(start, "kind", json_string("pty"));
}

static int read_timeout(struct start *start)
{
	const json_t *value = field(start, "timeout_ms");

	if (value && !is_count(value, INTEGER_MAX))
		return wrong(start, "timeout_ms must be a whole number of milliseconds, 0 or more");
	if (!value || json_number_value(value) < 1)
		return 0;
	return set(start, "timeout_ms", json_integer((json_int_t)json_number_value(value))) < 0 ||
			       set(start, "timeout_grace_ms", json_integer(TIMEOUT_GRACE_MS)) < 0
		       ? -1
		       : 0;
}

bool coop_start_id_valid(const char *id, size_t size)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._:@/+-";

	return size >= 1 && size <= COOP_START_ID_MAX && strspn(id, allowed) == size &&
	       strcmp(id, ".") != 0 && strcmp(id, "..") != 0 && !coop_process_is_id(id);
}

static int read_id(struct start *start)
{
	const json_t *value = field(start, "id");

	if (!value)
		return 0;
	if (!json_is_string(value) ||
	    !coop_start_id_valid(json_string_value(value), json_string_length(value)))
		return wrong(
			start,
			"id must have 1 to %d of A-Z a-z 0-9 . _ : @ / + - and be neither . nor .. "
			"nor of the form psh-1a2f-17",
			COOP_START_ID_MAX);
	return set(start, "alias", copy_text(value));
}

json_t *coop_start_read(const json_t *message, char ret_error[COOP_START_ERROR_MAX])
{
	struct start start = {.message = message, .args = json_object(), .error = ret_error};

	*ret_error = 0;
	if (start.args && read_argv(&start) == 0 && read_environment(&start) == 0 &&
	    read_text(&start, "cwd", "cwd") == 0 && read_text(&start, "user", "user") == 0 &&
	    read_text(&start, "tag", "tag") == 0 && read_input(&start) == 0 &&
	    read_timeout(&start) == 0 && read_id(&start) == 0 &&
	    set(&start, "lease", json_string("awaited")) == 0 &&
	    set(&start, "hold", json_true()) == 0 &&
	    set(&start, "record_failure", json_true()) == 0)
		return start.args;
	json_decref(start.args);
	return NULL;
}
