#include "interface/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/text/signame.h"

/* Where a check is: in a field, or in an element or member of it. */
struct place {
	const struct coop_field *field;
	const json_t *list; /* of the element */
	size_t index;
	const char *key; /* of the member */
	struct coop_err *err;
};

struct name {
	char text[160];
};

/* The error needs the whole name, "argv[2]"; it is made only then. */
static struct name name_of(const struct place *at)
{
	struct name name;

	if (at->list)
		(void)snprintf(name.text, sizeof name.text, "%s[%zu]", at->field->name, at->index);
	else if (at->key)
		(void)snprintf(name.text, sizeof name.text, "%s.%.100s", at->field->name, at->key);
	else
		(void)snprintf(name.text, sizeof name.text, "%s", at->field->name);
	return name;
}

static int wrong(const struct place *at, const char *what)
{
	struct name name = name_of(at);

	return coop_err_field(at->err, COOP_INVALID_INPUT, name.text, "%s %s", name.text, what);
}

static int beyond(const struct place *at, enum coop_code code, int64_t max, const char *unit)
{
	struct name name = name_of(at);

	return coop_err_field(at->err, code, name.text, "%s has more than %lld %s", name.text,
			      (long long)max, unit);
}

void coop_schema_bounds(const struct coop_field *field, struct coop_err *err)
{
	static const char *const units[] = {
		[COOP_UNIT_NONE] = NULL,     [COOP_UNIT_BYTES] = "bytes",
		[COOP_UNIT_MS] = "ms",       [COOP_UNIT_SECONDS] = "s",
		[COOP_UNIT_CORES] = "cores", [COOP_UNIT_TIME] = "ms since 1970",
	};
	/* Thousandths of a core. */
	double scale = field->unit == COOP_UNIT_CORES ? 0.001 : 1;
	char number[32];

	(void)snprintf(number, sizeof number, "%.16g", (double)field->min * scale);
	coop_err_detail_raw(err, "minimum", number);
	(void)snprintf(number, sizeof number, "%.16g", (double)field->max * scale);
	coop_err_detail_raw(err, "maximum", number);
	if (units[field->unit])
		coop_err_detail(err, "unit", units[field->unit]);
}

static int check_text(const struct place *at, const json_t *value, int64_t max)
{
	if (!json_is_string(value))
		return wrong(at, "must be a string");
	size_t size = json_string_length(value);
	if (strlen(json_string_value(value)) != size)
		return wrong(at, "must not contain a NUL character");
	if (max && size > (uint64_t)max)
		return beyond(at, COOP_TOO_LARGE, max, "bytes");
	return 0;
}

static int choice_index(const char *const *choices, const char *text)
{
	for (int i = 0; choices[i]; i++) {
		if (!strcmp(choices[i], text))
			return i;
	}
	return -1;
}

static int check_choice(const struct place *at, const json_t *value)
{
	char list[256] = "must be one of";

	if (json_is_string(value) &&
	    choice_index(at->field->choices, json_string_value(value)) >= 0 &&
	    strlen(json_string_value(value)) == json_string_length(value))
		return 0;
	for (int i = 0; at->field->choices[i]; i++) {
		size_t used = strlen(list);
		(void)snprintf(list + used, sizeof list - used, "%s %s", i ? "," : "",
			       at->field->choices[i]);
	}
	return wrong(at, list);
}

static int check_int(const struct place *at, const json_t *value)
{
	char range[96];

	if (!json_is_integer(value))
		return wrong(at, "must be an integer");
	json_int_t n = json_integer_value(value);
	if (n >= at->field->min && n <= at->field->max)
		return 0;
	(void)snprintf(range, sizeof range, "must be between %lld and %lld",
		       (long long)at->field->min, (long long)at->field->max);
	int r = wrong(at, range);
	coop_schema_bounds(at->field, at->err);
	return r;
}

static int check_list(const struct place *at, const json_t *value)
{
	size_t count = json_array_size(value);

	if (!json_is_array(value))
		return wrong(at, "must be a list");
	if (at->field->max && count > (uint64_t)at->field->max)
		return beyond(at, COOP_TOO_LARGE, at->field->max, "elements");
	for (size_t i = 0; i < count; i++) {
		struct place inner = {at->field, .list = value, .index = i, .err = at->err};
		const json_t *item = json_array_get(value, i);
		int r = at->field->type == COOP_FIELD_ENUMS ? check_choice(&inner, item)
							    : check_text(&inner, item, 0);
		if (r < 0)
			return r;
		for (size_t j = 0; at->field->type == COOP_FIELD_ENUMS && j < i; j++) {
			if (json_equal(item, json_array_get(value, j)))
				return wrong(&inner, "is given twice");
		}
	}
	return 0;
}

