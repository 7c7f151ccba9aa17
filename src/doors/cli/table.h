/* Tables for people: columns as wide as needed, the last one cut to the terminal. */
#ifndef COOP_CLI_TABLE_H
#define COOP_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define CLI_TABLE_COLUMNS 10

struct cli_column {
	const char *title;
	bool right;  /* numbers */
	size_t most; /* cells are cut to this many characters; 0: never */
};

struct cli_table;

/* `columns` must outlive the table; at most CLI_TABLE_COLUMNS. NULL without memory. */
struct cli_table *cli_table_new(const struct cli_column *columns, size_t count);
void cli_table_free(struct cli_table *table);

/* One row; the texts are copied, control characters become "?". 0 or -ENOMEM. */
int cli_table_add(struct cli_table *table, const char *const cells[]);

/* Prints title and rows. Lines are cut to `width` characters and the rows to `rows`; 0: not at all.
 * `newline` ends a line. */
void cli_table_print(const struct cli_table *table, FILE *out, size_t width, size_t rows,
		     const char *newline);

#endif
