#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io/paths.h"
#include "base/json/jsonw.h"
#include "client/arguments.h"
#include "client/client.h"
#include "client/scan.h"
#include "client/spawn_sandbox.h"
#include "coop.h"

#define FIELD_SIZE 160

static int put_argv(struct coop_arguments *arguments, const char *const *argv,
		    struct coop_error *error)
{
	char field[FIELD_SIZE];
	int r = 0;

	coop_jsonw_array(&arguments->w, "argv");
	for (size_t i = 0; r == 0 && argv[i]; i++) {
		(void)snprintf(field, sizeof field, "argv[%zu]", i);
		r = coop_arguments_string(arguments, NULL, field, argv[i], error);
	}
	coop_jsonw_array_end(&arguments->w);
	return r;
}

/* Whether the name can stand in JSON and in messages as it is. */
static bool plain_name(const char *name)
{
	for (const char *at = name; *at; at++) {
		if (*at <= ' ' || *at > '~' || *at == '"' || *at == '\\')
			return false;
	}
	return *name != 0;
}

/* Copies the name of a "NAME=VALUE" and returns the value, or NULL if it is none. */
static const char *split(const char *entry, char name[FIELD_SIZE])
{
	size_t length = strcspn(entry, "=");

	if (!entry[length] || length >= FIELD_SIZE - 8)
		return NULL;
	memcpy(name, entry, length);
	name[length] = 0;
	return plain_name(name) ? entry + length + 1 : NULL;
}

static int put_env(struct coop_arguments *arguments, const char *const *env,
		   struct coop_error *error)
{
	char name[FIELD_SIZE], field[FIELD_SIZE + 8];
	int r = 0;

	coop_jsonw_begin(&arguments->w, "env");
	for (size_t i = 0; r == 0 && env[i]; i++) {
		const char *value = split(env[i], name);
		/* Not the entry itself: a value never stands in an error. */
		if (!value)
			return coop_client_refuse(error, -EINVAL, "invalid_input", "env",
						  "an entry is not NAME=VALUE");
		(void)snprintf(field, sizeof field, "env.%s", name);
		r = coop_arguments_string(arguments, name, field, value, error);
	}
	coop_jsonw_end(&arguments->w);
	return r;
}

/* The keeper may have been started long ago, from elsewhere: what a command finds is what its
 * caller would find. */
static void put_base_env(struct coop_arguments *arguments, const struct coop *coop)
{
	char name[FIELD_SIZE];

	coop_jsonw_begin(&arguments->w, "base_env");
	for (size_t i = 0; environ && environ[i]; i++) {
		const char *value = split(environ[i], name);
		/* Nobody asked for these by name, so one that is not UTF-8 is left out. */
		if (value && coop_inherits(coop, name))
			(void)coop_arguments_string(arguments, name, name, value, NULL);
	}
	coop_jsonw_end(&arguments->w);
}

static int put_text(struct coop_arguments *arguments, const struct coop_spawn_options *options,
		    struct coop_error *error)
{
	char folder[COOP_PATHS_MAX];
	bool named = options->sandbox && options->sandbox->workspace;
	/* Who names a workspace and no folder begins in there: the keeper refuses one outside. */
	const char *cwd = options->cwd ? options->cwd
			  : named      ? NULL
				       : getcwd(folder, sizeof folder);
	int r = 0;

	if (options->command) {
		coop_jsonw_string(&arguments->w, "mode", "shell");
		r = coop_arguments_string(arguments, "command", "command", options->command, error);
	} else {
		r = put_argv(arguments, options->argv, error);
	}
	if (r == 0 && cwd)
		r = coop_arguments_string(arguments, "cwd", "cwd", cwd, error);
	if (r == 0 && options->tag)
		r = coop_arguments_string(arguments, "tag", "tag", options->tag, error);
	if (r == 0 && options->why)
		r = coop_arguments_string(arguments, "why", "why", options->why, error);
	if (r == 0 && options->session)
		r = coop_arguments_string(arguments, "session", "session", options->session, error);
	if (r == 0 && options->call_id)
		r = coop_arguments_string(arguments, "call_id", "call_id", options->call_id, error);
	if (r == 0 && options->env)
		r = put_env(arguments, options->env, error);
	return r;
}

