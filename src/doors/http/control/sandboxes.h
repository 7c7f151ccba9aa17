/* The control plane: sandboxes that clients make, look at and end over HTTP (--control-plane). A
 * sandbox is an agent below the key's own, with a folder of its own; its id is the agent's name.
 * All that is known of it the keeper keeps: a gateway can be started anew at any time. */
#ifndef COOP_HTTP_SANDBOXES_H
#define COOP_HTTP_SANDBOXES_H

#include "doors/http/net/route.h"

/* Seconds. Of a sandbox for which nothing is said, and the most that may be asked for. */
#define COOP_SANDBOX_TIMEOUT 3600
#define COOP_SANDBOX_TIMEOUT_MAX 86400

/* Tokens that a sandbox has at most: when one more is made the oldest goes. */
#define COOP_SANDBOX_TOKENS_MAX 64u

extern const struct coop_http_route coop_routes_sandboxes[];

#endif
