/* Bytes for a terminal, taken apart: characters, control characters, sequences. Resumable at every
 * byte; what a piece of input is does not depend on how it was cut. A part of plain.c and
 * screen.c. */
#ifndef COOP_VIEWS_DECODER_H
#define COOP_VIEWS_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COOP_SEQUENCE_MAX 256u /* bytes of an escape or control sequence; more is none */
#define COOP_STRING_MAX 65536u /* bytes of a command string (OSC, DCS …); then it is given up */

enum coop_sequence_kind {
	COOP_SEQUENCE_ESCAPE,  /* text: what follows ESC */
	COOP_SEQUENCE_CONTROL, /* text: what follows CSI */
	COOP_SEQUENCE_OSC,     /* text: the string, as far as it has room */
	COOP_SEQUENCE_STRING,  /* DCS, SOS, PM, APC; or a string that was given up. No text */
};

/* Calls for what was found. Each gets the position in the stream of its first byte, and returns 0,
 * or a negative errno, which ends the feeding. */
struct coop_decoder_events {
	/* Printable ASCII. */
	int (*text)(void *user, const char *bytes, size_t size, uint64_t offset);
	/* Any other character but control characters; U+FFFD in place of bytes that are none (then
	 * `valid` is false). */
	int (*character)(void *user, const char *bytes, size_t size, uint64_t offset, bool valid);
	/* Below 0x20 (not ESC), or 0x7f. */
	int (*control)(void *user, uint8_t byte, uint64_t offset);
	/* Complete; `text` is not ended by a NUL. */
	int (*sequence)(void *user, enum coop_sequence_kind kind, const char *text, size_t size);
};

/* Open, to be embedded. */
struct coop_decoder {
	enum {
		COOP_DECODER_GROUND,
		COOP_DECODER_SEQUENCE, /* escape or control sequence */
		COOP_DECODER_STRING,
		COOP_DECODER_STRING_ENDS, /* behind an ESC in one: its end if a backslash follows */
	} state;
	enum coop_sequence_kind kind;
	uint64_t position; /* of the next byte */
	uint64_t began;    /* of the sequence that is not complete */
	char text[COOP_SEQUENCE_MAX];
	size_t size;
	uint8_t before;     /* the byte before this one, in a string */
	uint8_t pending[4]; /* a character that is not complete */
	size_t pending_size;
};

/* No sequence or character is begun: what is printable stands for itself. */
static inline bool coop_decoder_is_idle(const struct coop_decoder *decoder)
{
	return decoder->state == COOP_DECODER_GROUND && decoder->pending_size == 0;
}

void coop_decoder_init(struct coop_decoder *decoder, uint64_t offset);
/* 0 or what an event returned. */
int coop_decoder_feed(struct coop_decoder *decoder, const void *bytes, size_t size,
		      const struct coop_decoder_events *events, void *user);
/* Nothing follows: an incomplete character becomes U+FFFD, an incomplete sequence nothing. */
int coop_decoder_finish(struct coop_decoder *decoder, const struct coop_decoder_events *events,
			void *user);
/* Position of what is held back: the sequence or character that is not complete; that of the next
 * byte if there is none. */
uint64_t coop_decoder_settled(const struct coop_decoder *decoder);

#endif
