/* What a request's target says. Paths are split before they are decoded; in a query "+" is a space,
 * in a path it is itself. */
#ifndef COOP_HTTP_TARGET_H
#define COOP_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes %XX of [text, text+size); with `plus` also "+" to a space. A new string for the caller to
 * free; NULL with -EINVAL (a broken escape, a NUL, no UTF-8) or -ENOMEM in *ret_status. */
char *coop_target_decode(const char *text, size_t size, bool plus, int *ret_status);

/* The value of a query parameter, decoded, for the caller to free; of several the first.
 * *ret_status 0 and NULL: it is not there. */
char *coop_query_get(const char *query, const char *name, int *ret_status);

/* Goes through all parameters: takes the next one from *query, which is moved behind it, for the
 * caller to free both. 1; 0 at the end; -EINVAL (not decodable) or -ENOMEM with neither. Empty
 * parts are no parameters. */
int coop_query_next(const char **query, char **ret_name, char **ret_value);

/* A decimal integer from 0 to max. 1 if it is there, 0 if not (*ret unchanged), -EINVAL. */
int coop_query_uint(const char *query, const char *name, uint64_t max, uint64_t *ret);
/* "true" or "false"; the same results. */
int coop_query_bool(const char *query, const char *name, bool *ret);

#endif
