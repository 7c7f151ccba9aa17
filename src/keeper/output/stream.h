/* One output of a process: a pipe or terminal being read, a ring, and what happens when the ring is
 * full. */
#ifndef COOP_KEEPER_STREAM_H
#define COOP_KEEPER_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "keeper/output/ring.h"

struct coop_output;

enum coop_overflow {
	COOP_OVERFLOW_DROP_OLDEST,
	COOP_OVERFLOW_BACKPRESSURE,
	COOP_OVERFLOW_SPOOL,
};

struct coop_outlet {
	struct coop_output *output;
	uint8_t number; /* 1 stdout, 2 stderr, 3 pty: as on the wire */
	enum coop_overflow overflow;
	int fd; /* -1 once at end of file */
	uv_poll_t poll;
	bool polling; /* the handle exists */
	bool paused;  /* the ring is full and must not lose anything: the child waits */
	bool held;    /* … for a holder: see holder.h */
	bool starved; /* there was no memory for what the pipe holds: it is tried again */
	bool drained; /* the last read found the pipe empty */
	bool eof;
	bool large; /* the pipe has been enlarged */
	struct coop_ring ring;
	uint64_t turn_ms;  /* when it was last read from, by the loop's clock */
	uint64_t told_end; /* what counts as the process's own output; UINT64_MAX: not known yet */
	uint64_t indexed;  /* events cover everything before this position */
	uint64_t dropped;  /* bytes that fell out of the full ring, and are not on disk either */
	uint64_t fed;      /* given to the spool: everything before this position */
	uint64_t spooled;  /* written there: everything before this position */
	unsigned spool_jobs; /* writes under way */
	bool spool_stopped;  /* at its bound, or after a write error */
};

/* Starts reading `fd` (non-blocking, owned by the stream from here on). 0 or -errno; the fd is
 * closed then. */
int coop_stream_open(struct coop_outlet *stream, int fd);

/* Reads what is there now. Called by the loop, and when room has come. */
void coop_stream_read(struct coop_outlet *stream);

/* Space was freed: a paused stream goes on. */
void coop_stream_resume(struct coop_outlet *stream);

/* Everything before `position` may go. */
void coop_stream_release(struct coop_outlet *stream, uint64_t position);

/* Stops reading and forgets the bytes; the counters stay. */
void coop_stream_close(struct coop_outlet *stream);

/* The index has waited long enough for the rest of a character: the unfinished bytes become an
 * event. */
void coop_stream_index_rest(struct coop_outlet *stream);

/* The pipe has been quiet: give the kernel its memory back. */
void coop_stream_shrink(struct coop_outlet *stream);

/* The oldest position that can still be read, from the spool or the ring. */
uint64_t coop_stream_start(const struct coop_outlet *stream);

/* Where a reader at `position` can go on: `position` itself if its byte is retained, else the next
 * that is. */
uint64_t coop_stream_next_readable(const struct coop_outlet *stream, uint64_t position);

const char *coop_stream_name(unsigned number);
/* 1 to 3, or 0. */
unsigned coop_stream_number(const char *name);

#endif
