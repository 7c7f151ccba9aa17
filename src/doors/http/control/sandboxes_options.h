/* The options of a new sandbox beyond `timeout`, `metadata` and `envs`: SDKs have many that coop
 * has nothing for. None is ignored without a word: an option is honoured, told in a warning if
 * it is honoured differently, or refused by its name. */
#ifndef COOP_HTTP_SANDBOXES_OPTIONS_H
#define COOP_HTTP_SANDBOXES_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>

#include "doors/http/net/exchange.h"

/* Looks at every member of the body; adds to the arguments of agent_add what they mean there.
 * *ret_warnings is a new array of sentences, each beginning with the option's name and a colon.
 * False: the request has been refused: 501 for what is not provided, 400 for what is wrong or
 * not known. */
bool coop_sandbox_take_options(struct coop_http_exchange *exchange, json_t *args,
			       json_t **ret_warnings);

#endif
