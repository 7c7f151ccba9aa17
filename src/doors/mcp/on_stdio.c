#include "doors/mcp/on_stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "client/scan.h"
#include "doors/mcp/request.h"
#include "doors/mcp/subscription.h"

#define READ_BYTES (64u << 10)
/* Answers that the client has not read: beyond the first no more notifications, beyond the second
 * no more requests. */
#define OUT_BUSY (256u << 10)
#define OUT_FULL (1u << 20)
/* What is being answered when the client closes its end may still finish. */
#define FINISH_MS 700
/* So long after a long answer the memory that it took goes back: until then the next one may need
 * it. */
#define REST_MS 1000
#define PIPE_USUAL (64u << 10)
#define PIPE_WIDE (1 << 20)

struct coop_mcp_stdio {
	struct coop_mcp_channel channel; /* first */
	struct coop_mcp *mcp;
	struct coop_mcp_session session;
	uv_poll_t read, write;
	uv_idle_t pump; /* for input that is a file: always ready, never polled */
	uv_timer_t timer, rest;
	int in, out;
	bool polled_in, polled_out, reading, writing;
	bool widened; /* the pipe to the client */
	struct coop_buf input, output;
	size_t line_max, looked; /* bytes of the input that hold no line end */
	bool skipping;           /* the rest of a line that was too long */
	bool eof, broken, ended, closed;
	unsigned handles;
	void (*on_end)(void *context);
	void *context;
};

static void settle(struct coop_mcp_stdio *stdio);
static void on_readable(uv_poll_t *poll, int status, int events);
static void on_writable(uv_poll_t *poll, int status, int events);
static void on_pump(uv_idle_t *idle);

static bool is_full(const struct coop_mcp_stdio *stdio)
{
	return coop_buf_size(&stdio->output) >= OUT_FULL;
}

static void watch(struct coop_mcp_stdio *stdio)
{
	bool want = !stdio->eof && !stdio->closed && !is_full(stdio);
	bool more = coop_buf_size(&stdio->output) && !stdio->broken && !stdio->closed;

	if (want != stdio->reading) {
		stdio->reading = want;
		if (stdio->polled_in)
			(void)(want ? uv_poll_start(&stdio->read, UV_READABLE, on_readable)
				    : uv_poll_stop(&stdio->read));
		else
			(void)(want ? uv_idle_start(&stdio->pump, on_pump)
				    : uv_idle_stop(&stdio->pump));
	}
	if (stdio->polled_out && more != stdio->writing) {
		stdio->writing = more;
		(void)(more ? uv_poll_start(&stdio->write, UV_WRITABLE, on_writable)
			    : uv_poll_stop(&stdio->write));
	}
}

/* A long answer through a small pipe is a change of processes for every piece of it. The pipe stays
 * large: it holds only what is in it. */
static void widen(struct coop_mcp_stdio *stdio)
{
	if (!stdio->widened)
		(void)fcntl(stdio->out, F_SETPIPE_SZ, PIPE_WIDE);
	stdio->widened = true;
}

/* How many bytes went out. */
static size_t write_some(struct coop_mcp_stdio *stdio, const void *bytes, size_t size)
{
	size_t done = 0;

	if (size > PIPE_USUAL)
		widen(stdio);
	while (done < size && !stdio->broken) {
		ssize_t n = write(stdio->out, (const char *)bytes + done, size - done);
		if (n >= 0)
			done += (size_t)n;
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			stdio->broken = true;
	}
	return done;
}

static void flush(struct coop_mcp_stdio *stdio)
{
	size_t size = coop_buf_size(&stdio->output);

	if (size)
		coop_buf_consume(&stdio->output,
				 write_some(stdio, coop_buf_front(&stdio->output), size));
	/* Nobody reads any more: there is nothing to be kept for. */
	if (stdio->broken)
		coop_buf_clear(&stdio->output);
}

static void on_rest(uv_timer_t *timer)
{
	(void)timer;
	(void)malloc_trim(0);
}

