#include "doors/http/mcp/mcp_session.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "base/mem.h"
#include "doors/http/mcp/mcp_exchange.h"
#include "doors/http/net/net.h"
#include "doors/http/users/user.h"
#include "doors/mcp/mcp.h"

static bool make_id(char ret[COOP_MCP_CLIENT_ID])
{
	uint8_t random[(COOP_MCP_CLIENT_ID - 1) / 2];

	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return false;
	for (size_t i = 0; i < sizeof random; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", random[i]);
	return true;
}

static struct coop_mcp_client *client_of(struct coop_link *link)
{
	return COOP_LIST_ITEM(link, struct coop_mcp_client, link);
}

static bool is_idle(const struct coop_mcp_client *client)
{
	return !client->busy && !client->stream;
}

static struct coop_mcp_client *longest_idle(const struct coop_mcp_user *owner)
{
	struct coop_mcp_client *found = NULL;

	COOP_LIST_EACH(&owner->clients, link)
	{
		struct coop_mcp_client *client = client_of(link);
		if (is_idle(client) && (!found || client->used_at < found->used_at))
			found = client;
	}
	return found;
}

struct coop_mcp_client *coop_mcp_client_new(struct coop_mcp_user *owner)
{
	struct coop_mcp_client *victim =
		owner->client_count >= COOP_MCP_CLIENTS_MAX ? longest_idle(owner) : NULL;

	if (victim)
		coop_mcp_client_end(victim);
	if (owner->client_count >= COOP_MCP_CLIENTS_MAX)
		return NULL;
	struct coop_mcp_client *client = coop_mem_zalloc(sizeof *client);
	if (!client || !make_id(client->id)) {
		free(client);
		return NULL;
	}
	client->session.version = COOP_MCP_NONE;
	client->owner = owner;
	client->used_at = uv_now(owner->net->loop);
	coop_list_push(&owner->clients, &client->link);
	owner->client_count++;
	(void)coop_user_ref(owner->user);
	return client;
}

struct coop_mcp_client *coop_mcp_client_find(const struct coop_mcp_user *owner, const char *id)
{
	if (strlen(id) != COOP_MCP_CLIENT_ID - 1)
		return NULL;
	COOP_LIST_EACH(&owner->clients, link)
	{
		struct coop_mcp_client *client = client_of(link);
		if (CRYPTO_memcmp(client->id, id, COOP_MCP_CLIENT_ID - 1) == 0)
			return client;
	}
	return NULL;
}

void coop_mcp_client_enter(struct coop_mcp_client *client)
{
	client->busy++;
	client->used_at = uv_now(client->owner->net->loop);
}

void coop_mcp_client_leave(struct coop_mcp_client *client)
{
	client->busy--;
	client->used_at = uv_now(client->owner->net->loop);
	if (is_idle(client) && client->session.version == COOP_MCP_NONE)
		coop_mcp_client_end(client);
}

/* Out of the table, with all that it asked for. */
static void discard(struct coop_mcp_client *client)
{
	struct coop_mcp_user *owner = client->owner;
	struct coop_mcp_exchange *stream = COOP_TAKE_PTR(client->stream);

	coop_list_remove(&client->link);
	owner->client_count--;
	coop_mcp_exchanges_disown(owner, client);
	client->session.channel = NULL;
	if (stream)
		coop_mcp_exchange_end(stream);
	coop_mcp_session_clear(&owner->mcp, &client->session);
	free(client);
}

void coop_mcp_client_end(struct coop_mcp_client *client)
{
	struct coop_user *user = client->owner->user;

	discard(client);
	coop_user_unref(user);
}

void coop_mcp_clients_expire(struct coop_mcp_user *owner, uint64_t now)
{
	COOP_LIST_EACH(&owner->clients, link)
	{
		struct coop_mcp_client *client = client_of(link);
		if (is_idle(client) && now - client->used_at >= COOP_MCP_IDLE_MS)
			coop_mcp_client_end(client);
	}
}

void coop_mcp_clients_clear(struct coop_mcp_user *owner)
{
	while (!coop_list_empty(&owner->clients))
		discard(client_of(owner->clients.next));
}
