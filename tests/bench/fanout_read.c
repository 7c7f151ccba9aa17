/* All subscribers of one process, in one program: attaches them, lets the writer go, and reads
 * until each has been told of the end.
 *
 *     fanout_read PORT TARGET TOKEN SUBSCRIBERS BYTES FIFO UNIT WINDOW lossless|lossy quick|verify
 *
 * Prints `NS FRAMES PAYLOAD WIRE LOST`: nanoseconds from the first permission to write to the last
 * end, and the sums over all subscribers of output frames, bytes of output, bytes of frames, and
 * bytes of output that were told to be lost.
 *
 * The writer may be WINDOW times UNIT bytes ahead of the slowest subscriber. Of each subscriber the
 * event numbers must be dense (but for gaps that are told), and all bytes must have come (with
 * `lossy`: or been told to be lost). `verify` also looks at each byte, which is slow. The text of
 * the frames is not decoded otherwise: its length says how much it is. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench.h"
#include "fanout.h"
#include "ws_link.h"

/* Of a frame so much is looked at: header, type, number. The rest is data, up to the TAIL. */
enum { PREFIX = 256, TAIL = 4, ROOM = 256 << 10, EVENTS = 256 };

struct subscriber {
	int fd;
	uint64_t cursor; /* the next */
	uint64_t bytes;  /* of output, lost ones not counted */
	uint64_t lost;
	size_t skip;    /* bytes that come before the tail of this frame */
	size_t encoded; /* the text of this frame's data */
	bool in_tail, ended;
	uint32_t group; /* of the decoder */
	unsigned group_size;
	uint8_t carry_size;
	uint8_t carry[PREFIX];
};

static struct {
	struct subscriber *subscribers;
	size_t count, left; /* not told of the end */
	uint64_t total, unit;
	uint32_t *passed; /* by unit: how many subscribers have it */
	uint64_t allowed; /* units that all have */
	int fifo;
	bool lossy, verify;
	uint64_t frames, payload, wire, lost;
} work;

static uint32_t sextet(uint8_t letter)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	static uint8_t values[256]; /* one more than the value */

	for (uint8_t i = 0; !values['/'] && i < 64; i++)
		values[(uint8_t)letters[i]] = (uint8_t)(i + 1);
	if (!values[letter])
		bench_fail("that is no base64", NULL);
	return values[letter] - 1u;
}

/* Each group of four letters is three bytes of the pattern, or fewer if it is padded. */
static void verify(struct subscriber *sub, const uint8_t *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		bool padding = text[i] == '=';
		sub->group = sub->group << 6 | (padding ? 0 : sextet(text[i]));
		sub->group_size += padding ? 16 : 1;
		if (sub->group_size % 16 + sub->group_size / 16 < 4)
			continue;
		unsigned bytes = 3 - sub->group_size / 16;
		for (unsigned k = 0; k < bytes; k++) {
			if ((uint8_t)(sub->group >> (16 - 8 * k)) !=
			    fanout_byte(sub->bytes + sub->lost + k))
				bench_fail("the output is not what was written", NULL);
		}
		sub->bytes += bytes;
		sub->group = sub->group_size = 0;
	}
}

/* What everybody has by now may be followed by as much. */
static void pass(uint64_t before, uint64_t after)
{
	for (uint64_t unit = before / work.unit; unit < after / work.unit; unit++)
		work.passed[unit]++;
}

static void allow(void)
{
	static const char credits[4096];
	size_t n = 0;

	while (work.allowed < work.total / work.unit && work.passed[work.allowed] == work.count) {
		work.allowed++;
		n++;
	}
	/* The writer may have ended by now. */
	for (; n; n -= n < sizeof credits ? n : sizeof credits) {
		ssize_t r = write(work.fifo, credits, n < sizeof credits ? n : sizeof credits);
		if (r < 0 && errno != EPIPE)
			bench_fail_errno("write");
	}
}

