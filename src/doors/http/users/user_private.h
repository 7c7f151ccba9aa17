/* What the connection layer knows of users: finding them by their token, and their links to the
 * keeper. */
#ifndef COOP_HTTP_USER_PRIVATE_H
#define COOP_HTTP_USER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "doors/http/users/user.h"

#define COOP_USER_DIGEST 32u /* SHA-256 of the token */
#define COOP_USERS_MAX 4096u
#define COOP_USER_LINKS_MAX 32u
#define COOP_USER_IDLE_MS 60000u
/* Calls that wait for a connection to the keeper. */
#define COOP_USER_WAITING_MAX 4096u

struct coop_http_conn;
struct coop_user_link;

struct coop_callers; /* all of a gateway */

struct coop_callers *coop_users_new(struct coop_gateway *gateway);
/* Ends every link. What still waits is told "unreachable". */
void coop_users_close(struct coop_callers *users);
void coop_users_free(struct coop_callers *users);

/* Somebody who waits to hear whether a token is valid. */
struct coop_user_waiter;
typedef void coop_user_done(struct coop_http_conn *conn, struct coop_user *user, int status);

/* The user of a token. Known: `done` is called at once. New: the keeper is asked, *ret_waiter is
 * set until `done`. */
void coop_users_find(struct coop_callers *users, const char *token, struct coop_http_conn *conn,
		     coop_user_done *done, struct coop_user_waiter **ret_waiter);
/* Whether it is known without asking. */
bool coop_users_knows(const struct coop_callers *users, const char *token);
void coop_user_wait_stop(struct coop_user_waiter *waiter); /* NULL is fine */

/* Counts the connection as one of the user's, instead of the one it was before. -EMFILE: its
 * agent has as many as it may. */
int coop_user_enter(struct coop_user *user, struct coop_http_conn *conn);
void coop_user_leave(struct coop_http_conn *conn); /* without a user nothing happens */

/* The connection holds so many bytes of an unfinished body or message now. False: with those of
 * all connections of its agent that is too much. */
bool coop_user_hold(struct coop_http_conn *conn, size_t bytes);

/* What waits for the connection's client has changed. */
void coop_user_count_unread(struct coop_http_conn *conn);
/* Whether so much more may wait beside what all connections of its agent have not taken. */
bool coop_user_may_wait(const struct coop_http_conn *conn, size_t more);

/* For links. */
const char *coop_user_token(const struct coop_user *user);
struct coop_gateway *coop_user_gateway(const struct coop_user *user);
uv_loop_t *coop_user_loop(const struct coop_user *user);
/* Who the keeper says that it is. */
void coop_user_named(struct coop_user *user, const char *principal, const char *agent);
void coop_user_link_up(struct coop_user *user, struct coop_user_link *link);
/* It ended, or never came to be: code and words. */
void coop_user_link_down(struct coop_user *user, struct coop_user_link *link,
			 const struct coop_error *error);
/* Sends calls that wait, now that there may be room. */
void coop_user_pump(struct coop_user *user);

#endif
