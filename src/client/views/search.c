#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/utf8.h"
#include "client/views/compiled.h"
#include "client/views/pattern.h"

/* For one place where a match may begin: steps back that PCRE2 may take, how deep, and with how
 * much memory. */
#define STEPS_MAX 500000u
/* A step may go over all of the text at hand. With more of both than this the patient form of the
 * pattern takes over, which looks at the clock on its way. */
#define STEPS_BYTES_MAX 268435456u
#define ASK_EVERY 256u /* stops of that one */
#define DEPTH_MAX 250000u
#define HEAP_MAX_KIB 16384u
/* Places that may be given up because what begins there goes on for more than COOP_PATTERN_SPAN: so
 * many, and one more for each so many bytes. Each costs a look at all of the span. */
#define OVERLONG_MAX 256u
#define OVERLONG_BYTES 256u
/* Processor time of one call: the steps above bound what one place costs, not what all of them do
 * together. Time for this and so much a byte is far more than a reasonable pattern needs. */
#define CALL_NS 500000000u
#define CALL_NS_BYTE 200u
/* And of all calls of a search: so much at first, and more with each call and byte. */
#define SEARCH_NS 2000000000u
#define SEARCH_NS_CALL 100000u
#define SEARCH_NS_BYTE 1000u
/* Places tried between two looks at the clock: as many as take about a millisecond. */
#define SLICE_MIN 1u
#define SLICE_NS 1000000u

#define NO_CHARACTER 0x1a /* stands for a byte that is not UTF-8 */

struct coop_search {
	const struct coop_pattern *pattern;
	pcre2_match_data *data;
	pcre2_match_context *limits;
	/* the window: what was fed and can still be part of a match, and the character before it */
	struct coop_buf raw;
	/* the same as valid UTF-8, byte for byte; without what is held back at the end */
	struct coop_buf sane;
	uint64_t base; /* position of the window */
	uint64_t fed, overlong;
	uint64_t calls, spent; /* how often, and how much time it took */
	size_t scan;           /* where in the window a match may still begin */
	size_t slice;
};

/* One call: what it may cost. */
struct effort {
	uint64_t began, now, deadline;
	unsigned stops;
};

static uint64_t cpu_time(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) < 0)
		return 0;
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* For a call with `size` more bytes. */
static struct effort effort_for(const struct coop_search *search, size_t size)
{
	uint64_t now = cpu_time();
	uint64_t call = CALL_NS + CALL_NS_BYTE * (uint64_t)size;
	uint64_t all =
		SEARCH_NS + SEARCH_NS_CALL * search->calls + SEARCH_NS_BYTE * (search->fed + size);
	uint64_t left = all > search->spent ? all - search->spent : 0;

	return (struct effort){
		.began = now, .now = now, .deadline = now + (left < call ? left : call)};
}

static int prepare(struct coop_search *search)
{
	const struct coop_pattern *pattern = search->pattern;

	search->data = pcre2_match_data_create(pattern->groups, pattern->memory);
	search->limits = pcre2_match_context_create(pattern->memory);
	if (!search->data || !search->limits)
		return -ENOMEM;
	(void)pcre2_set_depth_limit(search->limits, DEPTH_MAX);
	(void)pcre2_set_heap_limit(search->limits, HEAP_MAX_KIB);
	return 0;
}

struct coop_search *coop_search_new(const struct coop_pattern *pattern)
{
	struct coop_search *search = coop_mem_zalloc(sizeof *search);

	if (!search)
		return NULL;
	search->pattern = pattern;
	search->slice = SLICE_MIN;
	if (pattern->code && prepare(search) < 0) {
		coop_search_free(search);
		return NULL;
	}
	return search;
}

void coop_search_free(struct coop_search *search)
{
	if (!search)
		return;
	pcre2_match_data_free(search->data);
	pcre2_match_context_free(search->limits);
	coop_buf_clear(&search->raw);
	coop_buf_clear(&search->sane);
	free(search);
}

static int refuse(char reason[COOP_PATTERN_REASON], const char *what)
{
	(void)snprintf(reason, COOP_PATTERN_REASON, "%s", what);
	return -ERANGE;
}

