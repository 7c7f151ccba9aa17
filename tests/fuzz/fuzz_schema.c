/* The validation of arguments, over a table that has every type of field: arguments it lets through
 * are what the table says, and those it refuses come with a code and the name of a field. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "interface/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static const char *const choices[] = {"stdout", "stderr", "pty", NULL};

static const struct coop_field table[] = {
	{.name = "id", .type = COOP_FIELD_STRING, .required = true, .max = 16},
	{.name = "free", .type = COOP_FIELD_STRING},
	{.name = "int", .type = COOP_FIELD_INT, .min = -1, .max = 30000},
	{.name = "number", .type = COOP_FIELD_NUMBER},
	{.name = "bool", .type = COOP_FIELD_BOOL},
	{.name = "enum", .type = COOP_FIELD_ENUM, .choices = choices},
	{.name = "enums", .type = COOP_FIELD_ENUMS, .choices = choices},
	{.name = "strings", .type = COOP_FIELD_STRINGS, .max = 4},
	{.name = "map", .type = COOP_FIELD_MAP, .max = 3},
	{.name = "offsets", .type = COOP_FIELD_OFFSETS, .choices = choices},
	{.name = "signal", .type = COOP_FIELD_SIGNAL},
	{.name = "object", .type = COOP_FIELD_OBJECT},
	{.name = "objects", .type = COOP_FIELD_OBJECTS},
	{0},
};

static void check_refused(const struct coop_err *err)
{
	assert(err->code == COOP_INVALID_INPUT || err->code == COOP_TOO_LARGE);
	assert(err->message[0] && memchr(err->message, 0, sizeof err->message));
	assert(memchr(err->details, 0, sizeof err->details));

	/* The details are the inside of an object, whatever the client called its fields. */
	char object[sizeof err->details + 2];
	object[0] = '{';
	strcpy(object + 1, err->details);
	strcat(object, "}");
	json_t *details = json_loads(object, 0, NULL);
	assert(details && json_is_string(json_object_get(details, "field")));
	json_decref(details);
}

static void check_list(const json_t *list, size_t max, bool chosen)
{
	size_t i;
	json_t *item;

	assert(json_array_size(list) <= max);
	json_array_foreach(list, i, item)
	{
		assert(json_is_string(item));
		assert(strlen(json_string_value(item)) == json_string_length(item));
		assert(!chosen || strstr("stdout stderr pty", json_string_value(item)));
	}
}

/* Reads everything the way the keeper's operations do: nothing here may meet a surprise. */
static void check_accepted(const json_t *args)
{
	const char *id = coop_arg_string(args, "id", NULL);
	assert(id && strlen(id) <= 16);
	(void)strlen(coop_arg_string(args, "free", ""));
	int64_t number = coop_arg_int(args, "int", 0);
	assert(number >= -1 && number <= 30000);
	(void)coop_arg_bool(args, "bool", false);
	int choice = coop_arg_enum(args, "enum", choices, 0);
	assert(choice >= 0 && choice < 3);
	check_list(coop_arg(args, "enums"), 3, true);
	check_list(coop_arg(args, "strings"), 4, false);
	assert(json_object_size(coop_arg(args, "map")) <= 3);
	assert(json_object_size(coop_arg(args, "offsets")) <= 3);
	assert(!coop_arg(args, "object") || json_is_object(coop_arg(args, "object")));
	assert(!coop_arg(args, "objects") || json_is_array(coop_arg(args, "objects")));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	/* As the keeper reads a frame; a NUL in a string is the schema's business. */
	json_t *args =
		json_loadb((const char *)input, size, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
	if (!args)
		return 0;
	struct coop_err err = {0};
	if (coop_schema_check(table, args, &err) < 0)
		check_refused(&err);
	else
		check_accepted(args);
	json_decref(args);
	return 0;
}
