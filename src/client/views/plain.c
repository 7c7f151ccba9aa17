#include "client/views/plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "client/views/decoder.h"
#include "client/views/line.h"
#include "client/views/runs.h"

#define RETURNS_MAX 8u   /* carriage returns before a line feed that are part of it */
#define NUMBER_MAX 10000 /* in a control sequence: larger ones count as this */

struct coop_plain {
	unsigned flags;
	bool valid;
	bool broken;          /* was without memory once: the text is not whole */
	unsigned returns;     /* carriage returns just seen, which a line feed would swallow */
	uint64_t returns_end; /* position behind them */
	struct coop_decoder decoder;
	struct coop_placed_text text;
	struct coop_line line; /* with COLLAPSE: what stands at the end of the text */
};

struct coop_plain *coop_plain_new(unsigned flags, uint64_t offset)
{
	struct coop_plain *plain = coop_mem_zalloc(sizeof *plain);

	if (!plain)
		return NULL;
	plain->flags = flags;
	plain->valid = true;
	coop_decoder_init(&plain->decoder, offset);
	return plain;
}

void coop_plain_free(struct coop_plain *plain)
{
	if (!plain)
		return;
	coop_placed_clear(&plain->text);
	coop_line_clear(&plain->line);
	free(plain);
}

static bool collapses(const struct coop_plain *plain)
{
	return plain->flags & COOP_PLAIN_COLLAPSE;
}

static int end_line(struct coop_plain *plain)
{
	if (coop_line_show(&plain->line, &plain->text) < 0)
		return -ENOMEM;
	coop_line_end(&plain->line);
	return 0;
}

/* Carriage returns that no line feed followed stay. */
static int keep_returns(struct coop_plain *plain)
{
	unsigned count = plain->returns;

	plain->returns = 0;
	return coop_placed_append(&plain->text, "\r\r\r\r\r\r\r\r", count,
				  plain->returns_end - count, false);
}

static int put_cell(struct coop_plain *plain, const char *bytes, size_t size, uint64_t offset,
		    bool flat)
{
	struct coop_glyph cell = {.offset = offset, .size = (uint8_t)size, .flat = flat};

	memcpy(cell.bytes, bytes, size);
	if (coop_line_is_full(&plain->line) && end_line(plain) < 0)
		return -ENOMEM;
	return coop_line_put(&plain->line, &cell);
}