static void on_send(struct coop_mcp_channel *channel, const char *json, size_t size, bool last)
{
	struct coop_mcp_stdio *stdio = (struct coop_mcp_stdio *)channel;
	bool idle = coop_buf_size(&stdio->output) == 0;

	(void)last;
	if (stdio->broken || stdio->closed)
		return;
	/* A message goes whole or not at all. */
	if (!coop_buf_reserve(&stdio->output, size + 1))
		return;
	bool is_long = size > PIPE_USUAL;
	/* Most of a long one goes out uncopied. */
	size_t done = idle && is_long ? write_some(stdio, json, size) : 0;
	(void)coop_buf_append(&stdio->output, json + done, size - done);
	(void)coop_buf_append(&stdio->output, "\n", 1);
	if (idle)
		flush(stdio);
	if (is_long)
		(void)uv_timer_start(&stdio->rest, on_rest, REST_MS, 0);
	watch(stdio);
}

static bool has_room(const struct coop_mcp_channel *channel)
{
	return coop_buf_size(&((const struct coop_mcp_stdio *)channel)->output) < OUT_BUSY;
}

/* Whoever waits for an answer to its id gets it, where that can be made out. */
static void refuse_line(struct coop_mcp_stdio *stdio, char *line, size_t size)
{
	struct coop_scan_member member = {.name = "id"};
	json_t *id = NULL;

	if (coop_scan_object(line, size, &member, 1) == 0 && member.value)
		id = json_loadb(member.value, member.size, JSON_DECODE_ANY, NULL);
	coop_mcp_refuse_id(
		&stdio->channel, json_is_string(id) || json_is_integer(id) ? id : NULL,
		COOP_MCP_PARSE, NULL,
		"this line is no JSON in UTF-8, has a member twice or a NUL in a name, or is "
		"nested deeper than 64");
	json_decref(id);
}

static void take_line(struct coop_mcp_stdio *stdio, char *line, size_t size)
{
	while (size && (line[size - 1] == '\r' || line[size - 1] == ' '))
		size--;
	if (!size)
		return;
	json_t *message = coop_mcp_parse(line, size);
	if (message)
		(void)coop_mcp_take(stdio->mcp, &stdio->session, &stdio->channel, message);
	else
		refuse_line(stdio, line, size);
	json_decref(message);
}

/* All whole lines, as long as the client reads its answers. */
static void take_lines(struct coop_mcp_stdio *stdio)
{
	while (!stdio->closed && !is_full(stdio)) {
		size_t size = coop_buf_size(&stdio->input);
		char *text = (char *)coop_buf_front(&stdio->input);
		const char *end = size > stdio->looked
					  ? memchr(text + stdio->looked, '\n', size - stdio->looked)
					  : NULL;
		size_t length = end ? (size_t)(end - text) : size;
		if (length > stdio->line_max && !stdio->skipping) {
			stdio->skipping = true;
			coop_mcp_refuse(&stdio->channel, COOP_MCP_PARSE, "this line is too long");
		}
		if (!end) {
			stdio->looked = size;
			if (stdio->skipping) {
				coop_buf_consume(&stdio->input, size);
				stdio->looked = 0;
			}
			return;
		}
		if (!stdio->skipping)
			take_line(stdio, text, length);
		stdio->skipping = false;
		stdio->looked = 0;
		coop_buf_consume(&stdio->input, length + 1);
	}
}

static void take_input(struct coop_mcp_stdio *stdio)
{
	uint8_t *room = coop_buf_reserve(&stdio->input, READ_BYTES);
	ssize_t n = room ? read(stdio->in, room, READ_BYTES) : -1;

	if (n < 0 && room && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		coop_buf_commit(&stdio->input, (size_t)n);
		take_lines(stdio);
	} else {
		/* What stands there without a line's end is a message all the same. */
		if (coop_buf_append(&stdio->input, "\n", 1) == 0)
			take_lines(stdio);
		coop_mcp_stop(stdio->mcp);
		coop_mcp_stdio_finish(stdio);
	}
	watch(stdio);
	settle(stdio);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	take_input(poll->data);
}

