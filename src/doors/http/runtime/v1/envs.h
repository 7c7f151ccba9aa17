/* Environment variables as SDKs send them: in the `start` of a process and in the `envs` of a
 * sandbox alike. No I/O. */
#ifndef COOP_HTTP_V1_ENVS_H
#define COOP_HTTP_V1_ENVS_H

#include <jansson.h>
#include <stddef.h>

/* Reads `given` (NULL: there are none) into `env`. A string is taken as it is, numbers and
 * booleans by their JSON text; the name of a null goes into `removed`, an array, or nowhere if
 * that is NULL. 0, -EINVAL with *ret_error saying what is wrong with which (`field` is its name
 * for the client), or -ENOMEM. */
int coop_envs_read(const json_t *given, const char *field, json_t *env, json_t *removed,
		   char *ret_error, size_t error_size);

#endif
