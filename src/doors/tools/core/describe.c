#include "doors/tools/core/describe.h"

#include <stddef.h>

#include "doors/tools/core/fields.h"
#include "interface/schema.h"

/* What may be null says no type: the list of both would cost more than it tells. */
static void write_type(struct coop_jsonw *w, const struct coop_field *field)
{
	const char *type = coop_schema_type(field->type);

	if (field->nullable)
		return;
	/* A number is taken as well, but a list of types is refused by some models' hosts, and a
	 * number may be written as a string. */
	coop_jsonw_string(w, "type", type ? type : "string");
}

static void write_object(struct coop_jsonw *w, const char *name, const struct coop_field *fields,
			 bool closed);

static void write_field(struct coop_jsonw *w, const struct coop_field *field, bool closed)
{
	coop_jsonw_begin(w, field->name);
	write_type(w, field);
	if (field->doc)
		coop_jsonw_string(w, "description", field->doc);
	if (field->type == COOP_FIELD_INT && closed) {
		coop_jsonw_int(w, "minimum", field->min);
		if (field->max < TOOL_MS_MAX)
			coop_jsonw_int(w, "maximum", field->max);
	}
	if (field->type == COOP_FIELD_ENUM && field->choices) {
		coop_jsonw_array(w, "enum");
		for (int i = 0; field->choices[i]; i++)
			coop_jsonw_string(w, NULL, field->choices[i]);
		coop_jsonw_array_end(w);
	}
	if (field->type == COOP_FIELD_STRINGS) {
		coop_jsonw_begin(w, "items");
		/* Of results: an absent capture is null. */
		if (closed)
			coop_jsonw_string(w, "type", "string");
		coop_jsonw_end(w);
	}
	/* A list without a word on its elements is refused by some clients. */
	if (field->type == COOP_FIELD_OBJECTS && !field->fields) {
		coop_jsonw_begin(w, "items");
		if (closed)
			coop_jsonw_string(w, "type", "object");
		coop_jsonw_end(w);
	}
	if (field->fields && field->type == COOP_FIELD_OBJECTS)
		write_object(w, "items", field->fields, closed);
	if (field->type == COOP_FIELD_OBJECT && field->fields && closed) {
		/* The members stand in this very object. */
		coop_jsonw_begin(w, "properties");
		for (const struct coop_field *inner = field->fields; inner->name; inner++)
			write_field(w, inner, closed);
		coop_jsonw_end(w);
	}
	coop_jsonw_end(w);
}

static void write_object(struct coop_jsonw *w, const char *name, const struct coop_field *fields,
			 bool closed)
{
	bool any = false;

	coop_jsonw_begin(w, name);
	coop_jsonw_string(w, "type", "object");
	coop_jsonw_begin(w, "properties");
	for (const struct coop_field *field = fields; field->name; field++) {
		write_field(w, field, closed);
		any = any || field->required;
	}
	coop_jsonw_end(w);
	if (any && closed) {
		coop_jsonw_array(w, "required");
		for (const struct coop_field *field = fields; field->name; field++)
			if (field->required)
				coop_jsonw_string(w, NULL, field->name);
		coop_jsonw_array_end(w);
	}
	coop_jsonw_end(w);
}

static void write_annotations(struct coop_jsonw *w, enum coop_tool_kind kind)
{
	static const struct {
		bool read_only, destructive, idempotent, open_world;
	} kinds[] = {
		[COOP_TOOL_LOOK] = {true, false, true, false},
		[COOP_TOOL_MOVE] = {true, false, false, false},
		[COOP_TOOL_START] = {false, true, false, true},
		[COOP_TOOL_ADJUST] = {false, false, true, false},
		[COOP_TOOL_END] = {false, true, true, false},
	};

	coop_jsonw_begin(w, "annotations");
	coop_jsonw_bool(w, "readOnlyHint", kinds[kind].read_only);
	coop_jsonw_bool(w, "destructiveHint", kinds[kind].destructive);
	coop_jsonw_bool(w, "idempotentHint", kinds[kind].idempotent);
	coop_jsonw_bool(w, "openWorldHint", kinds[kind].open_world);
	coop_jsonw_end(w);
}

void coop_tool_describe(struct coop_jsonw *w, const struct coop_tool *tool, unsigned sets)
{
	const struct coop_tool *form = sets == COOP_TOOLS_HARN && tool->harn ? tool->harn : tool;

	coop_jsonw_begin(w, NULL);
	coop_jsonw_string(w, "name", tool->name);
	coop_jsonw_string(w, "title", tool->title);
	coop_jsonw_string(w, "description", tool->description);
	write_object(w, "inputSchema", form->input, true);
	write_object(w, "outputSchema", form->output, false);
	write_annotations(w, tool->kind);
	coop_jsonw_end(w);
}
