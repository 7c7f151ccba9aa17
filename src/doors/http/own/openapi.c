#include "doors/http/own/openapi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/http/net/exchange.h"
#include "doors/http/own/ops.h"
#include "doors/http/runtime/ask.h"
#include "doors/http/users/user.h"

static void no_memory(struct coop_http_exchange *exchange)
{
	coop_http_refuse(exchange, 500, "internal", "no memory is left for this");
}

/* What /v1/ops does not serve. */
static bool is_hidden(const char *name)
{
	return !strcmp(name, "login") || !strcmp(name, "ceiling") || !strcmp(name, "follow") ||
	       !strcmp(name, "follow_events");
}

/* Adds a property that is no argument or result of the operation itself. NULL is a failure of
 * whoever made the property. */
static int add_property(json_t *schema, const char *name, json_t *property)
{
	json_t *properties = json_object_get(schema, "properties");

	return json_object_set_new(properties, name, property);
}

static json_t *base64_schema(const char *description)
{
	return json_pack("{s:s, s:s, s:s}", "type", "string", "contentEncoding", "base64",
			 "description", description);
}

/* Output that comes with a result. */
static int add_output(json_t *result, const char *name)
{
	int r = add_property(result, "data",
			     json_pack("{s:s, s:s, s:o}", "type", "object", "description",
				       "output by stream, where there is any",
				       "additionalProperties",
				       base64_schema("bytes of that stream")));

	if (r < 0 || strcmp(name, "read") != 0)
		return r;
	return add_property(result, "chunks",
			    json_pack("{s:s, s:s, s:{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}, s:o}}}",
				      "type", "array", "description",
				      "of the stream combined: output in its order", "items",
				      "type", "object", "properties", "stream", "type", "string",
				      "offset", "type", "integer", "cursor", "type", "integer",
				      "data", base64_schema("bytes of that event")));
}

/* One more kind of value that a property may have. */
static int also_null(json_t *property)
{
	json_t *type = json_object_get(property, "type"),
	       *choices = json_object_get(property, "enum");

	for (size_t i = 0; i < json_array_size(type); i++) {
		if (!strcmp(json_string_value(json_array_get(type, i)), "null"))
			return 0;
	}
	if (json_is_string(type))
		type = json_pack("[O]", type);
	else
		json_incref(type);
	int r = json_array_append_new(type, json_string("null"));
	if (r == 0 && choices)
		r = json_array_append_new(choices, json_null());
	return r < 0 || json_object_set_new(property, "type", type) < 0 ? -1 : 0;
}

/* The keeper takes a null for an argument that is not there, unless it is needed. */
static int add_nulls(json_t *args)
{
	const json_t *required = json_object_get(args, "required");
	const char *name;
	json_t *property;

	json_object_foreach(json_object_get(args, "properties"), name, property)
	{
		bool needed = false;
		for (size_t i = 0; i < json_array_size(required); i++)
			needed |= !strcmp(json_string_value(json_array_get(required, i)), name);
		if (!needed && also_null(property) < 0)
			return -1;
	}
	return 0;
}

/* The path item of one row of the table; NULL without memory. What is put into it belongs to the
 * row, which goes with the answer. */
static json_t *make_path(json_t *row, const char *name)
{
	json_t *args = json_object_get(row, "args"), *result = json_object_get(row, "result");
	const char *summary = json_string_value(json_object_get(row, "summary"));
	const char *right = json_string_value(json_object_get(row, "right"));
	bool waits = json_is_true(json_object_get(row, "waits"));
	bool needs = json_array_size(json_object_get(args, "required")) > 0;
	char id[96], about[160];
	int r = 0;

	if (!args || !result || !summary || !right)
		return NULL;
	r = add_nulls(args);
	if (r == 0 && json_integer_value(json_object_get(row, "data")) > 0)
		r = add_property(
			args, "data_base64",
			base64_schema("the request's bytes; no argument of the operation"));
	if (r == 0 && (!strcmp(name, "read") || !strcmp(name, "wait")))
		r = add_output(result, name);
	(void)snprintf(id, sizeof id, "op_%.80s", name);
	(void)snprintf(about, sizeof about, "Needs the right `%.32s`.%s", right,
		       waits ? " The answer may take a while." : "");
	if (r < 0)
		return NULL;
	return json_pack("{s:{s:s, s:[s], s:s, s:s, s:{s:b, s:{s:{s:O}}}, "
			 "s:{s:{s:s, s:{s:{s:O}}}, s:{s:s}, s:{s:s}}}}",
			 "post", "operationId", id, "tags", "operations", "summary", summary,
			 "description", about, "requestBody", "required", needs, "content",
			 "application/json", "schema", args, "responses", "200", "description",
			 "The result.", "content", "application/json", "schema", result, "401",
			 "$ref", "#/components/responses/Unauthorized", "default", "$ref",
			 "#/components/responses/Refusal");
}

static int add_operations(json_t *document, const json_t *described)
{
	json_t *paths = json_object_get(document, "paths");
	const json_t *rows = json_object_get(described, "operations");

	for (size_t i = 0; i < json_array_size(rows); i++) {
		json_t *row = json_array_get(rows, i);
		const char *name = json_string_value(json_object_get(row, "name"));
		char path[128];
		if (!name || is_hidden(name))
			continue;
		(void)snprintf(path, sizeof path, "/v1/ops/%.100s", name);
		if (json_object_set_new(paths, path, make_path(row, name)) < 0)
			return -1;
	}
	return 0;
}

static void on_described(struct coop_ask *asked, const json_t *described)
{
	struct coop_http_exchange *exchange = asked->exchange;
	json_t *document = json_loads(coop_openapi_base, 0, NULL);
	char *text = NULL;

	if (document && add_operations(document, described) == 0 &&
	    json_object_set_new(json_object_get(document, "info"), "version",
				json_string(COOP_VERSION)) == 0)
		text = json_dumps(document, JSON_COMPACT);
	if (text)
		coop_http_answer_json(exchange, 200, text, strlen(text));
	else
		no_memory(exchange);
	free(text);
	json_decref(document);
}

static void on_failed(struct coop_ask *asked, const struct coop_error *error)
{
	coop_ops_refuse(asked->exchange, error);
}

static void ask(struct coop_http_exchange *exchange)
{
	struct coop_ask *asked = coop_ask_new(exchange, sizeof *asked);

	if (!asked)
		return;
	asked->failed = on_failed;
	coop_ask(asked, "describe", json_object(), on_described);
}

const struct coop_http_route coop_routes_openapi[] = {
	{"GET", "/openapi.json", 0, COOP_BODY_NONE, 0, ask},
	{0},
};