static int check_map(const struct place *at, const json_t *value)
{
	const char *key;
	json_t *item;

	if (!json_is_object(value))
		return wrong(at, "must be an object");
	if (at->field->max && json_object_size(value) > (uint64_t)at->field->max)
		return beyond(at, COOP_INVALID_INPUT, at->field->max, "members");
	/* jansson's iteration takes no const; nothing is changed. */
	json_object_foreach((json_t *)(uintptr_t)value, key, item)
	{
		struct place inner = {at->field, .key = key, .err = at->err};
		if (at->field->type == COOP_FIELD_MAP) {
			int r = check_text(&inner, item, 0);
			if (r < 0)
				return r;
		} else if (choice_index(at->field->choices, key) < 0) {
			return wrong(&inner, "is not a stream");
		} else if (!json_is_integer(item) || json_integer_value(item) < 0 ||
			   json_integer_value(item) > COOP_JSON_INT_MAX) {
			return wrong(&inner, "must be an integer between 0 and 2^53-1");
		}
	}
	return 0;
}

static int check_signal(const struct place *at, const json_t *value)
{
	char digits[24];
	const char *text = json_string_value(value);

	if (json_is_integer(value)) {
		(void)snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(value));
		text = digits;
	}
	if (!text || (json_is_string(value) && strlen(text) != json_string_length(value)) ||
	    coop_signame_parse(text) < 0)
		return wrong(at, "must be a signal's name (SIGTERM, term) or number");
	return 0;
}

static int check_id(const struct place *at, const json_t *value)
{
	if (json_is_string(value))
		return check_text(at, value, at->field->max);
	if (json_is_integer(value) && json_integer_value(value) > 0)
		return 0;
	return wrong(at, "must be a pid (an integer) or an id (a string)");
}

static int check_value(const struct place *at, const json_t *value)
{
	switch (at->field->type) {
	case COOP_FIELD_STRING:
		return check_text(at, value, at->field->max);
	case COOP_FIELD_INT:
		return check_int(at, value);
	case COOP_FIELD_NUMBER:
		return json_is_number(value) ? 0 : wrong(at, "must be a number");
	case COOP_FIELD_BOOL:
		return json_is_boolean(value) ? 0 : wrong(at, "must be true or false");
	case COOP_FIELD_ENUM:
		return check_choice(at, value);
	case COOP_FIELD_ENUMS:
	case COOP_FIELD_STRINGS:
		return check_list(at, value);
	case COOP_FIELD_MAP:
	case COOP_FIELD_OFFSETS:
		return check_map(at, value);
	case COOP_FIELD_SIGNAL:
		return check_signal(at, value);
	case COOP_FIELD_ID:
		return check_id(at, value);
	case COOP_FIELD_OBJECT:
		return json_is_object(value) ? 0 : wrong(at, "must be an object");
	case COOP_FIELD_OBJECTS:
		return json_is_array(value) ? 0 : wrong(at, "must be a list");
	}
	return 0;
}

static const struct coop_field *find_field(const struct coop_field *fields, const char *name)
{
	for (; fields->name; fields++) {
		if (!strcmp(fields->name, name))
			return fields;
	}
	return NULL;
}

const struct coop_field *coop_schema_find(const struct coop_field *fields, const char *path)
{
	size_t length = strcspn(path, ".");

	for (; fields && fields->name; fields++) {
		if (!strncmp(fields->name, path, length) && !fields->name[length])
			return path[length] ? coop_schema_find(fields->fields, path + length + 1)
					    : fields;
	}
	return NULL;
}

static int check_unknown(const struct coop_field *fields, const json_t *args, struct coop_err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)args, key, value)
	{
		char name[104];
		if (find_field(fields, key))
			continue;
		(void)snprintf(name, sizeof name, "%.100s", key);
		return coop_err_field(err, COOP_INVALID_INPUT, name,
				      "there is no argument named %s", name);
	}
	return 0;
}

