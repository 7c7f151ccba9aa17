#include "doors/tools/native/grep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "client/views/budget.h"
#include "client/views/pattern.h"
#include "client/views/plain.h"
#include "doors/tools/core/read.h"
#include "doors/tools/core/record.h"
#include "interface/schema.h"

/* Read at a time; other calls run between two of these. */
#define PIECE (256 << 10)
#define CONTEXT_MAX 50
/* Of one line that is shown. */
#define LINE_MAX 4000
/* What the offset of a match takes of the budget. */
#define OFFSET_SIZE 12
/* A look over many lines that passes by less than this does not pay; after so many of them each
 * line is looked at. */
#define NEAR_BYTES 4096
#define NEAR_MAX 64
/* Processor time of one search, in all, for a byte, and for a line that is looked at; after a slice
 * others have a turn. */
#define SPENT_MAX 250000000
#define SPENT_PER_BYTE 300
#define SPENT_PER_LINE 20000
#define SLICE_NS 20000000

struct line {
	char *text;
	size_t size;
};

struct grep {
	struct coop_tool_call *call;
	struct coop_pattern *pattern; /* of one line */
	/* the same over many lines: where it finds nothing there is none */
	struct coop_pattern *quick;
	struct coop_plain *plain;
	size_t budget, line_max, context, after, near;
	struct line before[CONTEXT_MAX]; /* the last lines that were not shown, oldest first */
	size_t before_count;
	bool gap, full, late;
	bool ended, partial; /* nothing follows; the last line is not whole, and may match later */
	struct coop_buf out;
	json_t *offsets;
	uint64_t at, next; /* where to read on; where a line begins that was not done with */
	int64_t spent,
		slice; /* processor time of the search, and of it since others could run, in ns */
	uint64_t searched, looks; /* bytes; calls of find() */
	struct coop_pattern_match match;
};

static int64_t processor_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Each line has a bound of its own in the pattern; all together have one here. */
static int find(struct grep *grep, const struct coop_pattern *pattern, const char *text,
		size_t size, size_t from, char reason[256])
{
	int64_t before = processor_ns();
	int r = coop_pattern_find(pattern, text, size, from, &grep->match, reason);
	int64_t took = processor_ns() - before;

	grep->spent += took;
	grep->slice += took;
	grep->looks++;
	if (grep->spent > SPENT_MAX + SPENT_PER_BYTE * (int64_t)grep->searched +
				  SPENT_PER_LINE * (int64_t)grep->looks)
		return coop_tool_fail(grep->call, "invalid_input", "grep",
				      "grep: this pattern takes too long: make it simpler, without "
				      "repetitions inside of repetitions");
	return r;
}

/* Lets others run. */
static int give_way(struct grep *grep)
{
	if (grep->slice < SLICE_NS)
		return 0;
	grep->slice = 0;
	int r = coop_tool_pause(grep->call, coop_tool_now());
	return r == -ETIME ? 0 : r;
}

static int show(struct grep *grep, const char *text, size_t size)
{
	size_t shown = coop_budget_head(text, size, grep->line_max);

	if (coop_buf_append(&grep->out, text, shown) < 0 ||
	    (shown < size && coop_buf_append(&grep->out, "…", strlen("…")) < 0) ||
	    coop_buf_append(&grep->out, "\n", 1) < 0)
		return -ENOMEM;
	return 0;
}

static void forget_before(struct grep *grep)
{
	for (size_t i = 0; i < grep->before_count; i++)
		free(grep->before[i].text);
	grep->before_count = 0;
}

static void forget_oldest(struct grep *grep)
{
	free(grep->before[0].text);
	memmove(grep->before, grep->before + 1, --grep->before_count * sizeof(struct line));
	grep->gap = true;
}

static int remember(struct grep *grep, const char *text, size_t size)
{
	if (!grep->context) {
		grep->gap = true;
		return 0;
	}
	if (grep->before_count == grep->context)
		forget_oldest(grep);
	size = size > LINE_MAX ? LINE_MAX + 4 : size;
	char *copy = coop_mem_alloc(size + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, size);
	grep->before[grep->before_count++] = (struct line){copy, size};
	return 0;
}

