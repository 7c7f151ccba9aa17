#include "doors/tools/shell/transcript.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "client/views/budget.h"
#include "client/views/plain.h"

/* Where old bytes end, a line should begin: it is looked for this far. */
#define LINE_MAX 4096u
/* Collapsing is slow: of much only the two ends are, this much each or twice the budget. */
#define PART_MAX (128u << 10)

/* Bytes of the stream, which can be shown up to any place. */
struct piece {
	struct coop_buf bytes;
	uint64_t at; /* the offset of the first */
};

struct coop_transcript {
	struct coop_plain *plain; /* the text from `base` on */
	uint64_t base;
	size_t budget;
	/* The beginning, once what follows it is forgotten; `latest` is all till then. */
	bool cut;
	struct piece head, latest;
};

struct coop_transcript *coop_transcript_new(size_t budget, uint64_t raw)
{
	struct coop_transcript *transcript = coop_mem_zalloc(sizeof *transcript);

	if (!transcript)
		return NULL;
	transcript->budget = budget;
	transcript->head.at = transcript->latest.at = raw;
	transcript->plain = coop_plain_new(0, raw);
	if (!transcript->plain) {
		free(transcript);
		return NULL;
	}
	return transcript;
}

void coop_transcript_free(struct coop_transcript *transcript)
{
	if (!transcript)
		return;
	coop_plain_free(transcript->plain);
	coop_buf_clear(&transcript->head.bytes);
	coop_buf_clear(&transcript->latest.bytes);
	free(transcript);
}

int coop_transcript_feed(struct coop_transcript *transcript, const void *bytes, size_t size)
{
	if (size && coop_buf_append(&transcript->latest.bytes, bytes, size) < 0)
		return -ENOMEM;
	return size ? coop_plain_feed(transcript->plain, bytes, size) : 0;
}

int coop_transcript_finish(struct coop_transcript *transcript)
{
	return coop_plain_finish(transcript->plain);
}

struct coop_mark coop_transcript_end(const struct coop_transcript *transcript)
{
	size_t size;

	(void)coop_plain_text(transcript->plain, &size);
	return (struct coop_mark){
		.text = transcript->base + size,
		.raw = coop_plain_offset(transcript->plain, size),
	};
}

struct coop_mark coop_transcript_mark(const struct coop_transcript *transcript, uint64_t text)
{
	size_t at = (size_t)(text - transcript->base);

	/* Sequences that follow are not part of what comes before them: they may erase it. */
	return (struct coop_mark){
		.text = text,
		.raw = at ? coop_plain_offset(transcript->plain, at - 1) + 1
			  : coop_plain_offset(transcript->plain, 0),
	};
}

const char *coop_transcript_text(const struct coop_transcript *transcript, uint64_t *from,
				 size_t *ret_size)
{
	size_t size;
	const char *text = coop_plain_text(transcript->plain, &size);

	if (*from < transcript->base)
		*from = transcript->base;
	size_t at = (size_t)(*from - transcript->base);
	*ret_size = size - at;
	return text + at;
}

/* Bytes of a piece. */
struct span {
	const uint8_t *bytes;
	size_t size;
	uint64_t at;
};

static struct span span_of(const struct piece *piece, uint64_t end)
{
	struct span span = {coop_buf_front(&piece->bytes), coop_buf_size(&piece->bytes), piece->at};

	if (end <= piece->at)
		span.size = 0;
	else if (end - piece->at < span.size)
		span.size = (size_t)(end - piece->at);
	return span;
}

static struct span first_of(struct span span, size_t max)
{
	if (span.size > max)
		span.size = max;
	return span;
}

/* The last bytes, from the start of a line on if one is near. */
static struct span last_of(struct span span, size_t max)
{
	if (span.size <= max)
		return span;
	size_t old = span.size - max;
	const uint8_t *line = memchr(span.bytes + old, '\n', max < LINE_MAX ? max : LINE_MAX);
	if (line)
		old = (size_t)(line - span.bytes) + 1;
	return (struct span){span.bytes + old, span.size - old, span.at + old};
}

/* As a terminal shows it. NULL without memory. */
static struct coop_plain *render(struct span span)
{
	struct coop_plain *plain = coop_plain_new(COOP_PLAIN_COLLAPSE, span.at);

	if (plain && ((span.size && coop_plain_feed(plain, span.bytes, span.size) < 0) ||
		      coop_plain_finish(plain) < 0)) {
		coop_plain_free(plain);
		return NULL;
	}
	return plain;
}

static size_t part_max(const struct coop_transcript *transcript)
{
	return transcript->budget > PART_MAX / 2 ? 2 * transcript->budget : PART_MAX;
}

/* How much of a beginning is shown before something that is left out. */
static size_t head_size(const struct coop_transcript *transcript, const struct coop_plain *head)
{
	size_t size;
	const char *text = coop_plain_text(head, &size);
	size_t part = coop_budget_cut(text, size, transcript->budget).head;

	return part <= transcript->budget / 2
		       ? part
		       : coop_budget_head(text, size, transcript->budget / 2);
}