int coop_schema_check(const struct coop_field *fields, const json_t *args, struct coop_err *err)
{
	if (args && !json_is_object(args))
		return coop_err_field(err, COOP_INVALID_INPUT, "args", "args must be an object");
	int r = check_unknown(fields, args, err);
	if (r < 0)
		return r;
	for (const struct coop_field *field = fields; field->name; field++) {
		const json_t *value = coop_arg(args, field->name);
		struct place at = {.field = field, .err = err};
		if (!value && field->required)
			return wrong(&at, "is required");
		r = value ? check_value(&at, value) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static void write_choices(struct coop_jsonw *w, const struct coop_field *field)
{
	if (!field->choices)
		return;
	coop_jsonw_array(w, "enum");
	for (int i = 0; field->choices[i]; i++)
		coop_jsonw_string(w, NULL, field->choices[i]);
	if (field->nullable)
		coop_jsonw_null(w, NULL);
	coop_jsonw_array_end(w);
}

const char *coop_schema_type(enum coop_field_type type)
{
	static const char *const types[] = {
		[COOP_FIELD_STRING] = "string",  [COOP_FIELD_INT] = "integer",
		[COOP_FIELD_NUMBER] = "number",  [COOP_FIELD_BOOL] = "boolean",
		[COOP_FIELD_ENUM] = "string",    [COOP_FIELD_ENUMS] = "array",
		[COOP_FIELD_STRINGS] = "array",  [COOP_FIELD_MAP] = "object",
		[COOP_FIELD_OFFSETS] = "object", [COOP_FIELD_OBJECT] = "object",
		[COOP_FIELD_OBJECTS] = "array",
	};

	return types[type];
}

static void write_type(struct coop_jsonw *w, const struct coop_field *field)
{
	const char *type = coop_schema_type(field->type);

	/* Without a type here: what may be a string or an integer. */
	if (!type || field->nullable) {
		coop_jsonw_array(w, "type");
		coop_jsonw_string(w, NULL, type ? type : "string");
		if (!type)
			coop_jsonw_string(w, NULL, "integer");
		if (field->nullable)
			coop_jsonw_string(w, NULL, "null");
		coop_jsonw_array_end(w);
	} else {
		coop_jsonw_string(w, "type", type);
	}
}

static void write_members(struct coop_jsonw *w, const struct coop_field *fields);

static void write_field(struct coop_jsonw *w, const struct coop_field *field)
{
	coop_jsonw_begin(w, field->name);
	write_type(w, field);
	if (field->doc)
		coop_jsonw_string(w, "description", field->doc);
	if (field->type == COOP_FIELD_INT && (field->min || field->max)) {
		coop_jsonw_int(w, "minimum", field->min);
		coop_jsonw_int(w, "maximum", field->max);
	}
	if (field->type == COOP_FIELD_STRING && field->max)
		coop_jsonw_int(w, "maxLength", field->max);
	if (field->type == COOP_FIELD_ENUM)
		write_choices(w, field);
	if (field->type == COOP_FIELD_ENUMS || field->type == COOP_FIELD_STRINGS) {
		coop_jsonw_begin(w, "items");
		coop_jsonw_string(w, "type", "string");
		if (field->type == COOP_FIELD_ENUMS)
			write_choices(w, field);
		coop_jsonw_end(w);
	}
	if (field->type == COOP_FIELD_MAP || field->type == COOP_FIELD_OFFSETS) {
		coop_jsonw_begin(w, "additionalProperties");
		coop_jsonw_string(w, "type", field->type == COOP_FIELD_MAP ? "string" : "integer");
		coop_jsonw_end(w);
	}
	if (field->fields && field->type == COOP_FIELD_OBJECTS)
		coop_schema_write(w, "items", field->fields);
	/* Words that a null, where it may be one, is not held against. */
	if (field->fields && field->type == COOP_FIELD_OBJECT)
		write_members(w, field->fields);
	coop_jsonw_end(w);
}

static void write_members(struct coop_jsonw *w, const struct coop_field *fields)
{
	coop_jsonw_begin(w, "properties");
	for (const struct coop_field *field = fields; field->name; field++)
		write_field(w, field);
	coop_jsonw_end(w);
	coop_jsonw_array(w, "required");
	for (const struct coop_field *field = fields; field->name; field++) {
		if (field->required)
			coop_jsonw_string(w, NULL, field->name);
	}
	coop_jsonw_array_end(w);
	coop_jsonw_bool(w, "additionalProperties", false);
}

void coop_schema_write(struct coop_jsonw *w, const char *name, const struct coop_field *fields)
{
	coop_jsonw_begin(w, name);
	coop_jsonw_string(w, "type", "object");
	write_members(w, fields);
	coop_jsonw_end(w);
}

const json_t *coop_arg(const json_t *args, const char *name)
{
	const json_t *value = json_object_get(args, name);

	return json_is_null(value) ? NULL : value;
}

const char *coop_arg_string(const json_t *args, const char *name, const char *fallback)
{
	const json_t *value = coop_arg(args, name);

	return value ? json_string_value(value) : fallback;
}

int64_t coop_arg_int(const json_t *args, const char *name, int64_t fallback)
{
	const json_t *value = coop_arg(args, name);

	return value ? json_integer_value(value) : fallback;
}

bool coop_arg_bool(const json_t *args, const char *name, bool fallback)
{
	const json_t *value = coop_arg(args, name);

	return value ? json_is_true(value) : fallback;
}

int coop_arg_enum(const json_t *args, const char *name, const char *const *choices, int fallback)
{
	const json_t *value = coop_arg(args, name);

	return value ? choice_index(choices, json_string_value(value)) : fallback;
}