static size_t shown_size(const struct grep *grep, size_t size)
{
	return (size < grep->line_max ? size : grep->line_max) + 1;
}

/* Whether a match has room with the lines before it. The first always has: of these as many as fit
 * are kept. */
static bool has_room(struct grep *grep, size_t size)
{
	size_t used = coop_buf_size(&grep->out) + json_array_size(grep->offsets) * OFFSET_SIZE;
	size_t need = shown_size(grep, size) + OFFSET_SIZE;

	for (size_t i = 0; i < grep->before_count; i++)
		need += shown_size(grep, grep->before[i].size);
	while (!used && need > grep->budget && grep->before_count) {
		need -= shown_size(grep, grep->before[0].size);
		forget_oldest(grep);
	}
	return !used || used + need <= grep->budget;
}

/* A long line is shown around what was found. */
static int show_found(struct grep *grep, const char *text, size_t size)
{
	size_t found = (size_t)grep->match.groups[0].start, from = 0;

	if (size > grep->line_max && found > grep->line_max / 4 * 3) {
		from = found - grep->line_max / 4;
		while (from < found && ((unsigned char)text[from] & 0xc0) == 0x80)
			from++;
		if (coop_buf_append(&grep->out, "…", strlen("…")) < 0)
			return -ENOMEM;
	}
	return show(grep, text + from, size - from);
}

static int show_match(struct grep *grep, const char *text, size_t size, uint64_t offset)
{
	if (!has_room(grep, size)) {
		grep->full = true;
		grep->next = offset;
		return 0;
	}
	if (grep->gap && grep->context && coop_buf_size(&grep->out) &&
	    coop_buf_append(&grep->out, "--\n", 3) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < grep->before_count; i++)
		if (show(grep, grep->before[i].text, grep->before[i].size) < 0)
			return -ENOMEM;
	forget_before(grep);
	grep->gap = false;
	grep->after = grep->context;
	if (json_array_append_new(grep->offsets, json_integer((json_int_t)offset)) < 0)
		return -ENOMEM;
	return show_found(grep, text, size);
}

/* One that does not match: it may stand behind one that did. */
static int skip_line(struct grep *grep, const char *text, size_t size)
{
	if (!grep->after || coop_buf_size(&grep->out) + size >= grep->budget) {
		grep->after = 0;
		return remember(grep, text, size);
	}
	grep->after--;
	return show(grep, text, size);
}

static int take_line(struct grep *grep, const char *text, size_t size, uint64_t offset)
{
	char reason[256];
	int r = find(grep, grep->pattern, text, size, 0, reason);

	if (r == -ERANGE)
		return coop_tool_fail(grep->call, "invalid_input", "grep", "grep: %s", reason);
	if (r < 0)
		return r;
	if (grep->match.found)
		return show_match(grep, text, size, offset);
	return skip_line(grep, text, size);
}

/* Lines that do not match, from `at` up to `end`, which is the start of a line: some behind the
 * last match are shown, and the last ones are kept in case that the next matches. All others are
 * passed by unseen. */
static int pass_lines(struct grep *grep, const char *text, size_t at, size_t end)
{
	int r = 0;

	while (r == 0 && grep->after && at < end) {
		size_t length =
			(size_t)((const char *)memchr(text + at, '\n', end - at) - (text + at));
		r = skip_line(grep, text + at, length);
		at += length + 1;
	}
	size_t start = end;
	for (size_t kept = 0; kept < grep->context && start > at; kept++) {
		const char *before =
			start - at > 1 ? memrchr(text + at, '\n', start - at - 1) : NULL;
		start = before ? (size_t)(before - text) + 1 : at;
	}
	if (start > at) {
		grep->gap = true;
		forget_before(grep);
	}
	while (r == 0 && start < end) {
		size_t length = (size_t)((const char *)memchr(text + start, '\n', end - start) -
					 (text + start));
		r = remember(grep, text + start, length);
		start += length + 1;
	}
	return r;
}

