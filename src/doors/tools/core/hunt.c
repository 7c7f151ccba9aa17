#include "doors/tools/core/hunt.h"

#include <errno.h>

#include "doors/tools/core/call.h"

#define HUNT(tap_) ((struct coop_hunt *)(tap_)) /* its first member */

bool coop_hunt_is_decided(const struct coop_hunt *hunt)
{
	return hunt->match.found || hunt->tap.over || hunt->status < 0 || hunt->tap.status < 0;
}

static void feed_search(struct coop_hunt *hunt, const void *bytes, size_t size, bool last)
{
	hunt->status =
		coop_search_feed(hunt->search, bytes, size, last, &hunt->match, hunt->reason);
}

/* What is new of the text. A match may begin in what has been looked at. */
static void feed_text(struct coop_hunt *hunt, bool last)
{
	size_t size, most = 2 * (size_t)COOP_PATTERN_SPAN;
	const char *text = coop_plain_text(hunt->text, &size);
	size_t at = (size_t)(hunt->seen - hunt->gone);

	feed_search(hunt, text + at, size - at, last);
	hunt->seen += size - at;
	if (!hunt->match.found && size > most) {
		coop_plain_consume(hunt->text, size - most);
		hunt->gone += size - most;
	}
}

static void feed(struct coop_hunt *hunt, const void *bytes, size_t size, bool last)
{
	if (hunt->match.found || hunt->status < 0)
		return;
	if (!hunt->plain) {
		feed_search(hunt, bytes, size, last);
		return;
	}
	hunt->status =
		last ? coop_plain_finish(hunt->text) : coop_plain_feed(hunt->text, bytes, size);
	if (hunt->status == 0)
		feed_text(hunt, last);
}

static void peek(struct coop_hunt *hunt)
{
	hunt->settle_at = 0;
	if (!hunt->match.found && hunt->status == 0)
		hunt->status = coop_search_peek(hunt->search, &hunt->match, hunt->reason);
}

static void end_search(struct coop_hunt *hunt)
{
	coop_search_free(hunt->search);
	coop_plain_free(hunt->text);
}

static int begin_search(struct coop_hunt *hunt, uint64_t offset)
{
	end_search(hunt);
	hunt->search = coop_search_new(hunt->pattern);
	hunt->text = hunt->plain ? coop_plain_new(0, offset) : NULL;
	hunt->base = offset;
	hunt->seen = hunt->gone = 0;
	return hunt->search && (hunt->text || !hunt->plain) ? 0 : -ENOMEM;
}

static bool on_bytes(struct coop_tap *tap, uint64_t at, const void *bytes, size_t size)
{
	struct coop_hunt *hunt = HUNT(tap);
	uint64_t skipped = at < hunt->from ? hunt->from - at : 0;
	/* Who waits for the end of a pause need not hear of every byte before it. */
	bool rests = hunt->settle_at && tap->next - size >= tap->present;

	if (skipped < size) {
		feed(hunt, (const char *)bytes + skipped, size - (size_t)skipped, false);
		hunt->settle_at = coop_tool_now() + hunt->settle_ms;
	}
	return !rests || coop_hunt_is_decided(hunt);
}

/* No match can lie across bytes that are lost: the search begins anew behind them. */
static bool on_gap(struct coop_tap *tap, uint64_t from, uint64_t to)
{
	struct coop_hunt *hunt = HUNT(tap);

	if (from < hunt->from)
		from = hunt->from;
	if (to <= from)
		return true;
	peek(hunt);
	if (!coop_hunt_is_decided(hunt)) {
		hunt->dropped += to - from;
		hunt->status = begin_search(hunt, to);
	}
	return true;
}

/* Its end is one for $ and \b. */
static void on_ended(struct coop_tap *tap)
{
	if (tap->status == 0)
		feed(HUNT(tap), NULL, 0, true);
}

int coop_hunt_begin(struct coop_hunt *hunt, struct coop_tool_call *call, const char *id,
		    const char *pattern, size_t size, bool regex)
{
	int r = coop_pattern_new(pattern, size, regex, &hunt->pattern, hunt->reason);

	if (r == 0)
		r = begin_search(hunt, hunt->from);
	if (r < 0)
		return r == -EINVAL ? r : coop_tool_no_memory(call);
	hunt->tap.bytes = on_bytes;
	hunt->tap.gap = on_gap;
	hunt->tap.ended = on_ended;
	return coop_tap_open(&hunt->tap, call, id, hunt->from);
}

void coop_hunt_end(struct coop_hunt *hunt)
{
	coop_tap_close(&hunt->tap);
	end_search(hunt);
	coop_pattern_free(hunt->pattern);
}

int64_t coop_hunt_due(const struct coop_hunt *hunt)
{
	bool waits = hunt->settle_at && !coop_hunt_is_decided(hunt);

	return waits && coop_tap_is_current(&hunt->tap) ? hunt->settle_at : -1;
}

void coop_hunt_look(struct coop_hunt *hunt, bool last)
{
	int64_t due = coop_hunt_due(hunt);

	if ((due >= 0 && coop_tool_now() >= due) || (last && hunt->settle_at))
		peek(hunt);
}

struct coop_hunt_find coop_hunt_found(const struct coop_hunt *hunt)
{
	struct coop_hunt_find find = {0};
	uint64_t start = hunt->match.groups[0].start, end = hunt->match.groups[0].end;

	find.text = coop_search_group(hunt->search, &hunt->match, 0, &find.size);
	find.start = hunt->base + start;
	find.end = hunt->base + end;
	if (hunt->plain) {
		size_t at = (size_t)(start - hunt->gone);
		find.start = find.end = coop_plain_offset(hunt->text, at);
		/* Escape codes that follow are not part of it. */
		if (find.size)
			find.end = coop_plain_offset(hunt->text, at + find.size - 1) + 1;
	}
	return find;
}
