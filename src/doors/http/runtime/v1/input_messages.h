/* The messages of a client to its process, and their acknowledgements. */
#ifndef COOP_HTTP_V1_INPUT_MESSAGES_H
#define COOP_HTTP_V1_INPUT_MESSAGES_H

#include <jansson.h>

#include "doors/http/runtime/inbox.h"

/* Its context is the WebSocket. */
extern const struct coop_inbox_client coop_v1_input_client;

/* One message. Types that are not known are ignored, as clients ignore ours. */
void coop_v1_input_message(struct coop_inbox *inbox, const char *type, const json_t *message);

#endif
