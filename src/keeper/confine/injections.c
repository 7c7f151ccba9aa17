#include "keeper/confine/injections.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/base64.h"
#include "interface/fields.h"
#include "interface/schema.h"
#include "keeper/conf/env_rules.h"
#include "sandbox/layout/layout_path.h"

#define FIELD_SIZE 192u
#define TEXT_SIZE 400u

/* One element while it is read. */
struct element {
	struct coop_injections *all;
	size_t index;
	const json_t *value, *args;
	struct coop_injections_data *data; /* that no file before it has */
	struct coop_err *err;
};

static int refuse(const struct element *e, enum coop_code code, const char *member,
		  const char *what)
{
	char field[FIELD_SIZE];

	(void)snprintf(field, sizeof field, "file_injections[%zu]%s%.100s", e->index,
		       *member ? "." : "", member);
	return coop_err_field(e->err, code, field, "%s %s", field, what);
}

static int invalid(const struct element *e, const char *member, const char *what)
{
	return refuse(e, COOP_INVALID_INPUT, member, what);
}

/* Names what was given, too: of several files it says which one is meant. */
static int invalid_value(const struct element *e, const char *member, const char *value,
			 const char *what)
{
	char text[TEXT_SIZE];

	(void)snprintf(text, sizeof text, "%.300s %s", value, what);
	return invalid(e, member, text);
}

static int check_members(const struct element *e)
{
	const char *key;
	json_t *value;

	if (!json_is_object(e->value))
		return invalid(e, "", "must be an object");
	json_object_foreach((json_t *)(uintptr_t)e->value, key, value)
	{
		const struct coop_field *field = coop_injection_fields;
		while (field->name && strcmp(field->name, key) != 0)
			field++;
		if (!field->name)
			return invalid(e, key, "is no member of a file");
		if (json_is_null(value))
			continue;
		if (field->type == COOP_FIELD_INT && json_integer_value(value) < 0)
			return invalid(e, key, "must not be negative");
		if (field->type == COOP_FIELD_INT && !json_is_integer(value))
			return invalid(e, key, "must be an integer");
		if (field->type != COOP_FIELD_INT && !json_is_string(value))
			return invalid(e, key, "must be a string");
	}
	return 0;
}

/* A member that holds no NUL; NULL: absent, or it does. */
static const char *text_of(const struct element *e, const char *member)
{
	const json_t *value = coop_arg(e->value, member);
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static int take_name(const struct element *e, bool restricted)
{
	const char *name = text_of(e, "name");

	if (!name || !coop_env_valid_name(name) || strlen(name) > COOP_NAME_BYTES_MAX)
		return invalid(e, "name", "must be a variable's name: letters, digits and _");
	if (coop_arg(e->value, "path"))
		return invalid(e, "path", "needs placement path");
	if (restricted && coop_env_injects(name))
		return refuse(e, COOP_CAPABILITY_DENIED, "name",
			      "is a variable that makes a program load other code, which this "
			      "agent may not set");
	if (json_object_get(coop_arg(e->args, "env"), name))
		return invalid_value(e, "name", name, "is set by env, too");
	for (size_t i = 0; i < e->index; i++) {
		if (e->all->names[i] && !strcmp(e->all->names[i], name))
			return invalid_value(e, "name", name, "is given twice");
	}
	e->all->names[e->index] = name;
	return 0;
}

/* Nothing that a shell, a log or a terminal could take for something else. */
static bool plain(const char *path)
{
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;
		if (c < 0x20 || c == 0x7f || strchr("\"'`\\", c))
			return false;
	}
	return true;
}

static int take_path(const struct element *e)
{
	const char *path = text_of(e, "path");

	if (!path)
		return invalid(e, "path", "is required, without NUL");
	if (coop_arg(e->value, "name"))
		return invalid(e, "name", "needs placement env");
	if (!coop_path_normal(path) || !path[1])
		return invalid_value(e, "path", path,
				     "must be absolute, without ., .. and doubled slashes");
	if (!plain(path))
		return invalid(e, "path",
			       "must be without quotes, backslashes and control characters");
	if (coop_path_below(path, COOP_INJECTIONS_FOLDER) ||
	    coop_path_below(COOP_INJECTIONS_FOLDER, path) ||
	    coop_path_below(path, COOP_INJECTIONS_OTHER_FOLDER))
		return invalid_value(e, "path", path, "is where the files of variables lie");
	for (size_t i = 0; i < e->index; i++) {
		const char *other = e->all->paths[i];
		if (other && (coop_path_below(path, other) || coop_path_below(other, path)))
			return invalid_value(e, "path", path,
					     "is given twice, or lies in another file");
	}
	e->all->paths[e->index] = coop_mem_strdup(path);
	e->all->files[e->index].path = e->all->paths[e->index];
	return e->all->paths[e->index] ? 0 : coop_err_no_memory(e->err);
}

/* The room is taken for what the text can hold at most; the real size comes out of it. */
static int decode(const struct element *e, const json_t *text)
{
	size_t length = json_string_length(text);
	uint8_t *bytes = coop_mem_alloc(coop_base64_room(length) + 1);

	if (!bytes)
		return coop_err_no_memory(e->err);
	e->all->decoded[e->index] = bytes;
	e->all->files[e->index].bytes = bytes;
	if (coop_base64_decode(json_string_value(text), length, bytes,
			       &e->all->files[e->index].size) < 0)
		return invalid(e, "content_base64", "is not base64");
	return 0;
}