static int explain(int code, char reason[COOP_PATTERN_REASON])
{
	PCRE2_UCHAR message[160] = "unknown failure";

	if (code == PCRE2_ERROR_NOMEMORY)
		return -ENOMEM;
	if (code == PCRE2_ERROR_CALLOUT)
		return refuse(reason, "the pattern takes too long on this output");
	if (code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_DEPTHLIMIT ||
	    code == PCRE2_ERROR_HEAPLIMIT)
		return refuse(reason, "the pattern can match this output in too many ways: avoid a "
				      "repetition within a repetition, as in (a+)+");
	(void)pcre2_get_error_message(code, message, sizeof message);
	return refuse(reason, (const char *)message);
}

/* The valid form of bytes that have come, but of what may change with those to come: a character's
 * beginning, and CR, which may be half of a line's end. */
static int sanitise(struct coop_search *search, bool is_end)
{
	size_t done = coop_buf_size(&search->sane);
	size_t size = coop_buf_size(&search->raw) - done;

	if (!size)
		return 0;
	const uint8_t *from = coop_buf_front(&search->raw) + done;
	if (!is_end) {
		size_t held = coop_utf8_unfinished(from, size);
		size -= held ? held : from[size - 1] == '\r';
	}
	uint8_t *to = coop_buf_reserve(&search->sane, size);
	if (!to)
		return -ENOMEM;
	for (size_t at = 0; at < size;) {
		size_t length = coop_utf8_char(from + at, size - at);
		if (length)
			memcpy(to + at, from + at, length);
		else
			to[at] = NO_CHARACTER;
		at += length + !length;
	}
	coop_buf_commit(&search->sane, size);
	return 0;
}

/* The next place behind `at` where a match may begin. As PCRE2 does it: not between CR and LF,
 * unless the pattern speaks of them. */
static size_t next_start(const struct coop_search *search, size_t at)
{
	const uint8_t *text = coop_buf_front(&search->sane);
	size_t size = coop_buf_size(&search->sane);

	do
		at++;
	while (at < size && (text[at] & 0xc0) == 0x80);
	if (at < size && text[at - 1] == '\r' && text[at] == '\n' && !search->pattern->has_newlines)
		at++;
	return at;
}

static bool is_time_up(struct effort *effort)
{
	effort->now = cpu_time();
	return effort->now > effort->deadline;
}

/* A stop of a patient pattern. */
static int may_go_on(pcre2_callout_block *block, void *data)
{
	struct effort *effort = data;

	(void)block;
	return ++effort->stops % ASK_EVERY == 0 && is_time_up(effort) ? PCRE2_ERROR_CALLOUT : 0;
}

/* PCRE2 over the window: matches that begin from `from` up to `limit`. PCRE2_ERROR_CALLOUT when
 * time is up. */
static int match(struct coop_search *search, size_t from, size_t limit, uint32_t options,
		 struct effort *effort)
{
	const uint8_t *front = coop_buf_front(&search->sane);
	PCRE2_SPTR text = front ? front : (PCRE2_SPTR) "";
	size_t size = coop_buf_size(&search->sane);
	size_t steps = STEPS_BYTES_MAX / (size - from + 1);

	options |= PCRE2_NO_UTF_CHECK;
	(void)pcre2_set_offset_limit(search->limits, limit);
	(void)pcre2_set_match_limit(search->limits,
				    steps < STEPS_MAX ? (uint32_t)steps : STEPS_MAX);
	int rc = pcre2_match(search->pattern->code, text, size, from, options, search->data,
			     search->limits);
	if (rc != PCRE2_ERROR_MATCHLIMIT || steps >= STEPS_MAX || !search->pattern->patient)
		return rc;
	(void)pcre2_set_match_limit(search->limits, STEPS_MAX);
	(void)pcre2_set_callout(search->limits, may_go_on, effort);
	return pcre2_match(search->pattern->patient, text, size, from, options, search->data,
			   search->limits);
}

/* Tries from *from on, some places at a time. PCRE2's result, PCRE2_ERROR_CALLOUT when time is up.
 * *from: before it nothing begins. */
static int sweep(struct coop_search *search, size_t *from, uint32_t options, struct effort *effort)
{
	size_t size = coop_buf_size(&search->sane);

	for (;;) {
		size_t limit = size - *from > search->slice ? *from + search->slice : PCRE2_UNSET;
		uint64_t before = effort->now;
		int rc = match(search, *from, limit, options, effort);
		if (rc != PCRE2_ERROR_NOMATCH || limit == PCRE2_UNSET)
			return rc;
		*from = next_start(search, limit);
		if (is_time_up(effort))
			return PCRE2_ERROR_CALLOUT;
		if (effort->now - before < SLICE_NS)
			search->slice *= 2;
		else if (search->slice > SLICE_MIN)
			search->slice /= 2;
	}
}

