#include "doors/cli/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "doors/cli/clean.h"

struct cli_table {
	const struct cli_column *columns;
	size_t column_count;
	char **cells; /* row after row */
	size_t cell_count;
};

struct cli_table *cli_table_new(const struct cli_column *columns, size_t count)
{
	if (count == 0 || count > CLI_TABLE_COLUMNS)
		return NULL;
	struct cli_table *table = calloc(1, sizeof(*table));
	if (table) {
		table->columns = columns;
		table->column_count = count;
	}
	return table;
}

void cli_table_free(struct cli_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->cell_count; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table);
}

/* Characters, not bytes: continuation bytes of UTF-8 take no room. Wide characters are counted as
 * one; a cut line may then be longer than the terminal, which is no harm. */
static size_t text_width(const char *text)
{
	size_t width = 0;
	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

/* Bytes of the first `width` characters. */
static size_t cut_bytes(const char *text, size_t width)
{
	size_t bytes = 0;
	for (; text[bytes]; bytes++)
		if (((unsigned char)text[bytes] & 0xc0) != 0x80 && width-- == 0)
			break;
	return bytes;
}

static char *copy_cell(const struct cli_column *column, const char *text)
{
	char *copy = strdup(text);
	if (!copy)
		return NULL;
	cli_clean(copy);
	if (column->most)
		copy[cut_bytes(copy, column->most)] = '\0';
	return copy;
}

int cli_table_add(struct cli_table *table, const char *const cells[])
{
	char **grown =
		reallocarray(table->cells, table->cell_count + table->column_count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	table->cells = grown;
	for (size_t i = 0; i < table->column_count; i++) {
		char *copy = copy_cell(&table->columns[i], cells[i]);
		if (!copy)
			return -ENOMEM;
		table->cells[table->cell_count++] = copy;
	}
	return 0;
}

/* Prints one cell and gives how many characters of the line are used now. */
static size_t print_cell(FILE *out, const struct cli_column *column, const char *text,
			 size_t column_width, size_t used, size_t width, bool last)
{
	const size_t room = width == 0 ? (size_t)-1 : used < width ? width - used : 0;
	size_t own = text_width(text);
	const size_t pad = own < column_width ? column_width - own : 0;
	if (column->right && pad && pad <= room)
		(void)fprintf(out, "%*s", (int)pad, "");
	if (own > room)
		own = room;
	(void)fwrite(text, 1, cut_bytes(text, own), out);
	if (!last && !column->right && pad && own + pad <= room)
		(void)fprintf(out, "%*s", (int)pad, "");
	const size_t total = used + own + pad;
	if (!last && (width == 0 || total + 2 < width))
		(void)fputs("  ", out);
	return total + 2;
}

static void print_row(const struct cli_table *table, FILE *out, const char *const *cells,
		      const size_t *widths, size_t width, const char *newline)
{
	size_t used = 0;
	for (size_t i = 0; i < table->column_count; i++)
		used = print_cell(out, &table->columns[i], cells[i], widths[i], used, width,
				  i + 1 == table->column_count);
	(void)fputs(newline, out);
}

void cli_table_print(const struct cli_table *table, FILE *out, size_t width, size_t rows,
		     const char *newline)
{
	const size_t columns = table->column_count;
	if (columns == 0)
		return;
	size_t widths[CLI_TABLE_COLUMNS] = {0};
	const char *titles[CLI_TABLE_COLUMNS] = {0};
	for (size_t i = 0; i < columns; i++) {
		titles[i] = table->columns[i].title;
		widths[i] = text_width(titles[i]);
	}
	for (size_t i = 0; i < table->cell_count; i++)
		if (text_width(table->cells[i]) > widths[i % columns])
			widths[i % columns] = text_width(table->cells[i]);

	print_row(table, out, titles, widths, width, newline);
	for (size_t i = 0; i * columns < table->cell_count && (rows == 0 || i < rows); i++)
		print_row(table, out, (const char *const *)table->cells + i * columns, widths,
			  width, newline);
}
