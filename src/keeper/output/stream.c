#include "keeper/output/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/text/utf8.h"
#include "keeper/core/keeper.h"
#include "keeper/core/meters.h"
#include "keeper/output/digest.h"
#include "keeper/output/index.h"
#include "keeper/output/output.h"
#include "keeper/output/spool.h"
#include "keeper/output/stdin.h"

#define READ_MAX (256u << 10) /* one read */
#define READS_PER_TURN 4      /* then the other processes have their turn */
#define READS_WHEN_BUSY 16    /* of small pieces */
#define TURN_BYTES (READS_PER_TURN * READ_MAX)
#define PIPE_STANDARD (64 << 10)
#define PIPE_LARGE (1 << 20)
#define SHRINK_AFTER_NS 1000000000u
#define CHUNK_WAIT_NS 20000000u
#define RETRY_NS 100000000u

const char *coop_stream_name(unsigned number)
{
	static const char *const names[] = {"stdin", "stdout", "stderr", "pty", "note"};

	return names[number];
}

unsigned coop_stream_number(const char *name)
{
	for (unsigned i = 1; i <= 3; i++) {
		if (!strcmp(name, coop_stream_name(i)))
			return i;
	}
	return 0;
}

uint64_t coop_stream_start(const struct coop_outlet *stream)
{
	return stream->spooled && stream->output->spool ? 0 : stream->ring.start;
}

uint64_t coop_stream_next_readable(const struct coop_outlet *stream, uint64_t position)
{
	bool on_disk = stream->output->spool && position < stream->spooled;

	return on_disk || position >= stream->ring.start ? position : stream->ring.start;
}

static void come_back(struct coop_outlet *stream, enum coop_output_due what, uint64_t after)
{
	stream->output->owner->due(stream->output, what, coop_clock_now() + after);
}

static size_t room_of(const struct coop_outlet *stream)
{
	return stream->output->owner->room(stream);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct coop_outlet *stream = poll->data;

	(void)status; /* an error of the descriptor shows in the read */
	(void)events;
	coop_meters_of(stream->output->keeper)->wakeups++;
	coop_stream_read(stream);
}

static void on_poll_closed(uv_handle_t *handle)
{
	struct coop_outlet *stream = handle->data;

	stream->output->owner->release(stream->output);
}

int coop_stream_open(struct coop_outlet *stream, int fd)
{
	int r = uv_poll_init(coop_loop_of(stream->output->keeper), &stream->poll, fd);

	if (r < 0) {
		(void)close(fd);
		return r;
	}
	stream->fd = fd;
	stream->poll.data = stream;
	stream->polling = true;
	stream->output->owner->hold(stream->output);
	return uv_poll_start(&stream->poll, UV_READABLE, on_readable);
}

static void stop_polling(struct coop_outlet *stream)
{
	if (!stream->polling)
		return;
	stream->polling = false;
	/* Takes the descriptor out of epoll before it is closed: a child that still holds the pipe
	 * would keep it there. */
	uv_close((uv_handle_t *)&stream->poll, on_poll_closed);
}

static void close_fd(struct coop_outlet *stream)
{
	stop_polling(stream);
	if (stream->fd >= 0)
		(void)close(stream->fd);
	stream->fd = -1;
	if (stream->number == 3) {
		stream->output->input.fd = -1;
		coop_stdin_close(stream->output);
	}
}

/* Copies the last bytes before `end`, up to four. Returns how many. */
static size_t last_bytes(const struct coop_ring *ring, uint64_t end, uint8_t ret_bytes[4])
{
	uint64_t kept = end - ring->start;
	size_t size = kept < 4 ? (size_t)kept : 4, at = 0;
	struct iovec views[2];
	int count = coop_ring_view(ring, end - size, size, views);

	for (int i = 0; i < count; at += views[i++].iov_len)
		memcpy(ret_bytes + at, views[i].iov_base, views[i].iov_len);
	return size;
}

/* Size of the next event: as much as one takes, without splitting a character. */
static uint64_t next_piece(const struct coop_outlet *stream, uint64_t end)
{
	uint64_t size = end - stream->indexed;
	uint8_t tail[4];

	if (size <= COOP_INDEX_CHUNK)
		return size;
	size_t have = last_bytes(&stream->ring, stream->indexed + COOP_INDEX_CHUNK, tail);
	return COOP_INDEX_CHUNK - coop_utf8_unfinished(tail, have);
}

