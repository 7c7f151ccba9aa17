/* The `start` message of a client: validated, and made into the keeper's spawn. No I/O. */
#ifndef COOP_HTTP_V1_START_MESSAGE_H
#define COOP_HTTP_V1_START_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define COOP_START_ERROR_MAX 256
#define COOP_START_ID_MAX 128

/* The arguments of spawn for a start message. NULL: *ret_error says which field is wrong; it is
 * empty without memory. */
json_t *coop_start_read(const json_t *message, char ret_error[COOP_START_ERROR_MAX]);

/* Whether a client may give this id to a process of its own. */
bool coop_start_id_valid(const char *id, size_t size);

#endif
