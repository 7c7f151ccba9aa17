#include "doors/mcp/subscription.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doors/mcp/tasks.h"
#include "doors/mcp/watch.h"

/* Before a change is told. */
#define JOIN_MS 20u

/* One thing: the list, a resource, a task. */
struct notice {
	struct coop_mcp_interest interest; /* first */
	struct coop_mcp_subscription *subscription;
	char *name; /* address of the resource, id of the task; NULL: the list */
	bool task;
	bool due;          /* it has changed and that has not been told */
	uint64_t again_at; /* not before */
	struct notice *next;
};

struct coop_mcp_subscription {
	struct coop_mcp *mcp;
	struct coop_mcp_session *session; /* older era */
	struct coop_mcp_request *request; /* modern era */
	uv_timer_t timer;
	struct notice *notices; /* in the order of their coming */
	unsigned count;
	bool closed; /* ended, perhaps by a message that was just sent */
};

static void on_timer(uv_timer_t *timer);

struct coop_mcp_subscription *coop_mcp_subscription_new(struct coop_mcp *mcp,
							struct coop_mcp_session *session,
							struct coop_mcp_request *request)
{
	struct coop_mcp_subscription *subscription = coop_mem_zalloc(sizeof *subscription);

	if (!subscription)
		return NULL;
	subscription->mcp = mcp;
	subscription->session = session;
	subscription->request = request;
	(void)uv_timer_init(mcp->host->loop, &subscription->timer);
	subscription->timer.data = subscription;
	return subscription;
}

