/* UTF-8, as far as chunks and JSON need it. */
#ifndef COOP_BASE_UTF8_H
#define COOP_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length (1 to 4) of the well-formed character at the start of `bytes`; 0 if there is none (invalid
 * or cut short). */
size_t coop_utf8_char(const uint8_t *bytes, size_t size);

/* Number of bytes (0 to 3) at the end of `bytes` that begin a character whose rest has not come
 * yet. Bytes that can not become a character are not counted. */
size_t coop_utf8_unfinished(const uint8_t *bytes, size_t size);

#endif
