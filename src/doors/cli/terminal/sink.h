/* A local output that must not block the loop: stdout or stderr of coop itself. What it cannot take
 * at once waits here; the caller stops bringing more while cli_sink_full(), so that the wait is
 * bounded and passes on to the keeper. */
#ifndef COOP_CLI_SINK_H
#define COOP_CLI_SINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Above so many waiting bytes a sink is full. */
#define CLI_SINK_FULL (256u << 10)

enum cli_sink_kind {
	CLI_SINK_UNKNOWN,     /* not written to so far */
	CLI_SINK_BLOCKING,    /* a file or the like: takes everything at once */
	CLI_SINK_NONBLOCKING, /* our own open description of a pipe or terminal, with O_NONBLOCK */
	CLI_SINK_SOCKET,      /* MSG_DONTWAIT does it */
	/* could not be opened again: small pieces, after poll said there is room */
	CLI_SINK_PIECES,
};

struct cli_sink {
	int fd;     /* as inherited */
	int own_fd; /* what is written to */
	enum cli_sink_kind kind;
	struct coop_buf waiting;
	int error; /* errno of the write that failed, then everything is dropped; 0: fine */
};

void cli_sink_init(struct cli_sink *sink, int fd);
void cli_sink_free(struct cli_sink *sink);

/* Writes or keeps all of it. Failures are found in `error`. */
void cli_sink_write(struct cli_sink *sink, const void *data, size_t size);

/* Writes what waits; to be called when poll says that there is room. */
void cli_sink_flush(struct cli_sink *sink);

static inline size_t cli_sink_waiting(const struct cli_sink *sink)
{
	return coop_buf_size(&sink->waiting);
}

static inline bool cli_sink_full(const struct cli_sink *sink)
{
	return cli_sink_waiting(sink) > CLI_SINK_FULL;
}

#endif