/* Records the bytes before `end` as events, in pieces that split no character. */
static void index_upto(struct coop_outlet *stream, uint64_t end)
{
	struct coop_output *output = stream->output;
	/* Bytes may come before the start has been told. */
	uint64_t age_ms = output->began ? (coop_clock_now() - output->began) / 1000000u : 0;

	/* A draining reader may have taken, and released, the beginning of a character that waited
	 * here for its rest. */
	if (stream->indexed < stream->ring.start)
		stream->indexed = stream->ring.start;
	while (stream->indexed < end) {
		uint64_t size = next_piece(stream, end);
		(void)coop_index_add(
			&output->index,
			(struct coop_index_event){
				.offset = stream->indexed,
				.at_ms = age_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)age_ms,
				.size = (uint16_t)size,
				.stream = stream->number,
			});
		stream->indexed += size;
	}
}

void coop_stream_index_rest(struct coop_outlet *stream)
{
	if (stream->output->stage != COOP_OUTPUT_GIVEN_UP)
		index_upto(stream, stream->ring.end);
}

/* What has arrived becomes events, except an unfinished character at the end, which waits for its
 * rest. */
static void index_arrived(struct coop_outlet *stream)
{
	uint8_t tail[4];
	size_t size = last_bytes(&stream->ring, stream->ring.end, tail);
	size_t unfinished = coop_utf8_unfinished(tail, size);

	index_upto(stream, stream->ring.end - unfinished);
	if (unfinished)
		come_back(stream, COOP_OUTPUT_CHUNK, CHUNK_WAIT_NS);
}

/* A read that filled the standard pipe: this child is fast, and wake-ups are what it costs. Without
 * the right to a large pipe (EPERM from the 65th on, for ordinary users) it goes on as it is. */
static void enlarge(struct coop_outlet *stream)
{
	if (stream->number != 3 && !stream->large)
		stream->large = fcntl(stream->fd, F_SETPIPE_SZ, PIPE_LARGE) > 0;
	if (stream->large)
		come_back(stream, COOP_OUTPUT_SHRINK, SHRINK_AFTER_NS);
}

void coop_stream_shrink(struct coop_outlet *stream)
{
	if (!stream->large || stream->fd < 0)
		return;
	/* Refused (EBUSY) while more than that is waiting in it: then it is not quiet, and the next
	 * read arms this again. */
	if (fcntl(stream->fd, F_SETPIPE_SZ, PIPE_STANDARD) > 0)
		stream->large = false;
}

static void pause_reading(struct coop_outlet *stream)
{
	if (stream->paused)
		return;
	stream->paused = true;
	if (stream->polling)
		(void)uv_poll_stop(&stream->poll);
}

void coop_stream_resume(struct coop_outlet *stream)
{
	if (!stream->paused || (stream->held && !room_of(stream)))
		return;
	stream->paused = stream->held = stream->starved = false;
	if (stream->polling && uv_poll_start(&stream->poll, UV_READABLE, on_readable) == 0)
		coop_stream_read(stream);
}

/* How many bytes may come in now without losing what must not be lost. */
static size_t allowance(const struct coop_outlet *stream, bool *ret_overwrite)
{
	*ret_overwrite = true;
	if (stream->overflow == COOP_OVERFLOW_BACKPRESSURE) {
		*ret_overwrite = false;
	} else if (coop_spool_pending(stream)) {
		/* Bytes that are not on disk yet hold their place; the rest of the ring may be
		 * overwritten. */
		uint64_t busy = stream->ring.end - stream->spooled +
				(uint64_t)stream->spool_jobs * COOP_SPOOL_JOB_BYTES;
		size_t room = busy < stream->ring.limit ? stream->ring.limit - (size_t)busy : 0;
		return room < READ_MAX ? room : READ_MAX;
	} else {
		/* What a holder has not taken holds its place, too. */
		size_t room = room_of(stream);
		return room < READ_MAX ? room : READ_MAX;
	}
	return READ_MAX;
}

/* Bytes that leave the ring are lost, unless they are on disk. */
static void count_dropped(struct coop_outlet *stream, size_t gone)
{
	uint64_t start = stream->ring.start,
		 kept = start - gone > stream->spooled ? start - gone : stream->spooled;

	if (start <= kept)
		return;
	stream->dropped += start - kept;
	coop_meters_of(stream->output->keeper)->dropped += start - kept;
}

enum outcome { GOT_SOME, GOT_ALL, NOTHING, FULL, HUNG_UP, ENDED };

static enum outcome read_once(struct coop_outlet *stream)
{
	struct iovec places[2];
	bool overwrite;
	int count;
	size_t want = allowance(stream, &overwrite);
	ssize_t room = want ? coop_ring_offer(&stream->ring, want, overwrite, places, &count) : 0;

