#include "client/spawn_sandbox.h"

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "client/client.h"

/* A member of `sandbox`: its name there, which errors call "sandbox.NAME". */
static int put_text(struct coop_arguments *arguments, const char *name, const char *text,
		    struct coop_error *error)
{
	char field[64];

	if (!text)
		return 0;
	(void)snprintf(field, sizeof field, "sandbox.%s", name);
	return coop_arguments_string(arguments, name, field, text, error);
}

static int put_list(struct coop_arguments *arguments, const char *name, const char *const *list,
		    struct coop_error *error)
{
	char field[64];
	int r = 0;

	if (!list)
		return 0;
	coop_jsonw_array(&arguments->w, name);
	for (size_t i = 0; r == 0 && list[i]; i++) {
		(void)snprintf(field, sizeof field, "sandbox.%s[%zu]", name, i);
		r = coop_arguments_string(arguments, NULL, field, list[i], error);
	}
	coop_jsonw_array_end(&arguments->w);
	return r;
}

static int put_policy(struct coop_arguments *arguments, const struct coop_spawn_sandbox *sandbox,
		      struct coop_error *error)
{
	const struct {
		const char *name, *text;
	} texts[] = {
		{"profile", sandbox->profile}, {"workspace", sandbox->workspace},
		{"network", sandbox->network}, {"home", sandbox->home},
		{"root", sandbox->root},
	};
	const struct {
		const char *name;
		const char *const *list;
	} lists[] = {
		{"allow_write", sandbox->allow_write}, {"allow_read", sandbox->allow_read},
		{"deny_write", sandbox->deny_write},   {"deny_read", sandbox->deny_read},
		{"protect", sandbox->protect},         {"require", sandbox->require},
		{"tolerate", sandbox->tolerate},
	};
	int r = 0;

	coop_jsonw_begin(&arguments->w, "sandbox");
	for (size_t i = 0; r == 0 && i < sizeof texts / sizeof texts[0]; i++)
		r = put_text(arguments, texts[i].name, texts[i].text, error);
	for (size_t i = 0; r == 0 && i < sizeof lists / sizeof lists[0]; i++)
		r = put_list(arguments, lists[i].name, lists[i].list, error);
	coop_jsonw_end(&arguments->w);
	return r;
}

static void put_limits(struct coop_jsonw *w, const struct coop_spawn_limits *limits)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{"memory_bytes", limits->memory_bytes},
		{"max_pids", limits->max_pids},
		{"max_cpu_secs", limits->max_cpu_secs},
		{"max_open_files", limits->max_open_files},
		{"max_file_bytes", limits->max_file_bytes},
		{"tmp_bytes", limits->tmp_bytes},
	};
	char share[32];

	coop_jsonw_begin(w, "limits");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].value)
			coop_jsonw_uint(w, rows[i].name, rows[i].value);
	}
	if (limits->cpu_millis) {
		(void)snprintf(share, sizeof share, "%u.%03u", limits->cpu_millis / 1000,
			       limits->cpu_millis % 1000);
		coop_jsonw_raw(w, "cpu_quota", share);
	}
	coop_jsonw_end(w);
}

/* The bytes themselves travel as the request's data. */
static int put_file(struct coop_arguments *arguments, const struct coop_spawn_file *file,
		    struct coop_error *error)
{
	int r;

	if (!file->name == !file->path)
		return coop_client_refuse(error, -EINVAL, "invalid_input", "file_injections",
					  "exactly one of name and path is needed");
	if (file->size > COOP_FILE_MAX)
		return coop_client_refuse(error, -EMSGSIZE, "too_large", "file_injections",
					  "a file is larger than 8 MiB");
	coop_jsonw_begin(&arguments->w, NULL);
	coop_jsonw_string(&arguments->w, "placement", file->name ? "env" : "path");
	r = coop_arguments_string(arguments, file->name ? "name" : "path", "file_injections",
				  file->name ? file->name : file->path, error);
	coop_jsonw_uint(&arguments->w, "content_bytes", file->size);
	coop_jsonw_end(&arguments->w);
	return r;
}

static int put_files(struct coop_arguments *arguments, const struct coop_spawn_options *options,
		     struct coop_error *error)
{
	size_t total = 0;
	int r = 0;

	coop_jsonw_array(&arguments->w, "file_injections");
	for (size_t i = 0; r == 0 && i < options->file_count; i++) {
		r = put_file(arguments, &options->files[i], error);
		total += options->files[i].size;
		if (r == 0 && total > COOP_FILES_MAX)
			r = coop_client_refuse(error, -EMSGSIZE, "too_large", "file_injections",
					       "the files are more than 16 MiB in all");
	}
	coop_jsonw_array_end(&arguments->w);
	return r;
}

int coop_client_put_sandbox(struct coop_arguments *arguments,
			    const struct coop_spawn_options *options, struct coop_error *error)
{
	int r = options->sandbox ? put_policy(arguments, options->sandbox, error) : 0;

	if (r == 0 && options->limits)
		put_limits(&arguments->w, options->limits);
	if (r == 0 && options->file_count)
		r = put_files(arguments, options, error);
	return r;
}

static int append(struct coop_buf *buf, const void *bytes, size_t size)
{
	return size ? coop_buf_append(buf, bytes, size) : 0;
}

int coop_client_gather(const struct coop_spawn_options *options, struct coop_buf *ret)
{
	bool input = options->input == COOP_INPUT_DATA;
	size_t total = input ? options->input_size : 0;
	int r = 0;

	for (size_t i = 0; i < options->file_count; i++)
		total += options->files[i].size;
	if (total && !coop_buf_reserve(ret, total))
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < options->file_count; i++)
		r = append(ret, options->files[i].data, options->files[i].size);
	return r == 0 && input ? append(ret, options->input_data, options->input_size) : r;
}
