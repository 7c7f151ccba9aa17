/* Output of a process as JSON: {"type": "output", "stream", "offset", "text" or "base64"}.
 *
 * A character that comes in two pieces is kept back until it is whole, so that text is never cut inside one; bytes that
 * are no UTF-8 are given as base64. Nothing is lost and no byte is changed: offset and content say exactly which bytes. */
#ifndef COOP_CLI_ENCODER_H
#define COOP_CLI_ENCODER_H

#include <coop.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_STREAMS 4

struct cli_encoder {
	struct {
		uint8_t bytes[4];
		size_t size;
		uint64_t offset;
	} kept[CLI_STREAMS];
	/* Gets each line, newline included. */
	void (*emit)(void *user, const char *line, size_t size);
	void *user;
};

/* "stdout", "stderr", "pty", "stdin". */
const char *cli_stream_name(enum coop_stream stream);
/* COOP_STDIN for what is no output stream. "tty" is taken for pty. */
enum coop_stream cli_stream_parse(const char *name);

/* `at` is a time to be added as "at", or NULL. */
void cli_encoder_feed(struct cli_encoder *encoder, const struct coop_chunk *chunk, const char *at);

/* Gives what was kept back, as base64: its rest will not come. */
void cli_encoder_flush(struct cli_encoder *encoder);

#endif