/* Where the next line begins that may match; `end` if there is none before. */
static int next_candidate(struct grep *grep, const char *text, size_t at, size_t end, size_t *ret)
{
	char reason[256];

	*ret = at;
	if (!grep->quick || grep->near > NEAR_MAX)
		return 0;
	int r = find(grep, grep->quick, text, end, at, reason);
	*ret = end;
	/* Lines one by one are within the limits that all together are not. */
	if (r == -ERANGE)
		*ret = at;
	else if (r == 0 && grep->match.found && grep->match.groups[0].start < end)
		*ret = (size_t)grep->match.groups[0].start;
	while (*ret > at && *ret < end && text[*ret - 1] != '\n')
		--*ret;
	grep->near = *ret - at < NEAR_BYTES ? grep->near + 1 : 0;
	return r == -ERANGE ? 0 : r;
}

static bool is_late(const struct grep *grep)
{
	int64_t until = coop_tool_until(grep->call, -1);

	return until >= 0 && coop_tool_now() >= until;
}

/* All lines of the text so far; the last, without its end, waits for more unless nothing
 * follows. */
static int take_lines(struct grep *grep, bool last)
{
	size_t size, at = 0;
	const char *text = coop_plain_text(grep->plain, &size);
	const char *tail = size ? memrchr(text, '\n', size) : NULL;
	size_t whole = tail ? (size_t)(tail - text) + 1 : 0;
	int r = 0;

	while (r == 0 && !grep->full && at < whole) {
		size_t candidate;
		r = next_candidate(grep, text, at, whole, &candidate);
		if (r == 0)
			r = pass_lines(grep, text, at, candidate);
		at = candidate;
		if (r == 0 && at < whole) {
			size_t length = (size_t)((const char *)memchr(text + at, '\n', whole - at) -
						 (text + at));
			r = take_line(grep, text + at, length, coop_plain_offset(grep->plain, at));
			at += length + 1;
		}
		if (r == 0)
			r = give_way(grep);
		/* No time is left: the rest is for the next call. */
		if (r == 0 && is_late(grep) && !grep->full) {
			grep->full = grep->late = true;
			grep->next = coop_plain_offset(grep->plain, at);
		}
	}
	if (r == 0 && last && !grep->full && at < size) {
		uint64_t offset = coop_plain_offset(grep->plain, at);
		r = take_line(grep, text + at, size - at, offset);
		at = size;
		grep->partial = !grep->match.found && !grep->ended;
		if (grep->partial)
			grep->next = offset;
	}
	coop_plain_consume(grep->plain, at);
	return r;
}

/* One piece; *ret_last: there is no more now. */
static int take_piece(struct grep *grep, const char *id, const char *stream, uint64_t end,
		      bool *ret_last)
{
	struct coop_tool_piece piece;
	int r = coop_tool_read(
		grep->call, id, stream,
		json_pack("{s:I, s:i}", "cursor", (json_int_t)grep->at, "max", PIECE), &piece);

	if (r < 0)
		return r;
	uint64_t next = piece.next;
	if (!grep->plain) {
		grep->plain = coop_plain_new(COOP_PLAIN_COLLAPSE, piece.at);
		coop_tool_set(grep->call, "offset", json_integer((json_int_t)piece.at));
		coop_tool_set(grep->call, "bytes_dropped", json_integer((json_int_t)piece.dropped));
	}
	*ret_last = next >= end || next == grep->at;
	r = grep->plain ? 0 : -ENOMEM;
	if (r == 0 && piece.size)
		r = coop_plain_feed(grep->plain, piece.bytes, piece.size);
	if (r == 0 && *ret_last)
		r = coop_plain_finish(grep->plain);
	coop_tool_piece_clear(&piece);
	grep->searched += next - grep->at;
	grep->at = next;
	return r == 0 ? take_lines(grep, *ret_last) : r;
}

static int search(struct grep *grep, const char *id, const char *stream, uint64_t end)
{
	bool last = false;
	int r = 0;

	while (r == 0 && !last && !grep->full)
		r = take_piece(grep, id, stream, end, &last);
	return r == -ENOMEM ? coop_tool_no_memory(grep->call) : r;
}