static void notice_free(struct notice *notice)
{
	coop_mcp_watch_end(notice->subscription->mcp, &notice->interest);
	free(notice->name);
	free(notice);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void coop_mcp_subscription_free(struct coop_mcp_subscription *subscription)
{
	if (!subscription || subscription->closed)
		return;
	subscription->closed = true;
	while (subscription->notices) {
		struct notice *notice = subscription->notices;
		subscription->notices = notice->next;
		notice_free(notice);
	}
	uv_close((uv_handle_t *)&subscription->timer, on_closed);
}

/* Sets the timer to the next word that is due; a client that does not read is looked at again when
 * it could be told next. */
static void set_timer(struct coop_mcp_subscription *subscription, bool full)
{
	uint64_t now = uv_now(subscription->mcp->host->loop), wait = UINT64_MAX;

	for (const struct notice *notice = subscription->notices; notice; notice = notice->next) {
		if (!notice->due)
			continue;
		uint64_t left = notice->again_at > now ? notice->again_at - now : 0;
		wait = left < wait ? left : wait;
	}
	if (wait == UINT64_MAX) {
		(void)uv_timer_stop(&subscription->timer);
		return;
	}
	if (full && wait < COOP_MCP_UPDATE_MS)
		wait = COOP_MCP_UPDATE_MS;
	(void)uv_timer_start(&subscription->timer, on_timer, wait, 0);
}

static void changed(struct coop_mcp_interest *interest)
{
	struct notice *notice = (struct notice *)interest;

	if (notice->due)
		return;
	notice->due = true;
	/* What changes now often changes again at once: one word for both. */
	uint64_t soon = uv_now(notice->subscription->mcp->host->loop) + JOIN_MS;
	if (notice->again_at < soon)
		notice->again_at = soon;
	set_timer(notice->subscription, false);
}

json_t *coop_mcp_subscription_meta(const struct coop_mcp_request *request)
{
	return json_pack("{s:O}", "io.modelcontextprotocol/subscriptionId", request->id);
}

static void send_notice(const struct coop_mcp_subscription *subscription,
			struct coop_mcp_channel *channel, const struct notice *notice)
{
	const char *method = "notifications/resources/updated";
	json_t *params;

	if (notice->task) {
		method = "notifications/tasks";
		params = coop_mcp_tasks_show(subscription->mcp, notice->name);
		if (!params)
			return;
	} else if (notice->name) {
		params = json_pack("{s:s}", "uri", notice->name);
	} else {
		method = "notifications/resources/list_changed";
		params = json_object();
	}
	if (subscription->request)
		(void)json_object_set_new(params, "_meta",
					  coop_mcp_subscription_meta(subscription->request));
	coop_mcp_notify(channel, method, params);
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_mcp_subscription *subscription = timer->data;
	uint64_t now = uv_now(subscription->mcp->host->loop);
	bool full = false;

	for (struct notice *notice = subscription->notices; notice && !full;) {
		struct coop_mcp_channel *channel = subscription->request
							   ? subscription->request->channel
							   : subscription->session->channel;
		/* Nowhere to tell it: the one who brings a channel calls again. */
		if (!channel)
			return;
		full = channel->has_room && !channel->has_room(channel);
		if (!full && notice->due && notice->again_at <= now) {
			notice->due = false;
			notice->again_at = now + COOP_MCP_UPDATE_MS;
			send_notice(subscription, channel, notice);
			/* A client that turns out to have gone takes the subscription with it. */
			if (subscription->closed)
				return;
		}
		notice = notice->next;
	}
	set_timer(subscription, full);
}

void coop_mcp_subscription_room(struct coop_mcp_subscription *subscription)
{
	if (subscription && !subscription->closed)
		set_timer(subscription, false);
}

static bool is_about(const struct notice *notice, const char *name, bool task)
{
	if (notice->task != task || !notice->name != !name)
		return false;
	return !name || !strcmp(notice->name, name);
}

/* Where the notice of that name hangs, or where a new one would. */
static struct notice **find(struct coop_mcp_subscription *subscription, const char *name, bool task)
{
	struct notice **place = &subscription->notices;

	while (*place && !is_about(*place, name, task))
		place = &(*place)->next;
	return place;
}

/* Makes room by letting go what has ended and been told. */
static void forget_ended(struct coop_mcp_subscription *subscription)
{
	for (struct notice **place = &subscription->notices; *place;) {
		struct notice *notice = *place;
		if (notice->due || notice->interest.link) {
			place = &notice->next;
			continue;
		}
		*place = notice->next;
		subscription->count--;
		notice_free(notice);
	}
}

/* A new notice at the end, not yet begun. *ret is NULL if it is there already, and begun. */
static int add(struct coop_mcp_subscription *subscription, const char *name, bool task,
	       struct notice **ret)
{
	struct notice **place = find(subscription, name, task);
	struct notice *notice = *place;

	*ret = notice && !notice->interest.link ? notice : NULL;
	if (notice)
		return 0;
	if (subscription->count >= COOP_MCP_NOTICES_MAX) {
		forget_ended(subscription);
		place = find(subscription, name, task);
	}
	if (subscription->count >= COOP_MCP_NOTICES_MAX)
		return -ENOSPC;
	notice = coop_mem_zalloc(sizeof *notice);
	if (!notice || (name && !(notice->name = coop_mem_strdup(name)))) {
		free(notice);
		return -ENOMEM;
	}
	notice->interest.changed = changed;
	notice->subscription = subscription;
	notice->task = task;
	*place = notice;
	subscription->count++;
	*ret = notice;
	return 0;
}

static void take_out(struct coop_mcp_subscription *subscription, struct notice **place)
{
	struct notice *notice = *place;

	if (!notice)
		return;
	*place = notice->next;
	subscription->count--;
	notice_free(notice);
}

/* What could not be begun does not stay. */
static int begun(struct notice *notice, int status)
{
	struct coop_mcp_subscription *subscription = notice->subscription;

	if (status < 0)
		take_out(subscription, find(subscription, notice->name, notice->task));
	return status;
}

int coop_mcp_subscription_add_list(struct coop_mcp_subscription *subscription)
{
	struct notice *notice;
	int r = add(subscription, NULL, false, &notice);

	if (r < 0 || !notice)
		return r;
	return begun(notice, coop_mcp_watch_list(subscription->mcp, &notice->interest));
}

int coop_mcp_subscription_add_process(struct coop_mcp_subscription *subscription,
				      const struct coop_mcp_process_uri *uri)
{
	char name[COOP_MCP_URI_SIZE];
	struct notice *notice;

	coop_mcp_process_uri_write(uri->id, uri->output, name);
	int r = add(subscription, name, false, &notice);
	if (r < 0 || !notice)
		return r;
	notice->interest.output = uri->output;
	return begun(notice, coop_mcp_watch_process(subscription->mcp, uri->id, &notice->interest));
}

int coop_mcp_subscription_add_task(struct coop_mcp_subscription *subscription, const char *id)
{
	struct notice *notice;
	int r = add(subscription, id, true, &notice);

	if (r < 0 || !notice)
		return r;
	return begun(notice, coop_mcp_tasks_watch(subscription->mcp, id, &notice->interest));
}

void coop_mcp_subscription_remove(struct coop_mcp_subscription *subscription, const char *uri)
{
	take_out(subscription, find(subscription, uri, false));
}

struct coop_mcp_subscription *coop_mcp_subscription_of(struct coop_mcp *mcp,
						       struct coop_mcp_session *session)
{
	if (!session->subscriptions)
		session->subscriptions = coop_mcp_subscription_new(mcp, session, NULL);
	return session->subscriptions;
}

void coop_mcp_subscription_lists(struct coop_mcp *mcp, struct coop_mcp_session *session)
{
	struct coop_mcp_subscription *subscription = coop_mcp_subscription_of(mcp, session);

	/* Without memory there is no word of changes; the list itself is right. */
	if (subscription)
		(void)coop_mcp_subscription_add_list(subscription);
}
