/* The arguments of every operation, through the keeper's own table: the first byte chooses the row,
 * the rest is a frame's `args`. What validation lets through is checked against the row once more,
 * field by field, in the plainest way. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/jsonclamp.h"
#include "base/text/signame.h"
#include "keeper/ops/ops.h"

/* As the keeper does: numbers that are too large for the parser get a second try. */
static json_t *parse(const char *text, size_t size)
{
	const size_t flags = JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
	json_error_t fault;
	json_t *value = json_loadb(text, size, flags, &fault);

	if (value || json_error_code(&fault) != json_error_numeric_overflow)
		return value;
	char *copy = malloc(size);
	if (!copy)
		abort();
	memcpy(copy, text, size);
	coop_jsonclamp(copy, size);
	value = json_loadb(copy, size, flags, &fault);
	/* Something else may be wrong with it, but no number is. */
	if (!value && json_error_code(&fault) == json_error_numeric_overflow)
		abort();
	free(copy);
	return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static const struct coop_op *choose(uint8_t byte)
{
	size_t count = 0;

	while (coop_ops_row(count))
		count++;
	return coop_ops_row(byte % count);
}

static bool is_choice(const struct coop_field *field, const char *text)
{
	for (const char *const *choice = field->choices; *choice; choice++) {
		if (!strcmp(*choice, text))
			return true;
	}
	return false;
}

static bool is_text(const json_t *value)
{
	return json_is_string(value) &&
	       strlen(json_string_value(value)) == json_string_length(value);
}

static void check_list(const struct coop_field *field, const json_t *value)
{
	size_t i;
	json_t *item;

	assert(json_is_array(value));
	assert(!field->max || json_array_size(value) <= (size_t)field->max);
	json_array_foreach(value, i, item)
	{
		assert(is_text(item));
		assert(field->type != COOP_FIELD_ENUMS ||
		       is_choice(field, json_string_value(item)));
	}
}

static void check_map(const struct coop_field *field, json_t *value)
{
	const char *key;
	json_t *item;

	assert(json_is_object(value));
	json_object_foreach(value, key, item)
	{
		if (field->type == COOP_FIELD_MAP)
			assert(is_text(item));
		else
			assert(is_choice(field, key) && json_integer_value(item) >= 0);
	}
}

static void check_field(const struct coop_field *field, json_t *value)
{
	switch (field->type) {
	case COOP_FIELD_STRING:
		assert(is_text(value));
		assert(!field->max || json_string_length(value) <= (size_t)field->max);
		break;
	case COOP_FIELD_INT:
		assert(json_is_integer(value));
		assert(json_integer_value(value) >= field->min &&
		       json_integer_value(value) <= field->max);
		break;
	case COOP_FIELD_NUMBER:
		assert(json_is_number(value));
		break;
	case COOP_FIELD_BOOL:
		assert(json_is_boolean(value));
		break;
	case COOP_FIELD_ENUM:
		assert(is_text(value) && is_choice(field, json_string_value(value)));
		break;
	case COOP_FIELD_ENUMS:
	case COOP_FIELD_STRINGS:
		check_list(field, value);
		break;
	case COOP_FIELD_MAP:
	case COOP_FIELD_OFFSETS:
		check_map(field, value);
		break;
	case COOP_FIELD_SIGNAL:
		assert(json_is_integer(value) || coop_signame_parse(json_string_value(value)) > 0);
		break;
	case COOP_FIELD_ID:
		assert(json_is_integer(value) || is_text(value));
		break;
	case COOP_FIELD_OBJECT:
		assert(json_is_object(value));
		break;
	case COOP_FIELD_OBJECTS:
		assert(json_is_array(value));
		break;
	}
}

static void check_accepted(const struct coop_op *op, const json_t *args)
{
	size_t known = 0;

	for (const struct coop_field *field = op->row->args; field->name; field++) {
		json_t *value = json_object_get(args, field->name);
		known += value != NULL;
		assert(!field->required || (value && !json_is_null(value)));
		if (value && !json_is_null(value))
			check_field(field, value);
	}
	assert(known == json_object_size(args));
}

static void check_refused(const struct coop_err *err)
{
	assert(err->code == COOP_INVALID_INPUT || err->code == COOP_TOO_LARGE);
	assert(err->message[0] && memchr(err->message, 0, sizeof err->message));
	assert(strstr(err->details, "\"field\":\""));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	if (size < 2)
		return 0;
	const struct coop_op *op = choose(input[0]);
	json_t *args = parse((const char *)input + 1, size - 1);
	if (!args)
		return 0;
	struct coop_err err = {0};
	if (coop_schema_check(op->row->args, args, &err) < 0)
		check_refused(&err);
	else
		check_accepted(op, args);
	json_decref(args);
	return 0;
}