static void frame_done(struct subscriber *sub, size_t padding)
{
	size_t bytes = sub->encoded / 4 * 3 - padding;
	uint64_t before = sub->bytes + sub->lost;

	if (work.verify)
		before -= bytes; /* they have been counted one by one */
	else
		sub->bytes += bytes;
	pass(before, sub->bytes + sub->lost);
	work.frames++;
	work.payload += bytes;
}

/* A frame that is no output: text with a NUL. */
static void other_frame(struct subscriber *sub, const char *text)
{
	if (!strncmp(text, "{\"type\":\"gap\"", 13)) {
		if (!work.lossy || bench_json_number(text, "from_cursor") != sub->cursor)
			bench_fail("a gap", text);
		uint64_t lost = bench_json_number(text, "bytes"), before = sub->bytes + sub->lost;
		sub->cursor = bench_json_number(text, "to_cursor");
		sub->lost += lost;
		work.lost += lost;
		pass(before, before + lost);
	} else if (!strncmp(text, "{\"type\":\"exit\"", 14)) {
		if (sub->ended || bench_json_number(text, "cursor") != sub->cursor ||
		    !strstr(text, "\"exit_code\":0") || sub->bytes + sub->lost != work.total)
			bench_fail("the end does not fit what came before", text);
		sub->ended = true;
		work.left--;
	} else {
		bench_fail("what is that", text);
	}
}

/* The number of an output frame must be the next; gives where its data begins. */
static const uint8_t *check_output(struct subscriber *sub, const uint8_t *text, size_t size)
{
	static const char begin[] = "{\"type\":\"stdout\",\"cursor\":", data[] = "\"data\":\"";

	if (size < sizeof begin || memcmp(text, begin, sizeof begin - 1) != 0)
		return NULL;
	const uint8_t *at = text + sizeof begin - 1;
	uint64_t cursor = 0;
	for (; at < text + size && *at >= '0' && *at <= '9'; at++)
		cursor = cursor * 10 + (uint64_t)(*at - '0');
	if (cursor != sub->cursor++)
		bench_fail("a number is not the next", NULL);
	at = memmem(at, (size_t)(text + size - at), data, sizeof data - 1);
	if (!at)
		bench_fail("output without data", NULL);
	return at + sizeof data - 1;
}

static void small_frame(struct subscriber *sub, const uint8_t *text, size_t size)
{
	char copy[PREFIX + 1];

	if (size > PREFIX)
		bench_fail("a frame is larger than it should be", NULL);
	(void)snprintf(copy, sizeof copy, "%.*s", (int)size, (const char *)text);
	other_frame(sub, copy);
}

/* The beginning of a frame; returns how much of it was used, 0 if there must be more. */
static size_t take_begin(struct subscriber *sub, const uint8_t *at, size_t size)
{
	size_t payload, header = ws_header(at, size, &payload);

	if (!header || (size < PREFIX && size < header + payload))
		return 0;
	size_t seen = size - header < payload ? size - header : payload;
	const uint8_t *text = at + header;
	const uint8_t *data = check_output(sub, text, seen < PREFIX ? seen : PREFIX);
	work.wire += header + payload;
	if (!data) {
		if ((at[0] & 0x0f) == 8)
			bench_fail("a subscriber was sent away", NULL);
		if (seen < payload)
			bench_fail("a frame is larger than it should be", NULL);
		small_frame(sub, text, payload);
		return header + payload;
	}
	/* All but the last group and `"}`, of which the tail is what holds the padding. */
	sub->encoded = payload - (size_t)(data - text) - 2;
	sub->skip = sub->encoded - 2;
	sub->in_tail = true;
	return (size_t)(data - at);
}

/* Data of a frame up to its tail, then that. */
static size_t take_rest(struct subscriber *sub, const uint8_t *at, size_t size)
{
	if (sub->skip) {
		size_t n = size < sub->skip ? size : sub->skip;
		if (work.verify)
			verify(sub, at, n);
		sub->skip -= n;
		return n;
	}
	if (size < TAIL)
		return 0;
	if (work.verify)
		verify(sub, at, 2);
	if (at[2] != '"' || at[3] != '}')
		bench_fail("a frame does not end with its data", NULL);
	sub->in_tail = false;
	frame_done(sub, (size_t)(at[0] == '=') + (at[1] == '='));
	return TAIL;
}

