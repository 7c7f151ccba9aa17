#include "client/views/decoder.h"

#include <string.h>

#include "base/text/utf8.h"

#define ESC 0x1b
#define CANCEL 0x18
#define SUBSTITUTE 0x1a

/* What a byte is decoded with. */
struct step {
	struct coop_decoder *decoder;
	const struct coop_decoder_events *events;
	void *user;
};

void coop_decoder_init(struct coop_decoder *decoder, uint64_t offset)
{
	*decoder = (struct coop_decoder){.position = offset};
}

static void begin(struct coop_decoder *decoder, enum coop_sequence_kind kind, uint64_t offset)
{
	decoder->state = kind == COOP_SEQUENCE_OSC || kind == COOP_SEQUENCE_STRING
				 ? COOP_DECODER_STRING
				 : COOP_DECODER_SEQUENCE;
	decoder->kind = kind;
	decoder->began = offset;
	decoder->size = 0;
	decoder->before = 0;
}

static void keep(struct coop_decoder *decoder, uint8_t byte)
{
	if (decoder->size < sizeof decoder->text)
		decoder->text[decoder->size++] = (char)byte;
}

static int complete(const struct step *step, enum coop_sequence_kind kind)
{
	struct coop_decoder *decoder = step->decoder;
	size_t size = kind == COOP_SEQUENCE_STRING ? 0 : decoder->size;

	decoder->state = COOP_DECODER_GROUND;
	return step->events->sequence(step->user, kind, decoder->text, size);
}

/* The control characters U+0080 to U+009F begin sequences or mean nothing. */
static void high_control(struct coop_decoder *decoder, uint8_t second, uint64_t offset)
{
	if (second == 0x9b)
		begin(decoder, COOP_SEQUENCE_CONTROL, offset);
	else if (second == 0x9d)
		begin(decoder, COOP_SEQUENCE_OSC, offset);
	else if (second == 0x90 || second == 0x98 || second == 0x9e || second == 0x9f)
		begin(decoder, COOP_SEQUENCE_STRING, offset);
}

static int character(const struct step *step)
{
	struct coop_decoder *decoder = step->decoder;
	size_t size = decoder->pending_size;
	uint64_t offset = decoder->position + 1 - size;

	decoder->pending_size = 0;
	if (decoder->pending[0] == 0xc2 && decoder->pending[1] <= 0x9f) {
		high_control(decoder, decoder->pending[1], offset);
		return 0;
	}
	return step->events->character(step->user, (const char *)decoder->pending, size, offset,
				       true);
}

static int replace(const struct step *step, uint64_t offset)
{
	return step->events->character(step->user, "\xef\xbf\xbd", 3, offset, false);
}

static int ground(const struct step *step, uint8_t byte)
{
	struct coop_decoder *decoder = step->decoder;
	size_t before = decoder->pending_size;

	if (before || byte >= 0x80) {
		decoder->pending[decoder->pending_size++] = byte;
		if (coop_utf8_char(decoder->pending, decoder->pending_size))
			return character(step);
		if (coop_utf8_unfinished(decoder->pending, decoder->pending_size) ==
		    decoder->pending_size)
			return 0;
		decoder->pending_size = 0;
		int r = replace(step, decoder->position - before);
		/* What was pending is no character; this byte may begin one. */
		return before && r == 0 ? ground(step, byte) : r;
	}
	if (byte == ESC) {
		begin(decoder, COOP_SEQUENCE_ESCAPE, decoder->position);
		return 0;
	}
	if (byte < 0x20 || byte == 0x7f)
		return step->events->control(step->user, byte, decoder->position);
	return step->events->text(step->user, (const char *)&byte, 1, decoder->position);
}

/* A byte that has no place in the sequence: the sequence is over, and the byte stands for
 * itself. */
static int give_up(const struct step *step, uint8_t byte)
{
	step->decoder->state = COOP_DECODER_GROUND;
	return ground(step, byte);
}

/* The first byte behind ESC. True if that began a sequence of another kind. */
static bool turns(struct coop_decoder *decoder, uint8_t byte)
{
	if (byte == '[')
		begin(decoder, COOP_SEQUENCE_CONTROL, decoder->began);
	else if (byte == ']')
		begin(decoder, COOP_SEQUENCE_OSC, decoder->began);
	else if (byte == 'P' || byte == 'X' || byte == '^' || byte == '_' || byte == 'k')
		begin(decoder, COOP_SEQUENCE_STRING, decoder->began);
	else
		return false;
	return true;
}