	stream->starved = room < 0;
	if (stream->starved) /* as if there were no room, but nobody will free any */
		come_back(stream, COOP_OUTPUT_RETRY, RETRY_NS);
	if (room <= 0)
		return FULL;
	ssize_t n = readv(stream->fd, places, count);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NOTHING;
	if (n <= 0 && stream->number == 3 && stream->output->stage == COOP_OUTPUT_LIVE)
		return HUNG_UP;
	if (n <= 0)
		return ENDED; /* a terminal whose other side is gone says EIO */
	coop_meters_of(stream->output->keeper)->captured += (uint64_t)n;
	if (stream->output->digest)
		coop_digest_feed(stream, places, (size_t)n);
	count_dropped(stream, coop_ring_commit(&stream->ring, (size_t)n));
	if (n >= PIPE_STANDARD)
		enlarge(stream);
	coop_spool_feed(stream);
	if (stream->output->stage < COOP_OUTPUT_SETTLED)
		index_arrived(stream);
	return n < room ? GOT_ALL : GOT_SOME;
}

static void reached_end(struct coop_outlet *stream)
{
	close_fd(stream);
	/* Memory was taken to read into, and nothing ever came. */
	if (stream->ring.end == 0)
		coop_ring_clear(&stream->ring);
	stream->eof = true;
	stream->drained = true;
	if (stream->output->stage < COOP_OUTPUT_SETTLED)
		coop_stream_index_rest(stream);
}

/* Whether it was read from a moment ago as well. A short read mostly means that the pipe is empty;
 * of a writer of many small pieces it does not, and a look at once is cheaper than a turn of the
 * loop for each of them. */
static bool is_busy(struct coop_outlet *stream)
{
	uint64_t now = uv_now(coop_loop_of(stream->output->keeper));
	bool busy = now - stream->turn_ms <= 1;

	stream->turn_ms = now;
	return busy;
}

void coop_stream_read(struct coop_outlet *stream)
{
	struct coop_output *output = stream->output;
	const struct coop_output_owner *owner = output->owner;
	uint64_t before = stream->ring.end;
	enum outcome outcome = GOT_SOME;

	bool busy = is_busy(stream);

	owner->hold(output);
	for (int i = 0; i < (busy ? READS_WHEN_BUSY : READS_PER_TURN) && stream->fd >= 0; i++) {
		outcome = read_once(stream);
		if (outcome != GOT_SOME && !(busy && outcome == GOT_ALL))
			break;
		if (stream->ring.end - before >= TURN_BYTES)
			break;
	}
	stream->drained = outcome == GOT_ALL || outcome == NOTHING;
	if (outcome == FULL || outcome == HUNG_UP)
		pause_reading(stream);
	if (outcome == FULL && !room_of(stream)) {
		stream->held = true;
		owner->waits(output);
	}
	/* Nobody has the terminal open at the moment: a program that is just ending, or one that
	 * will open /dev/tty again. Closing our side would send it SIGHUP, so that waits for its
	 * end. No event tells of an opening: it is looked for. */
	if (outcome == HUNG_UP)
		come_back(stream, COOP_OUTPUT_RETRY, RETRY_NS);
	if (outcome == ENDED)
		reached_end(stream);
	if (output->stage >= COOP_OUTPUT_SETTLED && stream->told_end == UINT64_MAX &&
	    stream->drained) {
		stream->told_end = stream->ring.end;
		coop_digest_settle(output);
	}
	if (stream->ring.end > before) {
		output->last_at = coop_clock_wall_ms();
		owner->arrived(stream, before == 0);
	}
	owner->changed(output);
	if (stream->eof)
		owner->ended(stream);
	owner->release(output);
}

void coop_stream_release(struct coop_outlet *stream, uint64_t position)
{
	uint64_t oldest = stream->ring.start;

	coop_ring_release(&stream->ring, position);
	if (stream->ring.start > oldest && stream->overflow == COOP_OVERFLOW_BACKPRESSURE)
		coop_stream_resume(stream);
}

void coop_stream_close(struct coop_outlet *stream)
{
	close_fd(stream);
	stream->eof = true;
	stream->drained = true;
	stream->paused = stream->held = stream->starved = false;
	/* What was still in the pipe is nobody's output any more. */
	if (stream->told_end == UINT64_MAX)
		stream->told_end = stream->ring.end;
	coop_digest_settle(stream->output);
	coop_ring_clear(&stream->ring);
}
