/* Descriptions of JSON objects as tables: what validation checks, and what `describe` tells. */
#ifndef COOP_INTERFACE_SCHEMA_H
#define COOP_INTERFACE_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json/jsonw.h"
#include "interface/bounds.h"
#include "interface/err.h"

enum coop_field_type {
	COOP_FIELD_STRING, /* no NUL inside; max: bytes */
	COOP_FIELD_INT,    /* min to max */
	COOP_FIELD_NUMBER, /* its bounds are for who reads it */
	COOP_FIELD_BOOL,
	COOP_FIELD_ENUM,    /* one of choices */
	COOP_FIELD_ENUMS,   /* a list of choices, none twice */
	COOP_FIELD_STRINGS, /* a list of strings; max: their number */
	COOP_FIELD_MAP,     /* {name: string}; max: their number */
	COOP_FIELD_OFFSETS, /* {choice: integer >= 0} */
	COOP_FIELD_SIGNAL,  /* a signal's name or number */
	COOP_FIELD_ID,      /* a number of the system's, or a name: an integer > 0 or a string */
	COOP_FIELD_OBJECT,  /* fields; NULL: any */
	COOP_FIELD_OBJECTS, /* a list of such */
};

/* What a number counts, and which texts are paths. */
enum coop_unit {
	COOP_UNIT_NONE,
	COOP_UNIT_BYTES,
	COOP_UNIT_MS,
	COOP_UNIT_SECONDS,
	COOP_UNIT_CORES, /* of processors; bounds are in thousandths */
	COOP_UNIT_TIME,  /* milliseconds since 1970 */
	COOP_UNIT_PATH,
	COOP_UNIT_PLACE, /* a path of what must be there */
};

struct coop_field {
	const char *name; /* NULL ends the table */
	enum coop_field_type type;
	enum coop_unit unit;
	bool required;
	bool nullable; /* results: may be null. In arguments null always means absent. */
	char letter;   /* on a command line; 0: it has none */
	int64_t min, max;
	const char *const *choices; /* NULL-terminated */
	const struct coop_field *fields;
	const char *doc;
	/* On a command line. NULL: --some-time for some_time_ms and some_time_bytes. */
	const char *option;
	const char *form; /* what help calls the value, where type and unit do not say */
};

/* Checks `args` (NULL: no arguments) against the table: required, type, range, and nothing unknown.
 * 0, or the error filled with the field's name. A value's content is never repeated in the message,
 * as it may be secret. */
int coop_schema_check(const struct coop_field *fields, const json_t *args, struct coop_err *err);

/* The row of "name", or of "outer.name" in the table of a row; NULL: there is none. */
const struct coop_field *coop_schema_find(const struct coop_field *fields, const char *path);

/* Adds a number's bounds and what it counts to the details. */
void coop_schema_bounds(const struct coop_field *field, struct coop_err *err);

/* "string", "integer", …; NULL for what is a string or an integer. */
const char *coop_schema_type(enum coop_field_type type);
/* Writes the table as a JSON schema. */
void coop_schema_write(struct coop_jsonw *w, const char *name, const struct coop_field *fields);

/* Values of checked arguments; the fallback where absent or null. */
const char *coop_arg_string(const json_t *args, const char *name, const char *fallback);
int64_t coop_arg_int(const json_t *args, const char *name, int64_t fallback);
bool coop_arg_bool(const json_t *args, const char *name, bool fallback);
/* The value itself, or NULL where absent or null. */
const json_t *coop_arg(const json_t *args, const char *name);
/* Index of an ENUM's value in its choices. */
int coop_arg_enum(const json_t *args, const char *name, const char *const *choices, int fallback);

#endif
