/* Rows of the tools' schemas, of those that operations are made of. */
#ifndef COOP_TOOLS_FIELDS_H
#define COOP_TOOLS_FIELDS_H

#include "interface/field_rows.h"
#include "interface/schema.h"

#define TOOL_MS_MAX COOP_MS_MAX

/* Arguments. */
#define IN_STRING STRING
#define IN_STRING_NEEDED(n, limit, text) STRING(n, limit, text, .required = true)
#define IN_INT INT
#define IN_BOOL BOOL
#define IN_ENUM ENUM
#define IN_STRINGS STRINGS
#define IN_SIGNAL ARG_SIGNAL
#define IN_PID                                                                              \
	{                                                                                   \
		.name = "pid", .type = COOP_FIELD_ID, .required = true, .max = COOP_ID_MAX, \
		.doc = "id or pid"                                                          \
	}

/* Results: types alone. */
#define OUT(n, t)                                 \
	{                                         \
		.name = n, .type = COOP_FIELD_##t \
	}
#define OUT_STRING(n) OUT(n, STRING)
#define OUT_STRING_NULL(n) SOMETIMES(n, STRING)
#define OUT_INT(n) OUT(n, INT)
#define OUT_INT_NULL(n) SOMETIMES(n, INT)
#define OUT_NUMBER_NULL(n) SOMETIMES(n, NUMBER)
#define OUT_BOOL(n) OUT(n, BOOL)
#define OUT_OBJECT(n) OUT(n, OBJECT)
#define OUT_STRINGS(n) OUT(n, STRINGS)

#define FIELDS_END END

#endif
