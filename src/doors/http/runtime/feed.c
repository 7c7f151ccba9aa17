#include "doors/http/runtime/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/later.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "doors/http/net/net.h"
#include "doors/http/runtime/feed_state.h"
#include "doors/http/runtime/feed_window.h"
#include "doors/http/users/user.h"

/* The keeper may be restarted: that long it is looked for. Clients come back by themselves after
 * that. */
#define RETRY_FIRST_MS 100u
#define RETRY_MOST_MS 2000u
#define RETRY_TOTAL_MS 15000u

static void on_due(struct coop_later *item);

static uint64_t hash_of(const char *id)
{
	uint64_t hash = 1469598103934665603ull;

	for (; *id; id++)
		hash = (hash ^ (uint8_t)*id) * 1099511628211ull;
	return hash ? hash : 1;
}

/* The user is gone, and with it all that could have had a feed. */
static void release_feeds(struct coop_user_extra *extra)
{
	struct coop_feeds *feeds = (struct coop_feeds *)extra;

	coop_map_clear(&feeds->by_id);
	free(feeds);
}

static const struct coop_user_kind feeds_kind = {.release = release_feeds};

static struct coop_feeds *feeds_of(struct coop_user *user)
{
	struct coop_feeds *feeds = (struct coop_feeds *)coop_user_extra(user, &feeds_kind);

	if (feeds)
		return feeds;
	feeds = coop_mem_zalloc(sizeof *feeds);
	if (!feeds)
		return NULL;
	feeds->net = coop_user_net(user);
	coop_user_hang(user, &feeds_kind, &feeds->extra);
	return feeds;
}

static int put_in_map(struct coop_feed *feed)
{
	uint64_t hash = hash_of(feed->id);

	feed->same_hash = coop_map_get(&feed->feeds->by_id, hash);
	return coop_map_put(&feed->feeds->by_id, hash, feed);
}

static void take_out_of_map(struct coop_feed *feed)
{
	struct coop_map *map = &feed->feeds->by_id;
	uint64_t hash = hash_of(feed->id);
	struct coop_feed *at = coop_map_get(map, hash);

	if (at != feed) {
		while (at && at->same_hash != feed)
			at = at->same_hash;
		if (at)
			at->same_hash = feed->same_hash;
	} else if (!feed->same_hash) {
		(void)coop_map_remove(map, hash);
	} else {
		(void)coop_map_put(map, hash, feed->same_hash); /* the slot is there */
	}
}

static void free_feed(struct coop_feed *feed)
{
	coop_feed_window_clear(&feed->window);
	coop_buf_clear(&feed->exit);
	free(feed->id);
	free(feed->name);
	free(feed->common);
	free(feed);
}

static struct coop_feed *make_feed(struct coop_feeds *feeds, struct coop_user *user,
				   const struct coop_feed_dialect *dialect, const char *id,
				   const char *name)
{
	struct coop_feed *feed = coop_mem_zalloc(sizeof *feed);

	if (!feed)
		return NULL;
	feed->feeds = feeds;
	coop_list_init(&feed->readers);
	coop_list_init(&feed->turns);
	feed->dialect = dialect;
	feed->id = coop_mem_strdup(id);
	feed->name = coop_mem_strdup(name);
	feed->common = dialect->common(name);
	if (!feed->id || !feed->name || !feed->common || put_in_map(feed) < 0) {
		free_feed(feed);
		return NULL;
	}
	coop_feed_window_init(&feed->window, dialect, feed->common, 0, 0);
	feed->user = coop_user_ref(user);
	(void)uv_timer_init(feeds->net->loop, &feed->retry);
	feed->retry.data = feed;
	feed->due.run = on_due;
	feeds->net->counts.feeds++;
	return feed;
}

struct coop_feed *coop_feed_get(struct coop_user *user, const struct coop_feed_dialect *dialect,
				const char *id, const char *name)
{
	struct coop_feeds *feeds = feeds_of(user);

	if (!feeds)
		return NULL;
	struct coop_feed *feed = coop_map_get(&feeds->by_id, hash_of(id));
	while (feed && (feed->dialect != dialect || strcmp(feed->id, id) != 0))
		feed = feed->same_hash;
	if (!feed)
		feed = make_feed(feeds, user, dialect, id, name);
	return feed ? coop_feed_ref(feed) : NULL;
}

struct coop_feed *coop_feed_ref(struct coop_feed *feed)
{
	feed->refs++;
	return feed;
}

static void on_feed_closed(uv_handle_t *handle)
{
	free_feed(handle->data);
}

