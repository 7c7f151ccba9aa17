/* Readers that a process waits for rather than lose output: the gateway's side of the keeper's
 * operation `hold`. The keeper sees only that bytes have come here; how far a client has taken them
 * it must be told. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "doors/http/net/net.h"
#include "doors/http/runtime/feed.h"
#include "doors/http/runtime/feed_state.h"
#include "doors/http/users/user.h"

/* Signs of life while nothing moves, in each time that a holder may stand still. */
#define SIGNS 4u

static uint64_t member(const json_t *hold, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(hold, name));

	return value > 0 ? (uint64_t)value : 0;
}

void coop_feed_hold_give_up(struct coop_user *user, const char *id, const json_t *hold)
{
	static const struct coop_handler nobody_waits;
	uint64_t number = member(hold, "number");

	/* Without memory it ends by itself: when it has stood still for long enough. */
	if (number)
		(void)coop_user_call(
			user, "hold",
			json_pack("{s:s,s:I,s:b}", "id", id, "hold", (json_int_t)number, "end", 1),
			NULL, 0, &nobody_waits);
}

void coop_feed_hold_end(struct coop_feed_reader *reader)
{
	struct coop_feed_hold *hold = &reader->hold;

	if (!hold->number)
		return;
	json_t *which = json_pack("{s:I}", "number", (json_int_t)hold->number);
	coop_user_drop(COOP_TAKE_PTR(hold->call));
	hold->number = 0;
	coop_feed_hold_give_up(reader->feed->user, reader->feed->id, which);
	json_decref(which);
}

static void tell(struct coop_feed_reader *reader);

static void on_told(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct coop_feed_reader *reader = user;
	json_t *result = status == 0 ? json_loads(json, 0, NULL) : NULL;

	reader->hold.call = NULL;
	/* The keeper has taken the right away, or is gone: this reader is one as any other now. */
	if (!json_is_object(json_object_get(result, "hold")))
		reader->hold.number = 0;
	json_decref(result);
	coop_feed_hold_moved(reader);
}

static void tell(struct coop_feed_reader *reader)
{
	struct coop_handler handler = {.done = on_told, .user = reader};
	struct coop_feed_hold *hold = &reader->hold;

	hold->cursor = reader->cursor;
	hold->passed = reader->passed;
	hold->told_ms = uv_now(reader->feed->feeds->net->loop);
	/* Without memory it is told with the next step. */
	hold->call = coop_user_call(reader->feed->user, "hold",
				    json_pack("{s:s,s:I,s:I}", "id", reader->feed->id, "hold",
					      (json_int_t)hold->number, "cursor",
					      (json_int_t)hold->cursor),
				    NULL, 0, &handler);
}

void coop_feed_hold_moved(struct coop_feed_reader *reader)
{
	const struct coop_feed_hold *hold = &reader->hold;

	if (!hold->number || hold->call || reader->gone || reader->over)
		return;
	if (reader->passed - hold->passed >= hold->step_bytes ||
	    (reader->cursor > hold->cursor && reader->cursor - hold->cursor >= hold->step_events))
		tell(reader);
}

void coop_feed_reader_taking(struct coop_feed_reader *reader)
{
	const struct coop_feed_hold *hold = &reader->hold;
	uint64_t now = uv_now(reader->feed->feeds->net->loop);

	if (hold->number && !hold->call && !reader->gone && !reader->over &&
	    now - hold->told_ms >= hold->idle_ms / SIGNS)
		tell(reader);
}

void coop_feed_reader_hold(struct coop_feed_reader *reader, const json_t *hold)
{
	reader->hold = (struct coop_feed_hold){
		.number = member(hold, "number"),
		.cursor = member(hold, "cursor"),
		.step_bytes = member(hold, "step_bytes"),
		.step_events = member(hold, "step_events"),
		.idle_ms = member(hold, "idle_ms"),
		.told_ms = uv_now(reader->feed->feeds->net->loop),
	};
	if (reader->hold.number)
		reader->feed->dialect->expect_little(reader->sink);
}
