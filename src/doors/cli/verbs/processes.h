/* The table of processes that ps and top show. */
#ifndef COOP_CLI_PROCESSES_H
#define COOP_CLI_PROCESSES_H

#include <jansson.h>
#include <stdio.h>

/* Prints an array of records; width, rows and newline as in table.h. */
void cli_processes_print(const json_t *records, FILE *out, size_t width, size_t rows,
			 const char *newline);

#endif
