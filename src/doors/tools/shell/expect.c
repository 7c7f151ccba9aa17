#include "doors/tools/shell/expect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "doors/tools/core/tap.h"
#include "doors/tools/shell/shell.h"
#include "doors/tools/shell/transcript.h"

/* Bytes that wait to be looked at. More come only while a response is being sent; what does not fit
 * is lost, as it is to a reader who is too slow. */
#define PENDING_MAX (4u << 20)
/* So many are looked at before the rest of what is there has come. */
#define PENDING_ENOUGH (256u << 10)
/* A terminal mostly ends because its process does: that is told soon after. */
#define END_MS 500

/* How often `continue` goes on. */
#define ROUNDS_MAX 1000

/* One case's search in the present look. */
struct seeker {
	struct coop_search *search;
	struct coop_pattern_match match;
	struct coop_mark end; /* of the match */
};

struct look {
	struct coop_tap tap;
	struct coop_tool_call *call;
	const char *id;
	const struct coop_expect_case_list *list;
	struct seeker *seekers;
	struct coop_transcript *transcript;
	uint64_t origin; /* text offset where the searches begin */
	uint64_t fed;    /* and up to which they have looked */
	uint64_t shown;  /* the place of shell_read */
	/* What the follow brought and has not been looked at. */
	struct coop_buf pending;
	uint64_t pending_at; /* offset of its first byte */
	bool lost;           /* something before that is missing */
};

/* The tap is its first member. */
static struct look *look_of(struct coop_tap *tap)
{
	return (struct look *)tap;
}

static bool on_gap(struct coop_tap *tap, uint64_t from, uint64_t to)
{
	struct look *look = look_of(tap);

	(void)from;
	coop_buf_consume(&look->pending, coop_buf_size(&look->pending));
	look->pending_at = to;
	look->lost = true;
	return coop_tap_is_current(tap);
}

static bool on_bytes(struct coop_tap *tap, uint64_t at, const void *bytes, size_t size)
{
	struct look *look = look_of(tap);

	if (coop_buf_size(&look->pending) + size > PENDING_MAX)
		(void)on_gap(tap, look->pending_at, at);
	if (coop_buf_append(&look->pending, bytes, size) < 0)
		tap->status = coop_tool_no_memory(tap->call);
	return coop_tap_is_current(tap) || tap->status < 0 ||
	       coop_buf_size(&look->pending) >= PENDING_ENOUGH;
}

static int begin_follow(struct look *look, uint64_t from)
{
	look->lost = false;
	coop_buf_consume(&look->pending, coop_buf_size(&look->pending));
	look->pending_at = from;
	return coop_tap_open(&look->tap, look->call, look->id, from);
}

static void end_searches(struct look *look)
{
	for (size_t i = 0; look->seekers && i < look->list->count; i++) {
		coop_search_free(look->seekers[i].search);
		memset(&look->seekers[i], 0, sizeof look->seekers[i]);
	}
}

/* Searches anew, from `origin` on. */
static int begin_searches(struct look *look, uint64_t origin)
{
	end_searches(look);
	look->origin = look->fed = origin;
	for (size_t i = 0; i < look->list->count; i++) {
		look->seekers[i].search = coop_search_new(look->list->cases[i].pattern);
		if (!look->seekers[i].search)
			return coop_tool_no_memory(look->call);
	}
	return 0;
}

/* One case looks at more text. Where all that is there has come, its end counts as the end: a
 * prompt is followed by nothing. */
static int seek_one(struct look *look, struct seeker *seeker, const char *text, size_t size)
{
	char reason[256];
	int r = coop_search_feed(seeker->search, text, size, look->tap.over, &seeker->match,
				 reason);

	if (r == 0 && !seeker->match.found && coop_tap_is_current(&look->tap) && !look->tap.over)
		r = coop_search_peek(seeker->search, &seeker->match, reason);
	if (r == -ENOMEM)
		return coop_tool_no_memory(look->call);
	if (r < 0)
		return coop_tool_fail(look->call, "invalid_input", "pattern",
				      "the pattern costs too much on this text: %s", reason);
	if (seeker->match.found)
		seeker->end = coop_transcript_mark(look->transcript,
						   look->origin + seeker->match.groups[0].end);
	return 0;
}