static void set_result(struct coop_tool_call *call, struct grep *grep, const char *stream,
		       const json_t *state)
{
	size_t size = coop_buf_size(&grep->out), count = json_array_size(grep->offsets);
	uint64_t next = grep->full || grep->partial ? grep->next : grep->at;
	uint64_t end = coop_tool_number(state, "end");

	coop_tool_set(call, "content",
		      json_stringn_nocheck(size ? (char *)coop_buf_front(&grep->out) : "", size));
	coop_tool_set(call, "stream", json_string(stream));
	coop_tool_set(call, "next_offset", json_integer((json_int_t)next));
	coop_tool_set(call, "total_bytes",
		      json_integer((json_int_t)(grep->at > end ? grep->at : end)));
	coop_tool_set(call, "eof", json_boolean(!grep->full && grep->ended));
	coop_tool_set(call, "matches", json_integer((json_int_t)count));
	coop_tool_set(call, "match_offsets", json_incref(grep->offsets));
	if (grep->late)
		coop_tool_set(call, "hint",
			      json_string("Not all was searched in time: go on with offset "
					  "next_offset."));
	else if (grep->full)
		coop_tool_set(
			call, "hint",
			json_string("More lines match: go on with offset next_offset, or make "
				    "the pattern narrower."));
}

/* Whether what is no end of a line's text can keep it from matching there: anchors of the whole
 * text, flags, and repetitions that give nothing back. */
static bool is_odd(const char *text)
{
	for (const char *at = text; *at; at++) {
		if (*at == '\\' && at[1] && strchr("AZzG", *++at))
			return true;
		if (*at == '+' && at > text && strchr("*+?}", at[-1]))
			return true;
		if (at[0] == '(' && at[1] == '?' && at[2] != ':' && strncmp(at, "(?i)", 4) != 0)
			return true;
	}
	return false;
}

static int compile_quick(struct grep *grep, const char *text, char reason[256])
{
	char lines[COOP_PATTERN_TEXT_MAX + 8];
	int size = snprintf(lines, sizeof lines, "(?m)%s", text);

	/* One that is as long as a pattern may be is looked for line by line, too. */
	if (is_odd(text) || size < 0 || (size_t)size > COOP_PATTERN_TEXT_MAX)
		return 0;
	return coop_pattern_new(lines, (size_t)size, true, &grep->quick, reason);
}

int coop_tool_grep(struct coop_tool_call *call, const char *id, const json_t *record,
		   const char *stream)
{
	const char *text = coop_arg_string(call->args, "grep", "");
	const json_t *state = coop_tool_stream(record, stream);
	uint64_t end = coop_tool_number(state, "end");
	struct grep *grep = coop_mem_zalloc(sizeof *grep);
	char reason[256];

	if (!grep)
		return coop_tool_no_memory(call);
	grep->call = call;
	grep->context = (size_t)coop_arg_int(call->args, "context", 2);
	grep->budget = (size_t)coop_arg_int(call->args, "length", 65536);
	grep->line_max = grep->budget < LINE_MAX ? grep->budget : LINE_MAX;
	grep->ended = json_is_true(json_object_get(state, "eof"));
	grep->at = (uint64_t)coop_arg_int(call->args, "offset", 0);
	grep->offsets = json_array();
	int r = coop_pattern_new(text, strlen(text), true, &grep->pattern, reason);
	if (r == 0)
		r = compile_quick(grep, text, reason);
	if (r == -EINVAL)
		(void)coop_tool_fail(call, "invalid_input", "grep", "grep: %s", reason);
	else if (r < 0)
		(void)coop_tool_no_memory(call);
	if (r == 0)
		r = search(grep, id, stream, end);
	if (r == 0)
		set_result(call, grep, stream, state);
	forget_before(grep);
	coop_pattern_free(grep->pattern);
	coop_pattern_free(grep->quick);
	coop_plain_free(grep->plain);
	coop_buf_clear(&grep->out);
	json_decref(grep->offsets);
	free(grep);
	return r;
}
