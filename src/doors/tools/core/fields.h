/* Rows of the tools' schemas, without repeating how they are written. */
#ifndef COOP_TOOLS_FIELDS_H
#define COOP_TOOLS_FIELDS_H

#include "interface/schema.h"

#define TOOL_MS_MAX 315360000000LL /* ten years */

/* Arguments. */
#define IN_STRING(n, limit, text)                                                     \
	{                                                                             \
		.name = (n), .type = COOP_FIELD_STRING, .max = (limit), .doc = (text) \
	}
#define IN_STRING_NEEDED(n, limit, text)                                                  \
	{                                                                                 \
		.name = (n), .type = COOP_FIELD_STRING, .required = true, .max = (limit), \
		.doc = (text)                                                             \
	}
#define IN_INT(n, low, high, text)                                                              \
	{                                                                                       \
		.name = (n), .type = COOP_FIELD_INT, .min = (low), .max = (high), .doc = (text) \
	}
#define IN_BOOL(n, text)                                            \
	{                                                           \
		.name = (n), .type = COOP_FIELD_BOOL, .doc = (text) \
	}
#define IN_ENUM(n, words, text)                                                         \
	{                                                                               \
		.name = (n), .type = COOP_FIELD_ENUM, .choices = (words), .doc = (text) \
	}
#define IN_STRINGS(n, limit, text)                                                     \
	{                                                                              \
		.name = (n), .type = COOP_FIELD_STRINGS, .max = (limit), .doc = (text) \
	}
#define IN_PID                                                                      \
	{                                                                           \
		.name = "pid", .type = COOP_FIELD_ID, .required = true, .max = 512, \
		.doc = "id or pid"                                                  \
	}
#define IN_SIGNAL(text)                                                    \
	{                                                                  \
		.name = "signal", .type = COOP_FIELD_SIGNAL, .doc = (text) \
	}

/* Results: types alone. */
#define OUT_STRING(n)                                  \
	{                                              \
		.name = (n), .type = COOP_FIELD_STRING \
	}
#define OUT_STRING_NULL(n)                                               \
	{                                                                \
		.name = (n), .type = COOP_FIELD_STRING, .nullable = true \
	}
#define OUT_INT(n)                                  \
	{                                           \
		.name = (n), .type = COOP_FIELD_INT \
	}
#define OUT_INT_NULL(n)                                               \
	{                                                             \
		.name = (n), .type = COOP_FIELD_INT, .nullable = true \
	}
#define OUT_NUMBER_NULL(n)                                               \
	{                                                                \
		.name = (n), .type = COOP_FIELD_NUMBER, .nullable = true \
	}
#define OUT_BOOL(n)                                  \
	{                                            \
		.name = (n), .type = COOP_FIELD_BOOL \
	}
#define OUT_OBJECT(n)                                  \
	{                                              \
		.name = (n), .type = COOP_FIELD_OBJECT \
	}
#define OUT_STRINGS(n)                                  \
	{                                               \
		.name = (n), .type = COOP_FIELD_STRINGS \
	}

#define FIELDS_END           \
	{                    \
		.name = NULL \
	}

#endif
