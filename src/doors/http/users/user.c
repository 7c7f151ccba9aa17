#include "doors/http/users/user.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "doors/http/main/gateway.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/failures.h"
#include "doors/http/net/share.h"
#include "doors/http/net/strangers.h"
#include "doors/http/users/access.h"
#include "doors/http/users/call.h"
#include "doors/http/users/link.h"
#include "doors/http/users/user_private.h"

static void on_sweep(uv_timer_t *timer);

struct coop_callers *coop_users_new(struct coop_gateway *gateway)
{
	struct coop_callers *users = coop_mem_zalloc(sizeof *users);

	if (!users)
		return NULL;
	users->gateway = gateway;
	(void)uv_timer_init(gateway->loop, &users->sweep);
	(void)uv_timer_init(gateway->loop, &users->failing);
	users->sweep.data = users->failing.data = users;
	users->failed_last = &users->failed;
	return users;
}

static void digest_of(const char *token, uint8_t ret[COOP_USER_DIGEST])
{
	unsigned size = 0;

	(void)EVP_Digest(token, strlen(token), ret, &size, EVP_sha256(), NULL);
}

static uint64_t key_of(const uint8_t digest[COOP_USER_DIGEST])
{
	uint64_t key;

	memcpy(&key, digest, sizeof key);
	return key ? key : 1;
}

static struct coop_user *find(const struct coop_callers *users, const uint8_t *digest)
{
	struct coop_user *user = coop_map_get(&users->by_digest, key_of(digest));

	return user && CRYPTO_memcmp(user->digest, digest, COOP_USER_DIGEST) == 0 ? user : NULL;
}

static bool is_up(const struct coop_user *user)
{
	for (unsigned i = 0; i < user->link_count; i++) {
		if (coop_link_is_up(user->links[i]))
			return true;
	}
	return false;
}

bool coop_users_knows(const struct coop_callers *users, const char *token)
{
	uint8_t digest[COOP_USER_DIGEST];

	digest_of(token, digest);
	const struct coop_user *user = find(users, digest);
	return user && user->agent && is_up(user);
}

/* Out of the table: the next with that token is looked at anew. */
static void forget(struct coop_user *user)
{
	struct coop_callers *users = user->users;

	if (!user->known)
		return;
	user->known = false;
	(void)coop_map_remove(&users->by_digest, key_of(user->digest));
	users->count--;
}

static void destroy(struct coop_user *user)
{
	forget(user);
	*user->link = user->next;
	if (user->next)
		user->next->link = user->link;
	for (int i = 0; i < COOP_USER_SLOT_COUNT; i++) {
		if (user->slots[i].value && user->slots[i].free_value)
			user->slots[i].free_value(user->slots[i].value);
	}
	for (unsigned i = 0; i < user->link_count; i++)
		coop_link_close(user->links[i]);
	OPENSSL_cleanse(user->token, strlen(user->token));
	free(user->token);
	free(user->agent);
	coop_share_unref(user->share);
	free(user);
}

static bool idle(const struct coop_user *user)
{
	return user->refs == 0 && !user->waiters;
}

static struct coop_user *longest_idle(const struct coop_callers *users)
{
	struct coop_user *found = NULL;

	for (struct coop_user *user = users->first; user; user = user->next) {
		if (idle(user) && (!found || user->idle_since < found->idle_since))
			found = user;
	}
	return found;
}

static struct coop_user *add(struct coop_callers *users, const char *token, const uint8_t *digest)
{
	if (users->count >= COOP_USERS_MAX) {
		struct coop_user *victim = longest_idle(users);
		if (!victim)
			return NULL;
		destroy(victim);
	}
	struct coop_user *user = coop_mem_zalloc(sizeof *user);
	char *copy = coop_mem_strdup(token);
	if (!user || !copy || coop_map_put(&users->by_digest, key_of(digest), user) < 0) {
		free(user);
		free(copy);
		return NULL;
	}
	user->users = users;
	user->token = copy;
	memcpy(user->digest, digest, COOP_USER_DIGEST);
	user->known = true;
	user->waiting_last = &user->waiting;
	user->next = users->first;
	user->link = &users->first;
	if (user->next)
		user->next->link = &user->next;
	users->first = user;
	users->count++;
	return user;
}