static void put_choices(struct coop_jsonw *w, const struct coop_spawn_options *options)
{
	static const char *const inputs[] = {
		[COOP_INPUT_NONE] = "none", [COOP_INPUT_PIPE] = "pipe", [COOP_INPUT_DATA] = "data"};
	static const char *const leases[] = {[COOP_LEASE_AWAITED] = "awaited",
					     [COOP_LEASE_EPHEMERAL] = "ephemeral",
					     [COOP_LEASE_PERSISTENT] = "persistent"};

	if (options->pty) {
		coop_jsonw_string(w, "kind", "pty");
		if (options->cols)
			coop_jsonw_uint(w, "cols", options->cols);
		if (options->rows)
			coop_jsonw_uint(w, "rows", options->rows);
	} else {
		coop_jsonw_string(w, "stdin", inputs[options->input]);
		coop_jsonw_string(w, "stderr", options->merge_stderr ? "merged" : "separate");
	}
	coop_jsonw_string(w, "lease", leases[options->lease]);
	if (options->timeout_ms)
		coop_jsonw_uint(w, "timeout_ms", options->timeout_ms);
}

static int check(const struct coop_spawn_options *options, struct coop_error *error)
{
	if (!options->argv == !options->command)
		return coop_client_refuse(error, -EINVAL, "invalid_input", "argv",
					  "exactly one of argv and command is needed");
	if ((unsigned)options->input > COOP_INPUT_DATA)
		return coop_client_refuse(error, -EINVAL, "invalid_input", "stdin",
					  "no such kind of input");
	if (options->input == COOP_INPUT_DATA && options->input_size > COOP_SPAWN_STDIN_MAX)
		return coop_client_refuse(error, -EMSGSIZE, "too_large", "data",
					  "stdin takes at most 4 MiB of bytes");
	if ((unsigned)options->lease > COOP_LEASE_PERSISTENT)
		return coop_client_refuse(error, -EINVAL, "invalid_input", "lease",
					  "no such lease");
	return 0;
}

/* The id alone is looked for: nothing else of the record is needed. */
static int find_id(const char *result, char ret_id[COOP_ID_SIZE])
{
	struct coop_scan_member process = {.name = "process"}, id = {.name = "id"};

	/* Nothing is written to the text. */
	if (coop_scan_object((char *)(uintptr_t)result, strlen(result), &process, 1) < 0 ||
	    !process.value || coop_scan_object(process.value, process.size, &id, 1) < 0 ||
	    id.size < 3 || id.size - 2 >= COOP_ID_SIZE || *id.value != '"')
		return -EPROTO;
	(void)snprintf(ret_id, COOP_ID_SIZE, "%.*s", (int)id.size - 2, id.value + 1);
	return 0;
}

COOP_PUBLIC int coop_spawn(struct coop *coop, const struct coop_spawn_options *options,
			   char ret_id[COOP_ID_SIZE], struct coop_error *error)
{
	COOP_AUTO_ARGUMENTS struct coop_arguments arguments = {0};
	struct coop_reply *reply;
	struct coop_buf gathered = {0};
	bool data = options->input == COOP_INPUT_DATA;
	const void *bytes = data ? options->input_data : NULL;
	size_t size = data ? options->input_size : 0;
	int r = check(options, error);

	if (r < 0)
		return r;
	coop_arguments_begin(&arguments);
	r = put_text(&arguments, options, error);
	if (r < 0)
		return r;
	put_base_env(&arguments, coop);
	put_choices(&arguments.w, options);
	r = coop_client_put_sandbox(&arguments, options, error);
	if (r < 0)
		return r;
	/* What is stdin's alone need not be copied. */
	if (options->file_count) {
		r = coop_client_gather(options, &gathered);
		bytes = coop_buf_front(&gathered);
		size = coop_buf_size(&gathered);
	}
	r = r < 0 ? coop_client_fail(error, r, "internal", "out of memory")
		  : coop_arguments_ask(&arguments, coop, "spawn", bytes, size, &reply, error);
	coop_buf_clear(&gathered);
	if (r < 0)
		return r;
	r = find_id(coop_reply_json(reply), ret_id);
	coop_reply_free(reply);
	return r < 0 ? coop_client_fail(error, r, "protocol", "the keeper gave no id") : 0;
}
