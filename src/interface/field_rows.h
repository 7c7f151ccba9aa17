/* Rows of result tables: there always; there, or null; sometimes there; an object or list of
 * objects with a table of its own. */
#ifndef COOP_INTERFACE_FIELD_ROWS_H
#define COOP_INTERFACE_FIELD_ROWS_H

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

#endif
