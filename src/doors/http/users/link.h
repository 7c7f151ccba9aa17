/* A connection to the keeper on its way: asked for, and logged in as a user. */
#ifndef COOP_HTTP_LINK_H
#define COOP_HTTP_LINK_H

struct coop_user_link;
struct coop_user;

/* Asks for a connection and logs in. The user hears of it, up or failed, later. NULL: it cannot
 * even be asked for. */
struct coop_user_link *coop_link_open(struct coop_user *user);
/* Gives it up: the user hears nothing. */
void coop_link_close(struct coop_user_link *link);

#endif