static int sequence(const struct step *step, uint8_t byte)
{
	struct coop_decoder *decoder = step->decoder;
	bool is_escape = decoder->kind == COOP_SEQUENCE_ESCAPE;
	uint8_t first_final = is_escape ? 0x30 : 0x40;

	if (is_escape && !decoder->size && turns(decoder, byte))
		return 0;
	if (byte == CANCEL || byte == SUBSTITUTE) {
		decoder->state = COOP_DECODER_GROUND;
		return 0;
	}
	if (byte < 0x20 || byte > 0x7e || decoder->size == sizeof decoder->text)
		return give_up(step, byte);
	keep(decoder, byte);
	return byte >= first_final ? complete(step, decoder->kind) : 0;
}

static int string(const struct step *step, uint8_t byte)
{
	struct coop_decoder *decoder = step->decoder;
	bool is_osc = decoder->kind == COOP_SEQUENCE_OSC;

	if (byte == ESC) {
		decoder->state = COOP_DECODER_STRING_ENDS;
		return 0;
	}
	if (byte == '\a' && is_osc)
		return complete(step, decoder->kind);
	/* A lone introducer must not hide the output for long: no command of this kind has
	 * lines. */
	if (byte == '\n' && is_osc)
		return give_up(step, byte);
	if (byte == CANCEL || byte == SUBSTITUTE ||
	    decoder->position - decoder->began >= COOP_STRING_MAX)
		return complete(step, COOP_SEQUENCE_STRING);
	/* The string's end as a character, U+009C. */
	if (decoder->before == 0xc2 && byte == 0x9c) {
		if (decoder->size && (uint8_t)decoder->text[decoder->size - 1] == 0xc2)
			decoder->size--;
		return complete(step, decoder->kind);
	}
	decoder->before = byte;
	keep(decoder, byte);
	return 0;
}

static int string_ends(const struct step *step, uint8_t byte)
{
	struct coop_decoder *decoder = step->decoder;

	if (byte == '\\')
		return complete(step, decoder->kind);
	begin(decoder, COOP_SEQUENCE_ESCAPE, decoder->position - 1);
	return sequence(step, byte);
}

static int take(const struct step *step, uint8_t byte)
{
	switch (step->decoder->state) {
	case COOP_DECODER_SEQUENCE:
		return sequence(step, byte);
	case COOP_DECODER_STRING:
		return string(step, byte);
	case COOP_DECODER_STRING_ENDS:
		return string_ends(step, byte);
	case COOP_DECODER_GROUND:
		break;
	}
	return ground(step, byte);
}

static size_t printable(const uint8_t *bytes, size_t size)
{
	size_t at = 0;

	while (at < size && bytes[at] >= 0x20 && bytes[at] < 0x7f)
		at++;
	return at;
}

int coop_decoder_feed(struct coop_decoder *decoder, const void *bytes, size_t size,
		      const struct coop_decoder_events *events, void *user)
{
	const struct step step = {.decoder = decoder, .events = events, .user = user};
	const uint8_t *all = bytes;
	size_t at = 0;

	while (at < size) {
		/* Most of it is plain ASCII and needs no closer look. */
		size_t run = decoder->state == COOP_DECODER_GROUND && !decoder->pending_size
				     ? printable(all + at, size - at)
				     : 0;
		int r = run ? events->text(user, (const char *)all + at, run, decoder->position)
			    : take(&step, all[at]);
		if (r < 0)
			return r;
		run += !run;
		at += run;
		decoder->position += run;
	}
	return 0;
}

int coop_decoder_finish(struct coop_decoder *decoder, const struct coop_decoder_events *events,
			void *user)
{
	const struct step step = {.decoder = decoder, .events = events, .user = user};
	size_t pending = decoder->pending_size;

	decoder->state = COOP_DECODER_GROUND;
	decoder->pending_size = 0;
	return pending ? replace(&step, decoder->position - pending) : 0;
}

uint64_t coop_decoder_settled(const struct coop_decoder *decoder)
{
	return decoder->state == COOP_DECODER_GROUND ? decoder->position - decoder->pending_size
						     : decoder->began;
}
