/* What one process reads and prints: its streams, the index of their events, its input, and what
 * else is kept of them. Nothing here knows what a process is; the one that owns an output is asked,
 * and told, through a table of calls. */
#ifndef COOP_KEEPER_OUTPUT_H
#define COOP_KEEPER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keeper/output/index.h"
#include "keeper/output/stdin.h"
#include "keeper/output/stream.h"

struct coop_digest;
struct coop_keeper;
struct coop_output;
struct coop_spool;

/* Moments that an output asks its owner to come back at. */
enum coop_output_due {
	COOP_OUTPUT_CHUNK,  /* an unfinished character has waited long enough for its rest */
	COOP_OUTPUT_SHRINK, /* an enlarged pipe has been quiet */
	COOP_OUTPUT_RETRY,  /* something could not be done for want of memory, or nobody listens */
};

struct coop_output_owner {
	/* A handle of the loop, or work for the disk, needs the output until it is released. */
	void (*hold)(struct coop_output *output);
	void (*release)(struct coop_output *output);
	/* Bytes have come into the stream's ring; `first`: before that there were none. */
	void (*arrived)(struct coop_outlet *stream, bool first);
	/* Readers may have something to look at. */
	void (*changed)(struct coop_output *output);
	/* The stream has come to its end. */
	void (*ended)(struct coop_outlet *stream);
	/* To come back at that time, by the monotonic clock. */
	void (*due)(struct coop_output *output, enum coop_output_due what, uint64_t when);
	/* How many bytes may come into the stream without overwriting what somebody holds; SIZE_MAX
	 * where nobody does. */
	size_t (*room)(const struct coop_outlet *stream);
	/* A stream waits from now on for those who hold. */
	void (*waits)(struct coop_output *output);
	/* The spool takes no more of a stream; `error`: an errno, 0 at its bound. */
	void (*spool_stopped)(struct coop_outlet *stream, int error);
};

/* How far its process is, as far as that matters to output. */
enum coop_output_stage {
	COOP_OUTPUT_LIVE,
	COOP_OUTPUT_LEFT,    /* the leader has ended: what comes is its last, or of others */
	COOP_OUTPUT_SETTLED, /* the end has been told: events are complete */
	COOP_OUTPUT_GIVEN_UP,
};

struct coop_output {
	struct coop_keeper *keeper;
	const struct coop_output_owner *owner;
	uint64_t *spool_account; /* bytes on disk of all that its owner counts for */
	enum coop_output_stage stage;
	uint64_t began;                /* events are as old as they are after this; 0: not yet */
	int64_t last_at;               /* bytes came last, by the wall clock; 0: none yet */
	struct coop_outlet streams[2]; /* stdout and stderr, or the terminal alone */
	int count;
	struct coop_index index;
	uint64_t exit_cursor;       /* valid once settled */
	struct coop_spool *spool;   /* NULL without */
	struct coop_digest *digest; /* NULL: nobody asked for it */
	struct coop_stdin input;
};

void coop_output_init(struct coop_output *output, struct coop_keeper *keeper,
		      const struct coop_output_owner *owner, size_t max_events);

/* The stream of that number (1 stdout, 2 stderr, 3 pty), or NULL. */
struct coop_outlet *coop_output_stream(struct coop_output *output, unsigned number);

/* Whether all streams have ended. */
bool coop_output_ended(const struct coop_output *output);

/* The end is about to be told: the last events are made. */
void coop_output_index_rest(struct coop_output *output);
/* It has been told: what was printed until then is what counts as the process's own. */
void coop_output_settle(struct coop_output *output);

/* Reads no more, and forgets the bytes; with the index, what is left are the counters. */
void coop_output_close(struct coop_output *output);
void coop_output_give_up(struct coop_output *output);

/* Paused streams go on, where there is room. */
void coop_output_resume(struct coop_output *output);

/* Its last owner goes. */
void coop_output_clear(struct coop_output *output);

#endif