void coop_feed_unref(struct coop_feed *feed)
{
	if (!feed || --feed->refs)
		return;
	coop_user_drop(COOP_TAKE_PTR(feed->follow));
	coop_later_cancel(&feed->due);
	take_out_of_map(feed);
	feed->feeds->net->counts.feeds--;
	struct coop_user *user = COOP_TAKE_PTR(feed->user);
	uv_close((uv_handle_t *)&feed->retry, on_feed_closed);
	coop_user_unref(user); /* may take the feeds with it */
}

const char *coop_feed_id(const struct coop_feed *feed)
{
	return feed->id;
}

const char *coop_feed_name(const struct coop_feed *feed)
{
	return feed->name;
}

bool coop_feed_ended(const struct coop_feed *feed)
{
	return coop_buf_size(&feed->exit) > 0;
}

/* Those that read by themselves need nothing of it. */
void coop_feed_tidy(struct coop_feed *feed)
{
	uint64_t least = feed->window.next;

	COOP_LIST_EACH(&feed->readers, link)
	{
		const struct coop_feed_reader *reader = coop_feed_reader_of(link);
		if (!reader->behind && !reader->over && reader->cursor < least)
			least = reader->cursor;
	}
	coop_feed_window_trim(&feed->window, COOP_FEED_WINDOW);
	coop_feed_window_passed(&feed->window, least);
}

static void free_gone(struct coop_feed *feed)
{
	COOP_LIST_EACH(&feed->readers, link)
	{
		if (coop_feed_reader_of(link)->gone)
			coop_feed_reader_free(coop_feed_reader_of(link));
	}
}

static void pump(struct coop_feed *feed)
{
	(void)coop_feed_ref(feed);
	feed->busy++;
	COOP_LIST_EACH(&feed->readers, link)
	coop_feed_reader_pump(coop_feed_reader_of(link));
	feed->busy--;
	coop_feed_tidy(feed);
	if (!feed->busy)
		free_gone(feed);
	coop_feed_unref(feed);
}

static void on_due(struct coop_later *item)
{
	pump(COOP_LATER_OWNER(item, struct coop_feed, due));
}

void coop_feed_touch(struct coop_feed *feed)
{
	/* Many small events come in one piece from the keeper: they leave together. */
	coop_later(&feed->feeds->net->laters, &feed->due);
}

void coop_feed_dismiss(struct coop_feed *feed, enum coop_feed_close why, const char *reason)
{
	feed->busy++;
	COOP_LIST_EACH(&feed->readers, link)
	{
		struct coop_feed_reader *reader = coop_feed_reader_of(link);
		if (!reader->gone && !reader->over) {
			reader->over = true;
			feed->dialect->close(reader->sink, why, reason);
		}
	}
	feed->busy--;
	coop_feed_touch(feed); /* frees those that are gone */
}

bool coop_feed_turn_take(struct coop_feed *feed, struct coop_feed_turn *turn)
{
	if (!turn->link.next)
		coop_list_add(&feed->turns, &turn->link);
	return feed->turns.next == &turn->link;
}

void coop_feed_turn_end(struct coop_feed *feed, struct coop_feed_turn *turn)
{
	bool first = feed->turns.next == &turn->link;

	coop_list_remove(&turn->link);
	if (!first || coop_list_empty(&feed->turns))
		return;
	turn = COOP_LIST_ITEM(feed->turns.next, struct coop_feed_turn, link);
	turn->go(turn);
}

static void on_retry(uv_timer_t *timer)
{
	struct coop_feed *feed = timer->data;

	if (feed->following && !feed->follow && !coop_feed_ended(feed))
		coop_feed_follow(feed, feed->window.next, feed->window.bytes);
	coop_feed_touch(feed);
}

void coop_feed_resume(struct coop_feed *feed)
{
	if (!uv_is_active((uv_handle_t *)&feed->retry)) {
		feed->retry_ms = feed->waited_ms = 0;
		on_retry(&feed->retry);
	} else {
		coop_feed_touch(feed);
	}
}

void coop_feed_retry(struct coop_feed *feed)
{
	if (coop_list_empty(&feed->readers) || uv_is_active((uv_handle_t *)&feed->retry))
		return;
	if (feed->waited_ms >= RETRY_TOTAL_MS) {
		coop_feed_dismiss(feed, COOP_FEED_UNREACHABLE, "the keeper does not answer");
		return;
	}
	feed->retry_ms = feed->retry_ms ? feed->retry_ms * 2 : RETRY_FIRST_MS;
	if (feed->retry_ms > RETRY_MOST_MS)
		feed->retry_ms = RETRY_MOST_MS;
	feed->waited_ms += feed->retry_ms;
	(void)uv_timer_start(&feed->retry, on_retry, feed->retry_ms, 0);
}
