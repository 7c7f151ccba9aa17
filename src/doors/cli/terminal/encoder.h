/* Output of a process as JSON: {"type": "output", "stream", "offset", "text" or "base64",
 * "utf8_valid"}.
 *
 * A character that comes in two pieces is kept back until it is whole, so that text is never cut
 * inside one; bytes that are no UTF-8 are given as base64. Nothing is lost and no byte is changed:
 * offset and content say exactly which bytes.
 *
 * As text, each piece is one line; bytes that are no UTF-8 become U+FFFD. Its length then no longer
 * tells how many bytes it stands for, so "next" does: the offset behind them. */
#ifndef COOP_CLI_ENCODER_H
#define COOP_CLI_ENCODER_H

#include <coop.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_STREAMS 4

struct cli_encoder {
	bool text;
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

/* Gives what was kept back: its rest will not come, as far as this reader is concerned. `record` is
 * the process's latest. As text, only of streams that the record says have ended: whoever reads on
 * at "next" may still get the character whole. */
void cli_encoder_flush(struct cli_encoder *encoder, const json_t *record);

#endif