static void on_pump(uv_idle_t *idle)
{
	take_input(idle->data);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
	struct coop_mcp_stdio *stdio = poll->data;

	(void)status;
	(void)events;
	flush(stdio);
	if (has_room(&stdio->channel)) {
		coop_mcp_subscription_room(stdio->session.subscriptions);
		coop_mcp_resume(stdio->mcp);
	}
	/* Lines that had come already while there was no room. */
	take_lines(stdio);
	watch(stdio);
	settle(stdio);
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_mcp_stdio *stdio = timer->data;

	stdio->ended = true;
	stdio->on_end(stdio->context);
}

/* After the end of the input: everything answered and read, or nobody there. Looked at again when
 * something was written. */
static void settle(struct coop_mcp_stdio *stdio)
{
	if (!stdio->eof || stdio->ended || stdio->closed)
		return;
	if (stdio->broken || (stdio->mcp->open == 0 && coop_buf_size(&stdio->output) == 0))
		(void)uv_timer_start(&stdio->timer, on_timer, 0, 0);
}

static void on_sent(struct coop_mcp_channel *channel, const char *json, size_t size, bool last)
{
	on_send(channel, json, size, last);
	settle((struct coop_mcp_stdio *)channel);
}

static void on_cancelled(struct coop_mcp_channel *channel)
{
	settle((struct coop_mcp_stdio *)channel);
}

void coop_mcp_stdio_finish(struct coop_mcp_stdio *stdio)
{
	if (stdio->eof)
		return;
	stdio->eof = true;
	watch(stdio);
	(void)uv_timer_start(&stdio->timer, on_timer, FINISH_MS, 0);
	settle(stdio);
}

static bool can_poll(int fd)
{
	struct stat info;

	return fstat(fd, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) &&
	       !S_ISBLK(info.st_mode);
}

/* A pipe is this program's own; a terminal is shared with others, whom it must not surprise. */
static void do_not_block(int fd)
{
	struct stat info;
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && fstat(fd, &info) == 0 &&
	    (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)))
		(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static void on_closed(uv_handle_t *handle)
{
	struct coop_mcp_stdio *stdio = handle->data;

	if (--stdio->handles)
		return;
	coop_buf_clear(&stdio->input);
	coop_buf_clear(&stdio->output);
	free(stdio);
}

void coop_mcp_stdio_close(struct coop_mcp_stdio *stdio)
{
	coop_mcp_session_clear(stdio->mcp, &stdio->session);
	stdio->closed = true;
	watch(stdio);
	if (stdio->polled_in)
		uv_close((uv_handle_t *)&stdio->read, on_closed);
	if (stdio->polled_out)
		uv_close((uv_handle_t *)&stdio->write, on_closed);
	uv_close((uv_handle_t *)&stdio->pump, on_closed);
	uv_close((uv_handle_t *)&stdio->timer, on_closed);
	uv_close((uv_handle_t *)&stdio->rest, on_closed);
}

struct coop_mcp_stdio *coop_mcp_stdio_new(uv_loop_t *loop, struct coop_mcp *mcp, int in, int out,
					  size_t line_max, void (*ended)(void *context),
					  void *context)
{
	struct coop_mcp_stdio *stdio = coop_mem_zalloc(sizeof *stdio);

	if (!stdio)
		return NULL;
	stdio->channel = (struct coop_mcp_channel){
		.send = on_sent, .cancelled = on_cancelled, .has_room = has_room};
	stdio->mcp = mcp;
	stdio->session =
		(struct coop_mcp_session){.version = COOP_MCP_NONE, .channel = &stdio->channel};
	stdio->in = in;
	stdio->out = out;
	stdio->line_max = line_max;
	stdio->on_end = ended;
	stdio->context = context;
	do_not_block(out);
	(void)uv_idle_init(loop, &stdio->pump);
	(void)uv_timer_init(loop, &stdio->timer);
	(void)uv_timer_init(loop, &stdio->rest);
	stdio->handles = 3;
	stdio->polled_in = can_poll(in) && uv_poll_init(loop, &stdio->read, in) == 0;
	stdio->polled_out = can_poll(out) && uv_poll_init(loop, &stdio->write, out) == 0;
	stdio->handles += (unsigned)stdio->polled_in + (unsigned)stdio->polled_out;
	stdio->read.data = stdio->write.data = stdio->pump.data = stdio->timer.data =
		stdio->rest.data = stdio;
	watch(stdio);
	return stdio;
}
