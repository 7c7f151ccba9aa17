/* Rows of tables. */
#ifndef COOP_INTERFACE_FIELD_ROWS_H
#define COOP_INTERFACE_FIELD_ROWS_H

#include "interface/bounds.h"
#include "interface/schema.h"

/* Arguments. What follows the sentence are further members: .required = true. */
#define STRING(n, limit, text, ...)                                                          \
	{                                                                                    \
		.name = n, .type = COOP_FIELD_STRING, .max = limit, .doc = text, __VA_ARGS__ \
	}
#define INT(n, low, high, text, ...)                                                     \
	{                                                                                \
		.name = n, .type = COOP_FIELD_INT, .min = low, .max = high, .doc = text, \
		__VA_ARGS__                                                              \
	}
#define NUMBER(n, low, high, text, ...)                                                     \
	{                                                                                   \
		.name = n, .type = COOP_FIELD_NUMBER, .min = low, .max = high, .doc = text, \
		__VA_ARGS__                                                                 \
	}
#define BOOL(n, text, ...)                                                   \
	{                                                                    \
		.name = n, .type = COOP_FIELD_BOOL, .doc = text, __VA_ARGS__ \
	}
#define ENUM(n, words, text, ...)                                                              \
	{                                                                                      \
		.name = n, .type = COOP_FIELD_ENUM, .choices = words, .doc = text, __VA_ARGS__ \
	}
#define STRINGS(n, limit, text, ...)                                                          \
	{                                                                                     \
		.name = n, .type = COOP_FIELD_STRINGS, .max = limit, .doc = text, __VA_ARGS__ \
	}
#define MAP(n, limit, text, ...)                                                          \
	{                                                                                 \
		.name = n, .type = COOP_FIELD_MAP, .max = limit, .doc = text, __VA_ARGS__ \
	}
#define OBJECT(n, table, text, ...)                                                             \
	{                                                                                       \
		.name = n, .type = COOP_FIELD_OBJECT, .fields = table, .doc = text, __VA_ARGS__ \
	}
#define OBJECTS(n, table, text, ...)                                                             \
	{                                                                                        \
		.name = n, .type = COOP_FIELD_OBJECTS, .fields = table, .doc = text, __VA_ARGS__ \
	}

#define MS(n, low, high, ...) INT(n, low, high, __VA_ARGS__, .unit = COOP_UNIT_MS)
#define BYTES(n, low, high, ...) INT(n, low, high, __VA_ARGS__, .unit = COOP_UNIT_BYTES)

/* Arguments that operations and tools have alike: who shows them says what they are for. */
#define ARG_ARGV(...) STRINGS("argv", 131072, __VA_ARGS__)
#define ARG_COMMAND(...) STRING("command", 2 << 20, __VA_ARGS__)
#define ARG_SHELL(...) STRING("shell", 4096, __VA_ARGS__)
#define ARG_LOGIN(...) BOOL("login", __VA_ARGS__)
#define ARG_INTERACTIVE(...) BOOL("interactive", __VA_ARGS__)
#define ARG_CWD(...) STRING("cwd", 4096, __VA_ARGS__)
#define ARG_ENV(...) MAP("env", COOP_ENV_MAX, __VA_ARGS__)
#define ARG_ENV_REMOVE(...) STRINGS("env_remove", COOP_ENV_MAX, __VA_ARGS__)
#define ARG_COLS(...) INT("cols", 1, 65535, __VA_ARGS__)
#define ARG_ROWS(...) INT("rows", 1, 65535, __VA_ARGS__)
#define ARG_TIMEOUT(...) MS("timeout_ms", 0, COOP_MS_MAX, __VA_ARGS__)
#define ARG_GRACE(...) MS("grace_ms", 0, 30000, __VA_ARGS__)
#define ARG_READER(...) STRING("reader", COOP_READER_NAME_MAX, __VA_ARGS__)
#define ARG_SIGNAL(text, ...)                                                         \
	{                                                                             \
		.name = "signal", .type = COOP_FIELD_SIGNAL, .doc = text, __VA_ARGS__ \
	}

#define TEXT_MAX 65536
#define AGENT_MAX 1024

#define ID \
	STRING("id", COOP_ID_MAX, "id, tag, or an unambiguous beginning of an id", .required = true)
#define TIDY BOOL("tidy", "not before its placeholders are gone from the workspace")
#define AGENT(text) STRING("agent", AGENT_MAX, text, .form = "AGENT")
#define AGENT_NEEDED \
	STRING("agent", AGENT_MAX, "its path, from this agent or in full", .required = true)
#define PRINCIPAL STRING("principal", 256, "whose tree of agents; for the operator", .form = "NAME")

/* Results: there always; there, or null; sometimes there; an object or list of objects with a table
 * of its own. */
#define ALWAYS(n, t)                                                \
	{                                                           \
		.name = n, .type = COOP_FIELD_##t, .required = true \
	}
#define MAYBE_NULL(n, t)                                                              \
	{                                                                             \
		.name = n, .type = COOP_FIELD_##t, .required = true, .nullable = true \
	}
#define SOMETIMES(n, t)                                             \
	{                                                           \
		.name = n, .type = COOP_FIELD_##t, .nullable = true \
	}
#define OF(n, t, table)                                                              \
	{                                                                            \
		.name = n, .type = COOP_FIELD_##t, .required = true, .fields = table \
	}
#define END                  \
	{                    \
		.name = NULL \
	}

/* One operation, for whom COOP_RIGHT_r names; further members of its row follow. */
#define OPERATION(n, r, text, ...)                         \
	const struct coop_operation coop_operation_##n = { \
		.name = #n, .right = COOP_RIGHT_##r, .summary = text, __VA_ARGS__}
#define NOTHING ((const struct coop_field[]){END})
#define ARGS(...)                           \
	.args = (const struct coop_field[]) \
	{                                   \
		__VA_ARGS__, END            \
	}
#define RESULT(...)                           \
	.result = (const struct coop_field[]) \
	{                                     \
		__VA_ARGS__, END              \
	}

/* What a kill has proved. Pids are integers; a table has no type for a list of those, so the lists
 * are told as any. */
#define KILL_PROOF                                                                               \
	ALWAYS("success", BOOL),                                                                 \
		{.name = "signalled",                                                            \
		 .type = COOP_FIELD_OBJECTS,                                                     \
		 .required = true,                                                               \
		 .doc = "pids"},                                                                 \
		{.name = "killed", .type = COOP_FIELD_OBJECTS, .required = true, .doc = "pids"}, \
		ALWAYS("survivors", INT), ALWAYS("strays", INT), ALWAYS("ms", INT)

#endif
