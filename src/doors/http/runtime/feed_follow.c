/* The one request to the keeper that all readers of a process live from. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "doors/http/runtime/feed_state.h"
#include "doors/http/runtime/feed_window.h"
#include "doors/http/users/detail.h"
#include "doors/http/users/user.h"

static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct coop_feed *feed = user;
	struct coop_feed_window *window = &feed->window;

	if (chunk->cursor < window->next)
		return;
	feed->retry_ms = feed->waited_ms = 0;
	if (chunk->cursor > window->next)
		coop_feed_window_lose(window, chunk->cursor, COOP_FEED_UNKNOWN);
	if (coop_feed_window_add(window, chunk) < 0) {
		/* The keeper still has it: ask again when there may be memory. */
		coop_user_drop(COOP_TAKE_PTR(feed->follow));
		coop_feed_retry(feed);
		return;
	}
	if (window->size > 2 * COOP_FEED_WINDOW)
		coop_feed_window_trim(window, COOP_FEED_WINDOW);
	coop_feed_touch(feed);
}

static uint64_t known(const json_t *value)
{
	return json_is_integer(value) ? (uint64_t)json_integer_value(value) : COOP_FEED_UNKNOWN;
}

static void on_event(void *user, uint64_t request, const char *json)
{
	struct coop_feed *feed = user;

	feed->retry_ms = feed->waited_ms = 0;
	json_t *event = json_loads(json, 0, NULL);
	const char *name = json_string_value(json_object_get(event, "event"));
	json_int_t to = json_integer_value(json_object_get(event, "to_cursor"));
	if (name && !strcmp(name, "gap") && to > 0)
		coop_feed_window_lose(&feed->window, (uint64_t)to,
				      known(json_object_get(event, "bytes_before")));
	json_decref(event);
	coop_feed_touch(feed);
}

static void end(struct coop_feed *feed, const char *json)
{
	json_t *result = json_loads(json, 0, NULL);
	uint64_t cursor = known(json_object_get(result, "cursor"));

	/* A keeper that was killed took the count with it: the next one begins anew, but for
	 * readers the exit is the last. */
	if (cursor < feed->window.next)
		cursor = feed->window.next;
	/* Without memory it is tried again. */
	if (feed->dialect->exit(&feed->exit, feed->name, COOP_FEED_TOLD,
				json_object_get(result, "process"), cursor) < 0) {
		coop_feed_retry(feed);
	} else {
		coop_feed_window_lose(&feed->window, cursor, COOP_FEED_UNKNOWN);
		coop_feed_touch(feed);
	}
	json_decref(result);
}

/* The keeper does not know the process any more. Whoever waits for its end must hear of one: a
 * socket that ends without would be opened again and again. */
static void end_unknown(struct coop_feed *feed)
{
	if (feed->dialect->exit(&feed->exit, feed->name, COOP_FEED_UNTOLD, NULL,
				feed->window.next) < 0)
		coop_feed_retry(feed);
	else
		coop_feed_touch(feed);
}

/* Its sandbox is gone, and all that ran in it. The keeper does not speak with us any more about
 * either, but that much is certain. */
static void end_removed(struct coop_feed *feed)
{
	if (feed->dialect->exit(&feed->exit, feed->name, COOP_FEED_REMOVED, NULL,
				feed->window.next) < 0)
		coop_feed_dismiss(feed, COOP_FEED_DENIED, "its sandbox was removed");
	else
		coop_feed_touch(feed);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct coop_feed *feed = user;

	feed->follow = NULL;
	if (status == 0)
		end(feed, json);
	else if (coop_detail_is(error, "reason", "agent_removed"))
		end_removed(feed);
	else if (!strcmp(error->code, "permission_denied"))
		coop_feed_dismiss(feed, COOP_FEED_DENIED, "the token is not valid any more");
	else if (!strcmp(error->code, "no_such_process"))
		end_unknown(feed);
	else
		coop_feed_retry(feed);
}

void coop_feed_follow(struct coop_feed *feed, uint64_t next, uint64_t bytes)
{
	static const struct coop_handler handlers = {
		.data = on_data, .event = on_event, .done = on_done};
	struct coop_handler handler = handlers;

	if (!feed->following || feed->window.next != next) {
		coop_feed_window_clear(&feed->window);
		coop_feed_window_init(&feed->window, feed->dialect, feed->common, next, bytes);
		coop_buf_clear(&feed->exit);
	}
	feed->following = true;
	handler.user = feed;
	feed->follow =
		coop_user_call(feed->user, "follow",
			       json_pack("{s:s,s:s,s:I,s:b,s:b}", "id", feed->id, "mode", "events",
					 "since", (json_int_t)next, "tidy", 1, "notes", 1),
			       NULL, 0, &handler);
	if (!feed->follow)
		coop_feed_retry(feed);
}
