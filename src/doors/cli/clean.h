/* Names, arguments and messages of others, made safe to print: what a terminal takes for an order
 * to itself, or for an order to show the text differently, is shown as "?" and stays a number in
 * JSON. The output of a process is its own and is not touched. */
#ifndef COOP_CLI_CLEAN_H
#define COOP_CLI_CLEAN_H

#include <jansson.h>

/* Replaces control characters (also the second set, U+0080 to U+009F), line separators, marks that
 * change the direction of writing, and bytes that are no UTF-8, each by "?", in place. */
void cli_clean(char *text);

/* The same for every string in the value, its members and elements; names of members are the
 * keeper's own words. */
void cli_clean_json(json_t *value);

/* The value as JSON text, for the caller to free, with the same characters escaped. NULL without
 * memory. */
char *cli_clean_dump(const json_t *value, size_t flags);

#endif
