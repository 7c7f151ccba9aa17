/* Base64 (RFC 4648, with padding) for bytes that have to travel in JSON. */
#ifndef COOP_CLI_BASE64_H
#define COOP_CLI_BASE64_H

#include <stddef.h>

/* Length of the text for `size` bytes, without a NUL. */
size_t cli_base64_length(size_t size);

/* Writes exactly cli_base64_length(size) characters, and no NUL. */
void cli_base64_encode(const void *data, size_t size, char *text);

#endif
