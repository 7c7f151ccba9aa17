/* The parent, which makes connections to the keeper for us: this program may open none itself. */
#ifndef COOP_HTTP_BROKER_H
#define COOP_HTTP_BROKER_H

#include <uv.h>

struct coop_broker;

/* `fd` is our end of the pair, which it owns from now on. `gone` is called when the parent has
 * left. NULL without memory. */
struct coop_broker *coop_broker_new(uv_loop_t *loop, int fd, void (*gone)(void *context),
				    void *context);
/* NULL is fine; freed in a later turn of the loop. */
void coop_broker_close(struct coop_broker *broker);

/* One connection more: `done` is called later, with a descriptor that is its own now, or -errno. It
 * cannot be taken back. 0, or -ENOMEM. */
int coop_broker_ask(struct coop_broker *broker, void (*done)(void *context, int fd), void *context);

/* "ready TEXT" */
void coop_broker_ready(struct coop_broker *broker, const char *text);

#endif
