/* The keeper's secret key, and hashes. Tokens, and values that audit must not show, are stored as
 * keyed hashes: whoever reads the files without the key cannot try values against them. Any
 * thread. */
#ifndef COOP_RECORDS_SECRET_H
#define COOP_RECORDS_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interface/err.h"

#define COOP_HASH_SIZE 32u
#define COOP_HASH_TEXT 65u /* in hex, with its NUL */

struct coop_secret;

/* Reads `<dir>/key`, or makes it (32 random bytes, mode 0600) if there is none. A key of another
 * size, or one that others may read, is an error: it is never replaced. dir NULL: a key that lives
 * only in memory. 0, or the error filled. */
int coop_secret_open(const char *dir, struct coop_secret **ret, struct coop_err *err);
void coop_secret_free(struct coop_secret *secret); /* NULL is fine; the key is wiped */

/* HMAC-SHA256 over `purpose`, a NUL and the bytes, so that a hash made for one purpose means
 * nothing for another. 0 or -ENOMEM. */
int coop_secret_hash(const struct coop_secret *secret, const char *purpose, const void *data,
		     size_t size, uint8_t ret[COOP_HASH_SIZE]);

/* SHA-256 of the bytes. 0 or -ENOMEM. */
int coop_hash(const void *data, size_t size, uint8_t ret[COOP_HASH_SIZE]);

void coop_hash_format(const uint8_t hash[COOP_HASH_SIZE], char ret[COOP_HASH_TEXT]);

/* Takes the same time wherever they differ. */
bool coop_hash_equal(const uint8_t a[COOP_HASH_SIZE], const uint8_t b[COOP_HASH_SIZE]);

/* `size` bytes that nobody can guess, as lower-case hex with a NUL (ret has 2 * size + 1 bytes). 0
 * or -errno. */
int coop_secret_random(size_t size, char *ret);

#endif