static void skip(struct coop_injections_data *data, size_t size)
{
	size = size < data->size ? size : data->size;
	/* There may be no bytes at all. */
	data->bytes = size ? data->bytes + size : data->bytes;
	data->size -= size;
}

/* Sets size and bytes; those of what is too large, or longer than the data, are never looked at. */
static int find_content(const struct element *e)
{
	const json_t *text = coop_arg(e->value, "content"),
		     *coded = coop_arg(e->value, "content_base64"),
		     *apart = coop_arg(e->value, "content_bytes");
	struct coop_injection *file = &e->all->files[e->index];

	if (!text && !coded && !apart)
		return invalid(e, "content", "is required");
	if (!!text + !!coded + !!apart > 1)
		return invalid(e, text ? "content" : "content_base64",
			       "is one of two contents; one is needed");
	if (apart) {
		file->bytes = e->data->size ? e->data->bytes : (const uint8_t *)"";
		file->size = (size_t)json_integer_value(apart);
		return 0;
	}
	/* What is too long is not even decoded. */
	if (coded && json_string_length(coded) <= coop_base64_length(COOP_INJECTION_BYTES_MAX))
		return decode(e, coded);
	file->bytes = (const uint8_t *)json_string_value(text ? text : coded);
	file->size = json_string_length(text ? text : coded);
	return 0;
}

static int take_content(const struct element *e, size_t *total)
{
	const struct coop_injection *file = &e->all->files[e->index];
	int r = find_content(e);

	if (r < 0)
		return r;
	if (file->size > COOP_INJECTION_BYTES_MAX)
		return refuse(e, COOP_TOO_LARGE, "", "is larger than 8 MiB");
	*total += file->size;
	if (*total > COOP_INJECTIONS_BYTES_MAX)
		return refuse(e, COOP_TOO_LARGE, "", "makes it more than 16 MiB in all");
	if (!coop_arg(e->value, "content_bytes"))
		return 0;
	if (file->size > e->data->size)
		return invalid(e, "content_bytes", "is more than the request brings");
	skip(e->data, file->size);
	return 0;
}

static int take(const struct element *e, bool restricted, size_t *total)
{
	int r = check_members(e);

	if (r < 0)
		return r;
	const char *placement = text_of(e, "placement");
	if (placement && !strcmp(placement, "env"))
		r = take_name(e, restricted);
	else if (placement && !strcmp(placement, "path"))
		r = take_path(e);
	else
		r = invalid(e, "placement", "must be one of env, path");
	return r < 0 ? r : take_content(e, total);
}

int coop_injections_read(const json_t *args, struct coop_injections_data data, bool restricted,
			 struct coop_injections **ret, struct coop_err *err)
{
	const json_t *list = coop_arg(args, "file_injections");
	size_t total = 0;
	int r = 0;

	if (list && !json_is_array(list))
		return coop_err_field(err, COOP_INVALID_INPUT, "file_injections",
				      "file_injections must be a list");
	if (json_array_size(list) > COOP_INJECTIONS_MAX)
		return coop_err_field(err, COOP_TOO_LARGE, "file_injections",
				      "file_injections has more than %u files",
				      COOP_INJECTIONS_MAX);
	if (!json_array_size(list)) {
		*ret = NULL;
		return 0;
	}
	struct coop_injections *all = coop_mem_zalloc(sizeof *all);
	if (!all)
		return coop_err_no_memory(err);
	for (; r == 0 && all->count < json_array_size(list); all->count++) {
		const struct element e = {all,  all->count, json_array_get(list, all->count),
					  args, &data,      err};
		r = take(&e, restricted, &total);
	}
	if (r < 0)
		coop_injections_free(all);
	else
		*ret = all;
	return r;
}

struct coop_injections_data coop_injections_rest(const json_t *args,
						 struct coop_injections_data data)
{
	const json_t *list = coop_arg(args, "file_injections"), *file;
	size_t i;

	json_array_foreach(list, i, file)
	{
		json_int_t size = json_integer_value(coop_arg(file, "content_bytes"));
		skip(&data, size > 0 ? (size_t)size : 0);
	}
	return data;
}

/* The folder is known only when confinement has been decided: variables name their files from then
 * on. */
int coop_injections_place(struct coop_injections *injections, const char *folder)
{
	for (size_t i = 0; injections && i < injections->count; i++) {
		if (!injections->names[i])
			continue;
		size_t size = strlen(folder) + strlen(injections->names[i]) + 2;
		char *path = coop_mem_alloc(size);
		if (!path)
			return -ENOMEM;
		(void)snprintf(path, size, "%s/%s", folder, injections->names[i]);
		free(injections->paths[i]);
		injections->files[i].path = injections->paths[i] = path;
	}
	return 0;
}

/* A file at a path of its own needs a view; one that a variable names does not. */
const char *coop_injections_fixed(const struct coop_injections *injections)
{
	for (size_t i = 0; injections && i < injections->count; i++) {
		if (!injections->names[i])
			return injections->paths[i];
	}
	return NULL;
}

void coop_injections_free(struct coop_injections *injections)
{
	for (size_t i = 0; injections && i < injections->count; i++) {
		free(injections->paths[i]);
		free(injections->decoded[i]);
	}
	free(injections);
}
