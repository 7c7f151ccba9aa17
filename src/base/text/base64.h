/* Base64 (RFC 4648, with padding) for bytes that have to travel in JSON. */
#ifndef COOP_BASE_BASE64_H
#define COOP_BASE_BASE64_H

#include <stddef.h>

/* Length of the text for `size` bytes, without a NUL. */
size_t coop_base64_length(size_t size);

/* Writes exactly coop_base64_length(size) characters, and no NUL, with the fastest instructions
 * that this processor has. `data` may be NULL if there are none. */
void coop_base64_encode(const void *data, size_t size, char *text);

/* Room that the bytes of a text of that length need at most. */
size_t coop_base64_room(size_t length);

/* Writes the bytes that the text stands for. Only what the encoder writes is taken: no other
 * characters, padding whole, no bits lost. 0 with *ret_size set, or -EINVAL. */
int coop_base64_decode(const char *text, size_t length, void *data, size_t *ret_size);

#endif