/* Lets every case look at the text that is new. */
static int seek(struct look *look)
{
	size_t size;
	const char *text = coop_transcript_text(look->transcript, &look->fed, &size);
	int r = 0;

	for (size_t i = 0; r == 0 && i < look->list->count; i++)
		if (!look->seekers[i].match.found)
			r = seek_one(look, &look->seekers[i], text, size);
	look->fed += size;
	return r;
}

/* Takes in what came, and looks at it. */
static int take(struct look *look)
{
	struct coop_buf *pending = &look->pending;
	int r = 0;

	if (look->lost) {
		/* Nothing matches across a hole. */
		if (coop_transcript_skip(look->transcript, look->pending_at) < 0)
			return coop_tool_no_memory(look->call);
		look->lost = false;
		r = begin_searches(look, coop_transcript_end(look->transcript).text);
	}
	if (r == 0 && coop_buf_size(pending) &&
	    coop_transcript_feed(look->transcript, coop_buf_front(pending),
				 coop_buf_size(pending)) < 0)
		return coop_tool_no_memory(look->call);
	look->pending_at += coop_buf_size(pending);
	coop_buf_consume(pending, coop_buf_size(pending));
	if (r == 0 && look->tap.over && coop_transcript_finish(look->transcript) < 0)
		return coop_tool_no_memory(look->call);
	if (r == 0 && (look->tap.attached || look->tap.over))
		r = seek(look);
	if (r == 0 && coop_transcript_trim(look->transcript) < 0)
		return coop_tool_no_memory(look->call);
	return r;
}

/* The case that wins: -1 while there is none. */
static int winner(const struct look *look)
{
	for (size_t i = 0; coop_tap_is_current(&look->tap) && i < look->list->count; i++)
		if (look->seekers[i].match.found)
			return (int)i;
	return -1;
}

/* When to give up. What has arrived is looked at however short the time is. */
static int64_t limit_of(const struct look *look, int64_t until)
{
	int64_t soon = look->tap.eof && coop_tap_is_current(&look->tap)
			       ? coop_tool_until(look->call, END_MS)
			       : -1;

	if (!coop_tap_is_current(&look->tap))
		return coop_tool_until(look->call, -1);
	return soon >= 0 && (until < 0 || soon < until) ? soon : until;
}

/* Waits for a match. 0 with its case in ret->index, or -1 and the reason. */
static int await(struct look *look, int64_t until, struct coop_expect_result *ret)
{
	for (;;) {
		int r = look->tap.status < 0 ? look->tap.status : take(look);
		if (r < 0)
			return r;
		ret->index = winner(look);
		if (ret->index >= 0)
			return 0;
		r = look->tap.over ? -ETIME : coop_tool_pause(look->call, limit_of(look, until));
		if (r == -ETIME) {
			ret->reason = look->tap.over ? "exited" : look->tap.eof ? "eof" : "timeout";
			return 0;
		}
		if (r < 0)
			return r;
	}
}