/* One more link, unless one is on its way or there are enough. */
static int want_link(struct coop_user *user)
{
	for (unsigned i = 0; i < user->link_count; i++) {
		if (!coop_link_is_up(user->links[i]))
			return 0;
	}
	if (user->link_count == COOP_USER_LINKS_MAX)
		return 0;
	struct coop_user_link *link = coop_link_open(user);
	if (!link)
		return -EPIPE;
	user->links[user->link_count++] = link;
	return 0;
}

void coop_users_find(struct coop_callers *users, const char *token, struct coop_http_conn *conn,
		     coop_user_done *done, struct coop_user_waiter **ret_waiter)
{
	uint8_t digest[COOP_USER_DIGEST];

	digest_of(token, digest);
	struct coop_user *user = find(users, digest);
	if (user && user->agent && is_up(user)) {
		done(conn, user, 0);
		return;
	}
	struct coop_user_waiter *waiter = coop_mem_zalloc(sizeof *waiter);
	if (waiter && !user)
		user = add(users, token, digest);
	if (!waiter || !user || want_link(user) < 0) {
		free(waiter);
		done(conn, NULL, -EPIPE);
		return;
	}
	*waiter = (struct coop_user_waiter){user->waiters, &user->waiters, conn, done};
	if (user->waiters)
		user->waiters->link = &waiter->next;
	user->waiters = waiter;
	*ret_waiter = waiter;
}

void coop_user_wait_stop(struct coop_user_waiter *waiter)
{
	if (!waiter)
		return;
	*waiter->link = waiter->next;
	if (waiter->next)
		waiter->next->link = waiter->link;
	free(waiter);
}

static void tell_waiters(struct coop_user *user, int status)
{
	/* One after the other: each may make others go. */
	while (user->waiters) {
		struct coop_user_waiter *waiter = user->waiters;
		struct coop_http_conn *conn = waiter->conn;
		coop_user_done *done = waiter->done;

		if (status == -EACCES) {
			struct coop_gateway *gateway = user->users->gateway;
			gateway->counts.auth_failures++;
			coop_failures_add(gateway->failures,
					  coop_access_place_of(conn, user->token),
					  uv_now(gateway->loop));
		}
		coop_user_wait_stop(waiter);
		done(conn, status == 0 ? user : NULL, status);
	}
}

void coop_user_link_up(struct coop_user *user, struct coop_user_link *link)
{
	(void)link;
	user->refs++; /* whoever waited may go on and end */
	tell_waiters(user, 0);
	coop_user_unref(user);
}

void coop_user_link_down(struct coop_user *user, struct coop_user_link *link,
			 const struct coop_error *error)
{
	bool refused = !coop_link_is_up(link) && strcmp(error->code, "permission_denied") == 0;
	int status = refused ? -EACCES : strcmp(error->code, "quota") == 0 ? -EDQUOT : -EPIPE;

	for (unsigned i = 0; i < user->link_count; i++) {
		if (user->links[i] == link) {
			user->links[i] = user->links[--user->link_count];
			break;
		}
	}
	if (refused)
		forget(user);
	user->refs++;
	if (refused || !is_up(user)) {
		if (!coop_link_is_up(link) || refused)
			tell_waiters(user, status);
		coop_user_fail_waiting(user, error);
	}
	coop_user_unref(user);
}

struct coop_user *coop_user_ref(struct coop_user *user)
{
	user->refs++;
	return user;
}

void coop_user_unref(struct coop_user *user)
{
	if (!user || --user->refs || user->users->closing)
		return;
	user->idle_since = uv_now(user->users->gateway->loop);
	if (!uv_is_active((uv_handle_t *)&user->users->sweep))
		(void)uv_timer_start(&user->users->sweep, on_sweep, COOP_USER_IDLE_MS, 0);
}

static void on_sweep(uv_timer_t *timer)
{
	struct coop_callers *users = timer->data;
	uint64_t now = uv_now(users->gateway->loop);
	bool more = false;

	for (struct coop_user *user = users->first, *next; user; user = next) {
		next = user->next;
		if (!idle(user))
			continue;
		if (!user->known || now - user->idle_since >= COOP_USER_IDLE_MS)
			destroy(user);
		else
			more = true;
	}
	if (more)
		(void)uv_timer_start(&users->sweep, on_sweep, COOP_USER_IDLE_MS / 2, 0);
}