/* Keeps the beginning, as what follows it is about to be forgotten. */
static int keep_head(struct coop_transcript *transcript)
{
	if (transcript->cut)
		return 0;
	struct span all = first_of(span_of(&transcript->latest, UINT64_MAX), part_max(transcript));
	struct coop_plain *plain = render(all);
	if (!plain)
		return -ENOMEM;
	size_t size = (size_t)(coop_plain_offset(plain, head_size(transcript, plain)) - all.at);
	coop_plain_free(plain);
	if (size && coop_buf_append(&transcript->head.bytes, all.bytes, size) < 0)
		return -ENOMEM;
	transcript->cut = true;
	return 0;
}

int coop_transcript_skip(struct coop_transcript *transcript, uint64_t raw)
{
	struct coop_mark end = coop_transcript_end(transcript);
	int r = keep_head(transcript);
	struct coop_plain *plain = r < 0 ? NULL : coop_plain_new(0, raw);

	if (!plain)
		return -ENOMEM;
	coop_plain_free(transcript->plain);
	transcript->plain = plain;
	transcript->base = end.text;
	coop_buf_clear(&transcript->latest.bytes);
	transcript->latest.at = raw;
	return 0;
}

static int trim_latest(struct coop_transcript *transcript)
{
	struct piece *latest = &transcript->latest;

	if (coop_buf_size(&latest->bytes) <= 2 * COOP_TRANSCRIPT_KEEP)
		return 0;
	if (keep_head(transcript) < 0)
		return -ENOMEM;
	struct span rest = last_of(span_of(latest, UINT64_MAX), COOP_TRANSCRIPT_KEEP);
	coop_buf_consume(&latest->bytes, (size_t)(rest.at - latest->at));
	latest->at = rest.at;
	return 0;
}

int coop_transcript_trim(struct coop_transcript *transcript)
{
	size_t size;

	(void)coop_plain_text(transcript->plain, &size);
	if (size > 2 * COOP_TRANSCRIPT_KEEP) {
		coop_plain_consume(transcript->plain, size - COOP_TRANSCRIPT_KEEP);
		transcript->base += size - COOP_TRANSCRIPT_KEEP;
	}
	return trim_latest(transcript);
}

/* Beginning and end with the hole between them, which may be empty. */
static int tell(const char *head, size_t front, const char *tail, size_t back,
		const uint64_t hole[2], json_t **ret_text, json_t **ret_omitted)
{
	char *all = coop_mem_alloc(front + back);
	json_t *text = NULL, *omitted = NULL;

	if (all) {
		memcpy(all, head, front);
		memcpy(all + front, tail, back);
		text = json_stringn_nocheck(all, front + back);
	}
	free(all);
	if (hole[1] > hole[0])
		omitted = json_pack("{s:I, s:I}", "from", (json_int_t)hole[0], "to",
				    (json_int_t)hole[1]);
	if (!text || (hole[1] > hole[0] && !omitted)) {
		json_decref(text);
		json_decref(omitted);
		return -ENOMEM;
	}
	*ret_text = text;
	*ret_omitted = omitted;
	return 0;
}

static int show_whole(const struct coop_transcript *transcript, struct span span, json_t **ret_text,
		      json_t **ret_omitted)
{
	struct coop_plain *all = render(span);
	uint64_t hole[2] = {0, 0};
	size_t size;

	if (!all)
		return -ENOMEM;
	const char *text = coop_plain_text(all, &size);
	struct coop_budget_cut cut = coop_budget_cut(text, size, transcript->budget);
	if (cut.head < size) {
		hole[0] = coop_plain_offset(all, cut.head);
		hole[1] = coop_plain_offset(all, size - cut.tail);
	}
	int r = tell(text, cut.head, text + size - cut.tail, cut.head < size ? cut.tail : 0, hole,
		     ret_text, ret_omitted);
	coop_plain_free(all);
	return r;
}

/* Something between the two is left out. The last may be empty: then that reaches to `end`. */
static int show_parts(const struct coop_transcript *transcript, struct span first, struct span last,
		      uint64_t end, json_t **ret_text, json_t **ret_omitted)
{
	struct coop_plain *head = render(first), *latest = render(last);
	int r = -ENOMEM;

	if (head && latest) {
		size_t part = head_size(transcript, head), size;
		const char *text = coop_plain_text(latest, &size);
		size_t tail = coop_budget_tail(text, size, transcript->budget - part);
		uint64_t hole[2] = {coop_plain_offset(head, part),
				    size ? coop_plain_offset(latest, size - tail) : end};
		r = tell(coop_plain_text(head, &(size_t){0}), part, text + size - tail, tail, hole,
			 ret_text, ret_omitted);
	}
	coop_plain_free(head);
	coop_plain_free(latest);
	return r;
}

int coop_transcript_show(const struct coop_transcript *transcript, uint64_t end, json_t **ret_text,
			 json_t **ret_omitted)
{
	struct span all = span_of(&transcript->latest, end);
	size_t max = part_max(transcript);

	if (!transcript->cut && all.size <= 2 * max)
		return show_whole(transcript, all, ret_text, ret_omitted);
	return show_parts(transcript,
			  transcript->cut ? span_of(&transcript->head, end) : first_of(all, max),
			  last_of(all, max), end, ret_text, ret_omitted);
}