static int put_text(void *user, const char *bytes, size_t size, uint64_t offset)
{
	struct coop_plain *plain = user;

	if (!collapses(plain)) {
		if (plain->returns && keep_returns(plain) < 0)
			return -ENOMEM;
		return coop_placed_append(&plain->text, bytes, size, offset, false);
	}
	for (size_t at = 0; at < size; at++) {
		if (put_cell(plain, bytes + at, 1, offset + at, false) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int put_character(void *user, const char *bytes, size_t size, uint64_t offset, bool valid)
{
	struct coop_plain *plain = user;

	plain->valid = plain->valid && valid;
	if (collapses(plain))
		return put_cell(plain, bytes, size, offset, !valid);
	if (plain->returns && keep_returns(plain) < 0)
		return -ENOMEM;
	return coop_placed_append(&plain->text, bytes, size, offset, !valid);
}

static int carriage_return(struct coop_plain *plain, uint64_t offset)
{
	if (collapses(plain)) {
		coop_line_return(&plain->line);
		return 0;
	}
	/* Only those that follow each other directly belong together. */
	bool is_apart = plain->returns && plain->returns_end != offset;
	if ((is_apart || plain->returns == RETURNS_MAX) && keep_returns(plain) < 0)
		return -ENOMEM;
	plain->returns++;
	plain->returns_end = offset + 1;
	return 0;
}

static int line_feed(struct coop_plain *plain, uint64_t offset)
{
	plain->returns = 0;
	if (collapses(plain) && end_line(plain) < 0)
		return -ENOMEM;
	return coop_placed_append(&plain->text, "\n", 1, offset, false);
}

static int take_control(void *user, uint8_t byte, uint64_t offset)
{
	struct coop_plain *plain = user;

	switch (byte) {
	case '\n':
		return line_feed(plain, offset);
	case '\r':
		return carriage_return(plain, offset);
	case '\t':
		return put_text(plain, "\t", 1, offset);
	case '\b':
		if (!collapses(plain))
			return put_text(plain, "\b", 1, offset);
		coop_line_back(&plain->line);
		return 0;
	default:
		return 0;
	}
}

/* The first number of a control sequence, -1 for none; false if it has more in it than numbers, so
 * that it means something else. */
static bool first_number(const char *text, size_t size, int *ret)
{
	int number = -1;
	bool is_first = true;

	for (size_t at = 0; at + 1 < size; at++) {
		if (text[at] == ';' || text[at] == ':')
			is_first = false;
		else if (text[at] < '0' || text[at] > '9')
			return false;
		else if (is_first)
			number = (number < 0 ? 0 : number) * 10 + (text[at] - '0');
		if (number > NUMBER_MAX)
			number = NUMBER_MAX;
	}
	*ret = number;
	return true;
}

static int take_sequence(void *user, enum coop_sequence_kind kind, const char *text, size_t size)
{
	struct coop_plain *plain = user;
	int number;

	if (kind == COOP_SEQUENCE_CONTROL && collapses(plain) && first_number(text, size, &number))
		coop_line_control(&plain->line, text[size - 1], number);
	return 0;
}

static const struct coop_decoder_events events = {
	.text = put_text,
	.character = put_character,
	.control = take_control,
	.sequence = take_sequence,
};

/* A failure lasts: bytes are missing. */
static int settle(struct coop_plain *plain, int r)
{
	if (r == 0 && collapses(plain))
		r = coop_line_show(&plain->line, &plain->text);
	plain->broken = r < 0;
	return r;
}

/* How many of the bytes are whole lines of nothing but printable ASCII and tabs: these stand for
 * themselves. */
static size_t whole_lines(const uint8_t *bytes, size_t size)
{
	size_t at = 0;

	while (at < size &&
	       ((bytes[at] >= 0x20 && bytes[at] < 0x7f) || bytes[at] == '\n' || bytes[at] == '\t'))
		at++;
	const uint8_t *last = at ? memrchr(bytes, '\n', at) : NULL;
	return last ? (size_t)(last - bytes) + 1 : 0;
}

/* Nothing is being overwritten or held back. */
static bool is_at_line_start(const struct coop_plain *plain)
{
	return plain->line.count == 0 && plain->line.column == 0 && plain->line.shown == 0 &&
	       coop_decoder_is_idle(&plain->decoder);
}

/* Most output is lines of plain text, which need no cells. */
static int feed_collapsing(struct coop_plain *plain, const uint8_t *bytes, size_t size)
{
	int r = 0;

	while (r == 0 && size) {
		size_t count = is_at_line_start(plain) ? whole_lines(bytes, size) : 0;
		if (count) {
			r = coop_placed_append(&plain->text, bytes, count, plain->decoder.position,
					       false);
			plain->decoder.position += count;
		} else {
			const uint8_t *end = memchr(bytes, '\n', size);
			count = end ? (size_t)(end - bytes) + 1 : size;
			r = coop_decoder_feed(&plain->decoder, bytes, count, &events, plain);
		}
		bytes += count;
		size -= count;
	}
	return r;
}

int coop_plain_feed(struct coop_plain *plain, const void *bytes, size_t size)
{
	if (plain->broken)
		return -ENOMEM;
	return settle(plain, collapses(plain) ? feed_collapsing(plain, bytes, size)
					      : coop_decoder_feed(&plain->decoder, bytes, size,
								  &events, plain));
}

int coop_plain_finish(struct coop_plain *plain)
{
	if (plain->broken || (plain->returns && keep_returns(plain) < 0))
		return -ENOMEM;
	return settle(plain, coop_decoder_finish(&plain->decoder, &events, plain));
}

const char *coop_plain_text(const struct coop_plain *plain, size_t *ret_size)
{
	const uint8_t *front = coop_buf_front(&plain->text.bytes);

	*ret_size = coop_placed_size(&plain->text);
	return front ? (const char *)front : "";
}

uint64_t coop_plain_offset(const struct coop_plain *plain, size_t at)
{
	if (at < coop_placed_size(&plain->text))
		return coop_placed_offset(&plain->text, at);
	uint64_t end = coop_decoder_settled(&plain->decoder);
	if (plain->returns)
		end = plain->returns_end - plain->returns;
	return plain->decoder.position - end > COOP_PLAIN_HELD_MAX ? plain->decoder.position : end;
}

void coop_plain_consume(struct coop_plain *plain, size_t count)
{
	if (count > coop_placed_size(&plain->text) - plain->line.shown_bytes)
		coop_line_end(&plain->line);
	coop_placed_consume(&plain->text, count);
}

bool coop_plain_valid(const struct coop_plain *plain)
{
	return plain->valid;
}
