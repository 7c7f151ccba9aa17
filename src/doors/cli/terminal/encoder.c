#include "doors/cli/terminal/encoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/base64.h"
#include "base/text/utf8.h"
#include "client/text.h"
#include "doors/cli/clean.h"

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
	const size_t length = coop_base64_length(size);
	COOP_AUTO_FREE char *text = malloc(length + 1);
	if (!text)
		return NULL;
	coop_base64_encode(data, size, text);
	return json_stringn_nocheck(text, length);
}

/* A piece of output on its way out. */
struct piece {
	enum coop_stream stream;
	uint64_t offset;
	const uint8_t *data;
	size_t size;
	const char *at;
};

/* One line; takes over `content`. */
static void emit_line(struct cli_encoder *encoder, const struct piece *piece, const char *name,
		      json_t *content, bool valid)
{
	json_t *line =
		json_pack("{s:s, s:s, s:I, s:o, s:b, s:s*}", "type", "output", "stream",
			  cli_stream_name(piece->stream), "offset", (json_int_t)piece->offset, name,
			  content, "utf8_valid", valid, "at", piece->at);
	const uint64_t next = piece->offset + piece->size;
	if (encoder->text)
		(void)json_object_set_new(line, "next", json_integer((json_int_t)next));
	char *dump = line ? cli_clean_dump(line, JSON_COMPACT) : NULL;
	json_decref(line);
	if (!dump)
		return;
	/* The newline takes the place of the NUL: one write for the whole line. */
	const size_t length = strlen(dump);
	dump[length] = '\n';
	encoder->emit(encoder->user, dump, length + 1);
	free(dump);
}

static void emit_bytes(struct cli_encoder *encoder, const struct piece *piece)
{
	if (piece->size == 0)
		return;
	/* jansson refuses what is not UTF-8, which is the very question. */
	json_t *text = json_stringn((const char *)piece->data, piece->size);
	emit_line(encoder, piece, text ? "text" : "base64",
		  text ? text : base64_json(piece->data, piece->size), text);
}

static void emit_text(struct cli_encoder *encoder, const struct piece *piece)
{
	struct coop_text text;
	if (piece->size == 0 || coop_text_view(piece->data, piece->size, false, &text) < 0)
		return;
	emit_line(encoder, piece, "text", json_stringn_nocheck(text.text, text.size),
		  text.utf8_valid);
	coop_text_clear(&text);
}

static void flush_stream(struct cli_encoder *encoder, enum coop_stream stream)
{
	const struct piece piece = {.stream = stream,
				    .offset = encoder->kept[stream].offset,
				    .data = encoder->kept[stream].bytes,
				    .size = encoder->kept[stream].size};
	encoder->kept[stream].size = 0;
	(encoder->text ? emit_text : emit_bytes)(encoder, &piece);
}

void cli_encoder_flush(struct cli_encoder *encoder, const json_t *record)
{
	const json_t *streams = json_object_get(record, "streams");
	for (unsigned i = 0; i < CLI_STREAMS; i++) {
		const json_t *stream = json_object_get(streams, stream_names[i]);
		if (!encoder->text || json_is_true(json_object_get(stream, "eof")))
			flush_stream(encoder, (enum coop_stream)i);
	}
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

/* How many bytes at the front are text. What follows them in the same chunk is given as base64,
 * whatever comes after the first byte that is none: two lines for a chunk at most. */
static size_t text_length(const uint8_t *data, size_t size)
{
	size_t length = 0, step;
	while (length < size && (step = coop_utf8_char(data + length, size - length)) > 0)
		length += step;
	return length;
}

static void emit_piece(struct cli_encoder *encoder, const struct piece *piece)
{
	if (encoder->text) {
		emit_text(encoder, piece);
		return;
	}
	struct piece front = *piece, rest = *piece;
	front.size = text_length(piece->data, piece->size);
	rest.data += front.size;
	rest.offset += front.size;
	rest.size -= front.size;
	emit_bytes(encoder, &front);
	emit_bytes(encoder, &rest);
}

void cli_encoder_feed(struct cli_encoder *encoder, const struct coop_chunk *chunk, const char *at)
{
	const enum coop_stream stream = chunk->stream;
	/* After a gap the rest of the character is lost. */
	if (encoder->kept[stream].size &&
	    encoder->kept[stream].offset + encoder->kept[stream].size != chunk->offset)
		flush_stream(encoder, stream);

	struct piece piece = {.stream = stream,
			      .offset = chunk->offset,
			      .data = chunk->data,
			      .size = chunk->size,
			      .at = at};
	COOP_AUTO_FREE void *joined = NULL;
	if (encoder->kept[stream].size) {
		joined = join_kept(encoder, chunk);
		if (!joined)
			return;
		piece.data = joined;
		piece.size += encoder->kept[stream].size;
		piece.offset = encoder->kept[stream].offset;
	}
	const size_t rest = coop_utf8_unfinished(piece.data, piece.size);
	piece.size -= rest;
	memcpy(encoder->kept[stream].bytes, piece.data + piece.size, rest);
	encoder->kept[stream].size = rest;
	encoder->kept[stream].offset = piece.offset + piece.size;
	emit_piece(encoder, &piece);
}