static void fill(const struct coop_search *search, struct coop_pattern_match *ret)
{
	const size_t *offsets = pcre2_get_ovector_pointer(search->data);

	ret->found = true;
	ret->count = search->pattern->groups;
	for (unsigned i = 0; i < ret->count; i++) {
		bool is_absent = offsets[2 * i] == PCRE2_UNSET;
		ret->groups[i].start = is_absent ? COOP_NO_GROUP : search->base + offsets[2 * i];
		ret->groups[i].end = is_absent ? COOP_NO_GROUP : search->base + offsets[2 * i + 1];
	}
}

/* Drops what no match can begin in, but for the character before, which ^ and \b look at. */
static void trim(struct coop_search *search)
{
	const uint8_t *text = coop_buf_front(&search->sane);
	size_t keep = search->scan;

	if (!keep)
		return;
	do
		keep--;
	while (keep && (text[keep] & 0xc0) == 0x80);
	coop_buf_consume(&search->raw, keep);
	coop_buf_consume(&search->sane, keep);
	search->base += keep;
	search->scan -= keep;
}

/* A match could begin at `scan` and fills the span: now or never. 1 for a match, 0, or negative. */
static int last_chance(struct coop_search *search, struct effort *effort,
		       char reason[COOP_PATTERN_REASON])
{
	int rc = match(search, search->scan, PCRE2_UNSET,
		       PCRE2_ANCHORED | PCRE2_NOTEOL | PCRE2_PARTIAL_SOFT, effort);

	if (rc > 0)
		return 1;
	if (rc != PCRE2_ERROR_NOMATCH && rc != PCRE2_ERROR_PARTIAL)
		return explain(rc, reason);
	search->scan = next_start(search, search->scan);
	if (++search->overlong > OVERLONG_MAX + search->fed / OVERLONG_BYTES)
		return refuse(reason, "the pattern goes on for more than 64 KiB, again and again: "
				      "leave out an open repetition like [\\s\\S]* at its start");
	return 0;
}

/* Looks at the window. 1 for a match, 0, or negative. */
static int look(struct coop_search *search, bool is_end, struct effort *effort,
		char reason[COOP_PATTERN_REASON])
{
	if (sanitise(search, is_end) < 0)
		return -ENOMEM;
	int rc = sweep(search, &search->scan, is_end ? 0 : PCRE2_PARTIAL_HARD, effort);
	if (rc > 0)
		return 1;
	if (rc == PCRE2_ERROR_NOMATCH) {
		search->scan = coop_buf_size(&search->sane);
		return 0;
	}
	if (rc != PCRE2_ERROR_PARTIAL)
		return explain(rc, reason);
	size_t start = pcre2_get_ovector_pointer(search->data)[0];
	bool is_same = start == search->scan;
	search->scan = start;
	if (is_same && coop_buf_size(&search->raw) - start >= COOP_PATTERN_SPAN)
		return last_chance(search, effort, reason);
	return 0;
}

static int scan(struct coop_search *search, const uint8_t *bytes, size_t size, bool last,
		struct effort *effort, struct coop_pattern_match *ret,
		char reason[COOP_PATTERN_REASON])
{
	for (;;) {
		size_t room = COOP_PATTERN_SPAN - (coop_buf_size(&search->raw) - search->scan);
		size_t count = size < room ? size : room;
		if (coop_buf_append(&search->raw, bytes, count) < 0)
			return -ENOMEM;
		bytes += count;
		size -= count;
		search->fed += count;
		int r = look(search, last && !size, effort, reason);
		if (r < 0)
			return r;
		if (r > 0) {
			fill(search, ret);
			return 0;
		}
		trim(search);
		if (!size)
			return 0;
		if (is_time_up(effort))
			return explain(PCRE2_ERROR_CALLOUT, reason);
	}
}

static int feed_regex(struct coop_search *search, const uint8_t *bytes, size_t size, bool last,
		      struct coop_pattern_match *ret, char reason[COOP_PATTERN_REASON])
{
	struct effort effort = effort_for(search, size);
	int r = scan(search, bytes, size, last, &effort, ret, reason);

	search->calls++;
	search->spent += cpu_time() - effort.began;
	return r;
}

static void fill_text(struct coop_pattern_match *ret, uint64_t start, size_t size)
{
	ret->found = true;
	ret->count = 1;
	ret->groups[0].start = start;
	ret->groups[0].end = start + size;
}

