/* The ways of encoding that coop_base64_encode() chooses from, for it and for tests of each of
 * them. */
#ifndef COOP_BASE_BASE64_ENCODERS_H
#define COOP_BASE_BASE64_ENCODERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct coop_base64_encoder {
	const char *name; /* NULL ends the table */
	/* Whether this processor can. */
	bool (*usable)(void);
	/* Encodes some of the bytes at the front and returns how many: a multiple of 3, and less
	 * than `least` are left. It reads and writes nothing outside of [data, data + size) and of
	 * the text of what it took. */
	size_t (*encode)(const uint8_t *data, size_t size, char *text);
	size_t least; /* fewer bytes than this are none of its */
};

/* Fastest first; the last one is usable everywhere and leaves less than 3 bytes. */
extern const struct coop_base64_encoder coop_base64_encoders[];

/* Encodes all of it with that one. */
void coop_base64_encode_with(const struct coop_base64_encoder *encoder, const void *data,
			     size_t size, char *text);

size_t coop_base64_encode_avx2(const uint8_t *data, size_t size, char *text);
size_t coop_base64_encode_ssse3(const uint8_t *data, size_t size, char *text);
size_t coop_base64_encode_neon(const uint8_t *data, size_t size, char *text);

#endif
