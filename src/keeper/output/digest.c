#include "keeper/output/digest.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "keeper/output/output.h"
#include "keeper/output/stream.h"
#include "records/secret.h"

#define PREFIX "sha256:"
#define TEXT_SIZE (sizeof PREFIX - 1 + COOP_HASH_TEXT)

struct coop_digest {
	EVP_MD_CTX *ctx; /* NULL: final */
	uint64_t bytes, newlines;
	uint8_t last;         /* the last byte, if there was one */
	bool broken;          /* the library failed: there is nothing to show */
	char text[TEXT_SIZE]; /* once it is final */
};

struct coop_digest *coop_digest_new(void)
{
	struct coop_digest *digest = coop_mem_zalloc(sizeof *digest);

	if (!digest)
		return NULL;
	digest->ctx = EVP_MD_CTX_new();
	if (digest->ctx && EVP_DigestInit_ex(digest->ctx, EVP_sha256(), NULL))
		return digest;
	coop_digest_free(digest);
	return NULL;
}

struct coop_digest *coop_digest_restore(const json_t *json)
{
	struct coop_digest *digest = coop_mem_zalloc(sizeof *digest);
	const char *text = json_string_value(json_object_get(json, "sha256"));

	if (!digest)
		return NULL;
	digest->bytes = (uint64_t)json_integer_value(json_object_get(json, "bytes"));
	digest->newlines = (uint64_t)json_integer_value(json_object_get(json, "lines"));
	digest->last = '\n'; /* what stood unfinished at the end is counted already */
	digest->broken = !text || strlen(text) >= sizeof digest->text;
	if (!digest->broken)
		memcpy(digest->text, text, strlen(text) + 1);
	return digest;
}

void coop_digest_free(struct coop_digest *digest)
{
	if (!digest)
		return;
	EVP_MD_CTX_free(digest->ctx);
	free(digest);
}

static void take(struct coop_digest *digest, const uint8_t *bytes, size_t size)
{
	uint64_t newlines = 0;

	for (size_t i = 0; i < size; i++)
		newlines += bytes[i] == '\n';
	digest->newlines += newlines;
	digest->bytes += size;
	digest->last = bytes[size - 1];
	if (!EVP_DigestUpdate(digest->ctx, bytes, size))
		digest->broken = true;
}

/* As the bytes come in: later the ring may not have them any more. */
void coop_digest_feed(const struct coop_outlet *stream, const struct iovec *places, size_t size)
{
	struct coop_digest *digest = stream->output->digest;

	if (!digest->ctx ||
	    (stream->output->stage >= COOP_OUTPUT_SETTLED && stream->told_end != UINT64_MAX))
		return;
	for (; size; places++) {
		size_t part = places->iov_len < size ? places->iov_len : size;
		if (part)
			take(digest, places->iov_base, part);
		size -= part;
	}
}

/* The hash of what `ctx` has taken in, which it loses by that. */
static bool finish(EVP_MD_CTX *ctx, char ret[TEXT_SIZE])
{
	uint8_t hash[COOP_HASH_SIZE];
	char hex[COOP_HASH_TEXT];

	if (!EVP_DigestFinal_ex(ctx, hash, NULL))
		return false;
	coop_hash_format(hash, hex);
	(void)snprintf(ret, TEXT_SIZE, "%s%s", PREFIX, hex);
	return true;
}

void coop_digest_settle(struct coop_output *output)
{
	struct coop_digest *digest = output->digest;

	if (!digest || !digest->ctx || output->stage < COOP_OUTPUT_SETTLED)
		return;
	for (int i = 0; i < output->count; i++) {
		if (output->streams[i].told_end == UINT64_MAX)
			return;
	}
	if (!finish(digest->ctx, digest->text))
		digest->broken = true;
	EVP_MD_CTX_free(digest->ctx);
	digest->ctx = NULL;
}

/* Of one that is not final, what it would be if nothing more came. */
static bool interim(const struct coop_digest *digest, char ret[TEXT_SIZE])
{
	EVP_MD_CTX *copy = EVP_MD_CTX_new();
	bool good = copy && EVP_MD_CTX_copy_ex(copy, digest->ctx) && finish(copy, ret);

	EVP_MD_CTX_free(copy);
	return good;
}

void coop_digest_write(const struct coop_output *output, struct coop_jsonw *w, const char *name)
{
	const struct coop_digest *digest = output->digest;
	char text[TEXT_SIZE];

	if (!digest || output->stage < COOP_OUTPUT_SETTLED || digest->broken ||
	    (digest->ctx && !interim(digest, text))) {
		coop_jsonw_null(w, name);
		return;
	}
	coop_jsonw_begin(w, name);
	coop_jsonw_uint(w, "bytes", digest->bytes);
	coop_jsonw_uint(w, "lines",
			digest->newlines + (digest->bytes && digest->last != '\n' ? 1 : 0));
	coop_jsonw_string(w, "sha256", digest->ctx ? text : digest->text);
	coop_jsonw_end(w);
}