/* A plain text needs no PCRE2, and no UTF-8. */
static int feed_text(struct coop_search *search, const uint8_t *bytes, size_t size,
		     struct coop_pattern_match *ret)
{
	const struct coop_pattern *pattern = search->pattern;

	while (size) {
		size_t count = size < COOP_PATTERN_SPAN ? size : COOP_PATTERN_SPAN;
		if (coop_buf_append(&search->raw, bytes, count) < 0)
			return -ENOMEM;
		bytes += count;
		size -= count;
		const uint8_t *front = coop_buf_front(&search->raw);
		size_t have = coop_buf_size(&search->raw);
		const uint8_t *at = memmem(front, have, pattern->text, pattern->size);
		if (at) {
			fill_text(ret, search->base + (uint64_t)(at - front), pattern->size);
			return 0;
		}
		if (have >= pattern->size) {
			coop_buf_consume(&search->raw, have - pattern->size + 1);
			search->base += have - pattern->size + 1;
		}
	}
	return 0;
}

int coop_search_feed(struct coop_search *search, const void *bytes, size_t size, bool last,
		     struct coop_pattern_match *ret, char reason[COOP_PATTERN_REASON])
{
	ret->found = false;
	ret->count = 0;
	reason[0] = 0;
	if (!size)
		bytes = "";
	if (!search->pattern->code)
		return feed_text(search, bytes, size, ret);
	return feed_regex(search, bytes, size, last, ret, reason);
}

int coop_search_peek(struct coop_search *search, struct coop_pattern_match *ret,
		     char reason[COOP_PATTERN_REASON])
{
	size_t before = coop_buf_size(&search->sane), from = search->scan;

	ret->found = false;
	ret->count = 0;
	reason[0] = 0;
	if (!search->pattern->code)
		return 0;
	if (sanitise(search, true) < 0)
		return -ENOMEM;
	struct effort effort = effort_for(search, 0);
	int rc = sweep(search, &from, 0, &effort);
	search->sane.tail = search->sane.head + before;
	search->calls++;
	search->spent += cpu_time() - effort.began;
	if (rc == PCRE2_ERROR_NOMATCH)
		return 0;
	if (rc < 0)
		return explain(rc, reason);
	fill(search, ret);
	return 0;
}

const char *coop_search_group(const struct coop_search *search,
			      const struct coop_pattern_match *match, unsigned group,
			      size_t *ret_size)
{
	if (!match->found || group >= match->count || match->groups[group].start == COOP_NO_GROUP)
		return NULL;
	*ret_size = (size_t)(match->groups[group].end - match->groups[group].start);
	const uint8_t *front = coop_buf_front(&search->raw);
	return front ? (const char *)front + (match->groups[group].start - search->base) : "";
}

static int find_text(const struct coop_pattern *pattern, const uint8_t *bytes, size_t size,
		     size_t from, struct coop_pattern_match *ret)
{
	const uint8_t *at =
		size > from ? memmem(bytes + from, size - from, pattern->text, pattern->size)
			    : NULL;

	if (at)
		fill_text(ret, (uint64_t)(at - bytes), pattern->size);
	return 0;
}

/* A search that begins at `from`, with what stands before it. */
static struct coop_search *search_from(const struct coop_pattern *pattern, const uint8_t *bytes,
				       size_t from)
{
	struct coop_search *search = coop_search_new(pattern);
	size_t before = from < 4 ? from : 4;

	if (!search)
		return NULL;
	if (coop_buf_append(&search->raw, bytes + from - before, before) < 0 ||
	    sanitise(search, true) < 0) {
		coop_search_free(search);
		return NULL;
	}
	search->base = from - before;
	search->scan = before;
	return search;
}

int coop_pattern_find(const struct coop_pattern *pattern, const void *bytes, size_t size,
		      size_t from, struct coop_pattern_match *ret, char reason[COOP_PATTERN_REASON])
{
	ret->found = false;
	ret->count = 0;
	reason[0] = 0;
	if (from > size)
		return 0;
	if (!pattern->code)
		return find_text(pattern, bytes, size, from, ret);
	struct coop_search *search = search_from(pattern, bytes, from);
	if (!search)
		return -ENOMEM;
	int r = feed_regex(search, (const uint8_t *)bytes + from, size - from, true, ret, reason);
	coop_search_free(search);
	return r;
}
