#include "doors/http/users/users.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/net.h"
#include "doors/http/users/user.h"
#include "doors/http/users/user_state.h"

/* An exchange that waits to hear whether a token is valid. */
struct coop_user_waiter {
	struct coop_link link;
	struct coop_http_exchange *exchange;
	coop_user_done *done;
};

static void on_sweep(uv_timer_t *timer);

static struct coop_user *user_of(struct coop_link *link)
{
	return COOP_LIST_ITEM(link, struct coop_user, link);
}

struct coop_callers *coop_users_new(struct coop_http_net *net, struct coop_broker *broker,
				    const struct coop_callers_options *options)
{
	struct coop_callers *users = coop_mem_zalloc(sizeof *users);

	if (!users)
		return NULL;
	users->net = net;
	users->broker = broker;
	users->options = *options;
	users->shares.max_per_agent = options->max_per_agent;
	users->shares.max_of_agents = options->max_of_agents;
	coop_list_init(&users->all);
	coop_list_init(&users->shares.all);
	(void)uv_timer_init(net->loop, &users->sweep);
	users->sweep.data = users;
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

static bool is_known(const struct coop_user *user)
{
	return user && user->agent && coop_user_is_up(user);
}

bool coop_users_knows(const struct coop_callers *users, const char *token)
{
	uint8_t digest[COOP_USER_DIGEST];

	digest_of(token, digest);
	return is_known(find(users, digest));
}

bool coop_users_keeper_gone(const struct coop_callers *users)
{
	return users->keeper_gone;
}

void coop_users_forget(struct coop_user *user)
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
	coop_users_forget(user);
	coop_list_remove(&user->link);
	coop_user_free(user);
}

static bool idle(const struct coop_user *user)
{
	return user->refs == 0 && coop_list_empty(&user->waiters);
}

static struct coop_user *longest_idle(const struct coop_callers *users)
{
	struct coop_user *found = NULL;

	COOP_LIST_EACH(&users->all, link)
	{
		struct coop_user *user = user_of(link);
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
	struct coop_user *user = coop_user_new(users, token);
	if (!user)
		return NULL;
	if (coop_map_put(&users->by_digest, key_of(digest), user) < 0) {
		coop_user_free(user);
		return NULL;
	}
	memcpy(user->digest, digest, COOP_USER_DIGEST);
	user->known = true;
	coop_list_push(&users->all, &user->link);
	users->count++;
	return user;
}

void coop_users_find(struct coop_callers *users, const char *token,
		     struct coop_http_exchange *exchange, coop_user_done *done)
{
	uint8_t digest[COOP_USER_DIGEST];

	digest_of(token, digest);
	struct coop_user *user = find(users, digest);
	if (is_known(user)) {
		done(exchange, user, 0);
		return;
	}
	struct coop_user_waiter *waiter = coop_mem_zalloc(sizeof *waiter);
	if (waiter && !user)
		user = add(users, token, digest);
	if (!waiter || !user || coop_user_want_link(user) < 0) {
		free(waiter);
		done(exchange, NULL, -EPIPE);
		return;
	}
	waiter->exchange = exchange;
	waiter->done = done;
	coop_list_push(&user->waiters, &waiter->link);
	exchange->waiter = waiter;
}

void coop_users_wait_stop(struct coop_http_exchange *exchange)
{
	if (!exchange->waiter)
		return;
	coop_list_remove(&exchange->waiter->link);
	free(exchange->waiter);
	exchange->waiter = NULL;
}

void coop_users_tell(struct coop_user *user, int status)
{
	/* One after the other: each may make others go. */
	while (!coop_list_empty(&user->waiters)) {
		struct coop_user_waiter *waiter =
			COOP_LIST_ITEM(user->waiters.next, struct coop_user_waiter, link);
		struct coop_http_exchange *exchange = waiter->exchange;
		coop_user_done *done = waiter->done;

		coop_users_wait_stop(exchange);
		done(exchange, status == 0 ? user : NULL, status);
	}
}

void coop_users_idle(struct coop_user *user)
{
	struct coop_callers *users = user->users;

	if (users->closing)
		return;
	user->idle_since = uv_now(users->net->loop);
	if (!uv_is_active((uv_handle_t *)&users->sweep))
		(void)uv_timer_start(&users->sweep, on_sweep, COOP_USER_IDLE_MS, 0);
}

static void on_sweep(uv_timer_t *timer)
{
	struct coop_callers *users = timer->data;
	uint64_t now = uv_now(users->net->loop);
	bool more = false;

	COOP_LIST_EACH(&users->all, link)
	{
		struct coop_user *user = user_of(link);
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

void coop_users_stop(struct coop_callers *users)
{
	COOP_LIST_EACH(&users->all, link)
	coop_user_stop_extras(user_of(link));
}

void coop_users_close(struct coop_callers *users)
{
	users->closing = true;
	/* Whoever still holds something of a user lets go of it now. */
	COOP_LIST_EACH(&users->all, link)
	coop_user_fail_calls(user_of(link));
	while (!coop_list_empty(&users->all))
		destroy(user_of(users->all.next));
	uv_close((uv_handle_t *)&users->sweep, NULL);
}

void coop_users_free(struct coop_callers *users)
{
	if (!users)
		return;
	coop_map_clear(&users->by_digest);
	free(users);
}

int coop_users_enter(struct coop_user *user, struct coop_http_exchange *exchange)
{
	if (exchange->conn->user != user) {
		if (!user->share || coop_http_conn_enter(exchange->conn, user, user->share) < 0)
			return -EMFILE;
		(void)coop_user_ref(user);
	}
	exchange->user = coop_user_ref(user);
	return 0;
}