/* What is too short to be understood waits for the rest of it. */
static void take(struct subscriber *sub, const uint8_t *at, size_t size)
{
	/* Behind the end there may be a close frame. */
	while (size && !sub->ended) {
		size_t n = sub->in_tail ? take_rest(sub, at, size) : take_begin(sub, at, size);
		if (!n)
			break;
		at += n;
		size -= n;
	}
	if (sub->ended)
		size = 0;
	if (size >= PREFIX)
		bench_fail("a frame is larger than it should be", NULL);
	memcpy(sub->carry, at, size);
	sub->carry_size = (uint8_t)size;
}

static void receive(struct subscriber *sub)
{
	static uint8_t room[PREFIX + ROOM];

	memcpy(room, sub->carry, sub->carry_size);
	ssize_t n = read(sub->fd, room + sub->carry_size, ROOM);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0)
		bench_fail_errno("read");
	if (n == 0 && !sub->ended)
		bench_fail("a subscriber was dropped", NULL);
	take(sub, room, sub->carry_size + (size_t)n);
}

static void attach(struct subscriber *sub, unsigned port, const char *target, const char *token)
{
	static struct link_in in;

	ws_open(&in, port, target, token);
	/* `ready` may come first. */
	for (const char *text;
	     !(text = ws_receive(&in)) || !strstr(text, "\"type\":\"started\"");) {
		if (!text || !strstr(text, "\"type\":\"ready\""))
			bench_fail("not attached", text);
	}
	sub->fd = in.fd;
	if (in.from != in.to)
		bench_fail("there is output before its time", NULL);
	if (fcntl(sub->fd, F_SETFL, O_NONBLOCK) < 0)
		bench_fail_errno("fcntl");
}

static void read_all(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event events[EVENTS];

	for (size_t i = 0; i < work.count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = &work.subscribers[i]};
		if (epoll < 0 ||
		    epoll_ctl(epoll, EPOLL_CTL_ADD, work.subscribers[i].fd, &event) < 0)
			bench_fail_errno("epoll_ctl");
	}
	while (work.left) {
		int n = epoll_wait(epoll, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			bench_fail_errno("epoll_wait");
		for (int i = 0; i < n; i++) {
			struct subscriber *sub = events[i].data.ptr;
			receive(sub);
			if (sub->ended)
				(void)epoll_ctl(epoll, EPOLL_CTL_DEL, sub->fd, NULL);
		}
		allow();
	}
	(void)close(epoll);
}

int main(int argc, char **argv)
{
	if (argc != 11)
		bench_fail(
			"usage: fanout_read PORT TARGET TOKEN SUBSCRIBERS BYTES FIFO UNIT WINDOW "
			"lossless|lossy quick|verify",
			NULL);
	work.count = work.left = bench_number(argv[4]);
	work.total = bench_number(argv[5]);
	work.unit = bench_number(argv[7]);
	size_t window = bench_number(argv[8]);
	work.lossy = !strcmp(argv[9], "lossy");
	work.verify = !strcmp(argv[10], "verify");
	work.subscribers = calloc(work.count, sizeof *work.subscribers);
	work.passed = calloc(work.total / work.unit + 1, sizeof *work.passed);
	static const char credits[4096];
	if (!work.subscribers || !work.passed || window > sizeof credits)
		bench_fail("not so many", NULL);
	for (size_t i = 0; i < work.count; i++)
		attach(&work.subscribers[i], (unsigned)bench_number(argv[1]), argv[2], argv[3]);
	(void)signal(SIGPIPE, SIG_IGN);
	work.fifo = open(argv[6], O_WRONLY | O_CLOEXEC);
	if (work.fifo < 0)
		bench_fail_errno(argv[6]);
	uint64_t began = bench_now();
	if (write(work.fifo, credits, window) != (ssize_t)window)
		bench_fail_errno("write");
	read_all();
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", bench_now() - began,
	       work.frames, work.payload, work.wire, work.lost);
	free(work.passed);
	free(work.subscribers);
	return 0;
}