void coop_users_close(struct coop_callers *users)
{
	users->closing = true;
	/* Whoever still holds something of a user lets go of it now. */
	for (struct coop_user *user = users->first; user; user = user->next)
		coop_user_fail_calls(user);
	while (users->first)
		destroy(users->first);
	uv_close((uv_handle_t *)&users->sweep, NULL);
	uv_close((uv_handle_t *)&users->failing, NULL);
}

void coop_users_free(struct coop_callers *users)
{
	if (!users)
		return;
	coop_map_clear(&users->by_digest);
	free(users);
}

int coop_user_enter(struct coop_user *user, struct coop_http_conn *conn)
{
	if (conn->user == user)
		return 0;
	if (!user->share ||
	    !coop_share_enter(&user->users->shares, user->share, &user->users->gateway->options))
		return -EMFILE;
	coop_user_leave(conn);
	conn->user = coop_user_ref(user);
	coop_user_count_unread(conn);
	coop_strangers_remove(conn);
	return 0;
}

bool coop_user_hold(struct coop_http_conn *conn, size_t bytes)
{
	struct coop_agent_share *share = conn->user ? conn->user->share : NULL;

	if (!share)
		return true;
	share->held = share->held - conn->held + bytes;
	conn->held = bytes;
	return share->held <= COOP_SHARE_HELD_MAX &&
	       (!bytes || share->held + share->input <= COOP_SHARE_TAKEN_MAX);
}

void coop_user_count_unread(struct coop_http_conn *conn)
{
	/* What WebSockets send is bounded by their windows, and many of them share one copy of
	 * it. */
	size_t bytes = conn->ws ? 0 : conn->out.bytes;

	if (!conn->user)
		return;
	conn->user->share->unread += bytes - conn->unread;
	conn->unread = bytes;
}

bool coop_user_may_wait(const struct coop_http_conn *conn, size_t more)
{
	return !conn->user || conn->user->share->unread + more <= COOP_SHARE_UNREAD_MAX;
}

/* Who sends input has a connection, and with that a share. */
size_t coop_user_input(const struct coop_user *user)
{
	return user->share->input;
}

void coop_user_input_more(struct coop_user *user, size_t bytes)
{
	user->share->input += bytes;
}

void coop_user_input_less(struct coop_user *user, size_t bytes)
{
	user->share->input -= bytes;
}

void coop_user_leave(struct coop_http_conn *conn)
{
	struct coop_user *user = conn->user;

	if (!user)
		return;
	(void)coop_user_hold(conn, 0);
	user->share->unread -= conn->unread;
	conn->unread = 0;
	conn->user = NULL;
	coop_share_leave(&user->users->shares, user->share);
	coop_user_unref(user);
}

const char *coop_user_agent(const struct coop_user *user)
{
	return user->agent ? user->agent : "";
}

bool coop_user_is_own(const struct coop_user *user)
{
	return user->share && user->share->own;
}

const char *coop_user_token(const struct coop_user *user)
{
	return user->token;
}

struct coop_gateway *coop_user_gateway(const struct coop_user *user)
{
	return user->users->gateway;
}

uv_loop_t *coop_user_loop(const struct coop_user *user)
{
	return user->users->gateway->loop;
}

void coop_user_named(struct coop_user *user, const char *principal, const char *agent)
{
	if (user->agent)
		return;
	user->share =
		coop_share_of(&user->users->shares, principal ? principal : "", agent ? agent : "");
	user->agent = user->share ? coop_mem_strdup(agent ? agent : "") : NULL;
}

void *coop_user_get(const struct coop_user *user, enum coop_user_slot slot)
{
	return user->slots[slot].value;
}

void coop_user_set(struct coop_user *user, enum coop_user_slot slot, void *value,
		   void (*free_value)(void *value))
{
	user->slots[slot].value = value;
	user->slots[slot].free_value = free_value;
}

int coop_user_want_link(struct coop_user *user)
{
	return want_link(user);
}