static json_t *captures_of(const struct seeker *seeker)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < seeker->match.count; i++) {
		size_t size = 0;
		const char *bytes = coop_search_group(seeker->search, &seeker->match, i, &size);
		if (json_array_append_new(list, bytes ? coop_tool_text(bytes, size) : json_null()) <
		    0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* The match is used up: both places move behind it. */
static int consume(struct look *look, struct coop_mark end)
{
	int r = coop_shell_move(look->call, look->id, COOP_SHELL_EXPECT, end.raw);

	if (r == 0 && end.raw > look->shown) {
		look->shown = end.raw;
		r = coop_shell_move(look->call, look->id, COOP_SHELL_READ, end.raw);
	}
	return r;
}

static int respond(struct look *look, const char *text, const json_t *captures)
{
	struct coop_buf bytes = {0};
	size_t written = 0;
	int r = coop_expect_fill(text, captures, &bytes);

	if (r == -EMSGSIZE)
		r = coop_tool_fail(look->call, "too_large", "respond",
				   "with its captures the response has more than 1 MiB");
	else if (r < 0)
		r = coop_tool_no_memory(look->call);
	else
		r = coop_shell_send(look->call, look->id, (char *)coop_buf_front(&bytes),
				    coop_buf_size(&bytes), &written);
	if (r == 0 && written < coop_buf_size(&bytes))
		r = coop_tool_fail(look->call, "unavailable", "respond",
				   "the program does not read: %zu of %zu bytes of the response "
				   "were taken",
				   written, coop_buf_size(&bytes));
	coop_buf_clear(&bytes);
	return r;
}

/* After `continue`: searches go on behind the match, in text that is here already where it still
 * is. */
static int go_on(struct look *look, struct coop_mark end)
{
	uint64_t from = end.text;
	size_t size;

	(void)coop_transcript_text(look->transcript, &from, &size);
	if (from == end.text)
		return begin_searches(look, from);
	int r = begin_follow(look, end.raw);
	look->lost = true;
	return r < 0 ? r : begin_searches(look, coop_transcript_end(look->transcript).text);
}

static int run(struct look *look, int64_t until, struct coop_expect_result *ret)
{
	for (unsigned rounds = 0;; rounds++) {
		int r = await(look, until, ret);
		if (r < 0)
			return r;
		/* A case that always matches, also the answer to itself, must come to an end,
		 * too. */
		if (ret->index >= 0 && rounds &&
		    (rounds == ROUNDS_MAX || (until >= 0 && coop_tool_now() >= until))) {
			ret->index = -1;
			ret->reason = "timeout";
		}
		if (ret->index < 0)
			break;
		const struct coop_expect_case *match = &look->list->cases[ret->index];
		struct coop_mark end = look->seekers[ret->index].end;
		json_decref(ret->captures);
		ret->captures = captures_of(&look->seekers[ret->index]);
		if (!ret->captures)
			return coop_tool_no_memory(look->call);
		if (match->tag != COOP_EXPECT_NEXT)
			r = consume(look, end);
		if (r == 0 && match->respond)
			r = respond(look, match->respond, ret->captures);
		if (r == 0 && match->tag == COOP_EXPECT_CONTINUE) {
			ret->went_on = true;
			r = go_on(look, end);
			if (r < 0)
				return r;
			continue;
		}
		if (r == 0 && coop_transcript_show(look->transcript, end.raw, &ret->output,
						   &ret->omitted) < 0)
			r = coop_tool_no_memory(look->call);
		return r;
	}
	json_decref(ret->captures);
	ret->captures = json_array();
	if (!ret->captures ||
	    coop_transcript_show(look->transcript, coop_transcript_end(look->transcript).raw,
				 &ret->output, &ret->omitted) < 0)
		return coop_tool_no_memory(look->call);
	return 0;
}

int coop_expect(struct coop_tool_call *call, const char *id,
		const struct coop_expect_case_list *list, int64_t timeout_ms, size_t budget,
		struct coop_expect_result *ret)
{
	struct look look = {
		.tap = {.stream = "pty", .hold = list->hold, .bytes = on_bytes, .gap = on_gap},
		.call = call,
		.id = id,
		.list = list,
	};
	int64_t until = coop_tool_until(call, timeout_ms);
	int64_t wanted = coop_tool_now() + timeout_ms;
	uint64_t from = 0;
	int r = coop_shell_place(call, id, COOP_SHELL_EXPECT, &from);

	memset(ret, 0, sizeof *ret);
	ret->index = -1;
	if (r == 0)
		r = coop_shell_place(call, id, COOP_SHELL_READ, &look.shown);
	if (r == 0) {
		look.transcript = coop_transcript_new(budget, from);
		look.seekers = coop_mem_zalloc(list->count * sizeof *look.seekers);
		r = look.transcript && look.seekers ? begin_searches(&look, 0)
						    : coop_tool_no_memory(call);
	}
	if (r == 0)
		r = begin_follow(&look, from);
	if (r == 0)
		r = run(&look, until, ret);
	ret->cut_short =
		ret->reason && coop_tool_now() < wanted && strcmp(ret->reason, "timeout") == 0;
	coop_tap_close(&look.tap);
	end_searches(&look);
	free(look.seekers);
	coop_transcript_free(look.transcript);
	coop_buf_clear(&look.pending);
	if (r < 0)
		coop_expect_result_clear(ret);
	return r;
}
