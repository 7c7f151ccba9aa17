/* One connection to the keeper, logged in as a user. */
#ifndef COOP_HTTP_LINK_H
#define COOP_HTTP_LINK_H

#include <stdbool.h>

#include "coop.h"

struct coop_user_link;
struct coop_user;

/* Calls that one link carries at a time; the keeper takes 256. */
#define COOP_LINK_CALLS 200u

/* Asks for a connection and logs in. The user hears of it: up or down, later. NULL: it cannot even
 * be asked for. */
struct coop_user_link *coop_link_open(struct coop_user *user);
/* Ends it without a word to the user. What is open on it is not told either. */
void coop_link_close(struct coop_user_link *link);

bool coop_link_is_up(const struct coop_user_link *link);
bool coop_link_has_room(const struct coop_user_link *link);
/* As coop_submit(). */
int coop_link_submit(struct coop_user_link *link, const char *op, const char *args,
		     const void *data, size_t size, const struct coop_handler *handler,
		     uint64_t *ret_request, struct coop_error *error);
void coop_link_cancel(struct coop_user_link *link, uint64_t request);

#endif
