/* What clients say of sandboxes, checked: whatever is wrong is refused by the name of its field. */
#ifndef COOP_HTTP_SANDBOXES_ARGS_H
#define COOP_HTTP_SANDBOXES_ARGS_H

#include <jansson.h>
#include <stdbool.h>

#include "doors/http/net/exchange.h"

#define COOP_SANDBOX_ID_SIZE 21u /* "sbx-", 16 hex digits, NUL */

/* A new id. 0 or -errno. */
int coop_sandbox_new_id(char ret[COOP_SANDBOX_ID_SIZE]);

/* Whether a name is one that coop_sandbox_new_id makes. */
bool coop_sandbox_is_id(const char *name);

/* Reads the body's `timeout` into `expires_in_ms` of the arguments. Absent or null it is not set,
 * or an error where it is needed. False: the request has been refused. */
bool coop_sandbox_take_timeout(struct coop_http_exchange *exchange, bool needed, json_t *args);

/* Reads `metadata`, and `envs` as `env`, likewise. */
bool coop_sandbox_take_maps(struct coop_http_exchange *exchange, json_t *args);

/* Whether the body has nothing but a `timeout`. False: it has been refused. */
bool coop_sandbox_only_timeout(struct coop_http_exchange *exchange);

#endif
