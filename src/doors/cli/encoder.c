#include "encoder.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base64.h"

static const char *const stream_names[CLI_STREAMS] = {"stdin", "stdout", "stderr", "pty"};

const char *cli_stream_name(enum coop_stream stream)
{
	return stream_names[stream & 3];
}

enum coop_stream cli_stream_parse(const char *name)
{
	if (strcmp(name, "tty") == 0)
		return COOP_PTY;
	for (unsigned i = 1; i < CLI_STREAMS; i++)
		if (strcmp(name, stream_names[i]) == 0)
			return (enum coop_stream)i;
	return COOP_STDIN;
}

static json_t *base64_json(const void *data, size_t size)
{
	const size_t length = cli_base64_length(size);
	COOP_AUTO_FREE char *text = malloc(length + 1);
	if (!text)
		return NULL;
	cli_base64_encode(data, size, text);
	return json_stringn_nocheck(text, length);
}

static void emit_bytes(struct cli_encoder *encoder, enum coop_stream stream, uint64_t offset,
		       const void *data, size_t size, const char *at)
{
	if (size == 0)
		return;
	/* jansson refuses what is not UTF-8, which is the very question. */
	json_t *text = json_stringn(data, size);
	json_t *line = json_pack("{s:s, s:s, s:I, s:o, s:s*}", "type", "output", "stream",
				 cli_stream_name(stream), "offset", (json_int_t)offset,
				 text ? "text" : "base64", text ? text : base64_json(data, size),
				 "at", at);
	char *dump = line ? json_dumps(line, JSON_COMPACT) : NULL;
	json_decref(line);
	if (!dump)
		return;
	/* The newline takes the place of the NUL: one write for the whole line. */
	const size_t length = strlen(dump);
	dump[length] = '\n';
	encoder->emit(encoder->user, dump, length + 1);
	free(dump);
}

static void flush_stream(struct cli_encoder *encoder, enum coop_stream stream)
{
	const size_t size = encoder->kept[stream].size;
	encoder->kept[stream].size = 0;
	emit_bytes(encoder, stream, encoder->kept[stream].offset, encoder->kept[stream].bytes, size,
		   NULL);
}

void cli_encoder_flush(struct cli_encoder *encoder)
{
	for (unsigned i = 0; i < CLI_STREAMS; i++)
		flush_stream(encoder, (enum coop_stream)i);
}

/* The beginning of a character that was kept back, in front of the bytes that follow it. */
static void *join_kept(struct cli_encoder *encoder, const struct coop_chunk *chunk)
{
	const size_t kept = encoder->kept[chunk->stream].size;
	char *joined = malloc(kept + chunk->size);
	if (!joined)
		return NULL;
	memcpy(joined, encoder->kept[chunk->stream].bytes, kept);
	memcpy(joined + kept, chunk->data, chunk->size);
	return joined;
}

/* How many bytes at the front are text. What follows them in the same chunk is given as base64, whatever comes after the first
 * byte that is none: two lines for a chunk at most. */
static size_t text_length(const uint8_t *data, size_t size)
{
	size_t length = 0, step;
	while (length < size && (step = coop_utf8_char(data + length, size - length)) > 0)
		length += step;
	return length;
}

void cli_encoder_feed(struct cli_encoder *encoder, const struct coop_chunk *chunk, const char *at)
{
	const enum coop_stream stream = chunk->stream;
	/* After a gap the rest of the character is lost. */
	if (encoder->kept[stream].size &&
	    encoder->kept[stream].offset + encoder->kept[stream].size != chunk->offset)
		flush_stream(encoder, stream);

	const uint8_t *data = chunk->data;
	size_t size = chunk->size;
	uint64_t offset = chunk->offset;
	COOP_AUTO_FREE void *joined = NULL;
	if (encoder->kept[stream].size) {
		joined = join_kept(encoder, chunk);
		if (!joined)
			return;
		data = joined;
		size += encoder->kept[stream].size;
		offset = encoder->kept[stream].offset;
	}
	const size_t rest = coop_utf8_unfinished(data, size), text = text_length(data, size - rest);
	emit_bytes(encoder, stream, offset, data, text, at);
	emit_bytes(encoder, stream, offset + text, data + text, size - rest - text, at);
	memcpy(encoder->kept[stream].bytes, data + size - rest, rest);
	encoder->kept[stream].size = rest;
	encoder->kept[stream].offset = offset + size - rest;
}
