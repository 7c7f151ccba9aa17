/* The reading half: bytes to frames to handlers. Nothing here blocks but the poll() of
 * coop_run(). */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "client/client.h"
#include "client/scan.h"
#include "coop.h"
#include "interface/frame.h"

#define READ_SIZE 65536u
/* Reads of one dispatch: a flood on this connection must leave the caller's loop its turn. */
#define READS_MAX 16
/* Input memory that an idle connection may keep; giving back more often would cost page faults
 * on every read. */
#define KEEP_CAPACITY (2u << 20)

enum { HELLO, ID, RESULT, ERROR, EVENT, FATAL, MEMBER_COUNT };

static void end_connection(struct coop *coop, const struct coop_error *why)
{
	coop->ended = true;
	coop->end = *why;
	coop_buf_clear(&coop->out);
	coop_buf_clear(&coop->in);
	/* Submitting fails from now on, so the slots stay where they are while handlers run. */
	for (size_t i = 0; i < coop->slot_count; i++) {
		if (!coop->slots[i].id)
			continue;
		uint64_t request = coop->slots[i].id;
		struct coop_handler handler = coop_client_take(coop, &coop->slots[i]);
		if (handler.done)
			handler.done(handler.user, request, -EPIPE, NULL, &coop->end);
	}
}

static int end_for(struct coop *coop, const char *code, const char *message)
{
	struct coop_error why;

	(void)coop_client_fail(&why, -EPIPE, code, "%s", message);
	end_connection(coop, &why);
	return -EPIPE;
}

static void take_hello(struct coop *coop, const struct coop_scan_member *hello)
{
	json_t *root = json_loadb(hello->value, hello->size, 0, NULL);
	const char *version = json_string_value(json_object_get(root, "version"));

	coop->keeper_pid = (int)json_integer_value(json_object_get(root, "pid"));
	(void)snprintf(coop->keeper_version, sizeof coop->keeper_version, "%s",
		       version ? version : "");
	json_decref(coop->inherit);
	coop->inherit = json_incref(json_object_get(root, "inherit"));
	coop->greeted = json_integer_value(json_object_get(root, "protocol")) == 1;
	json_decref(root);
}

static uint64_t parse_id(const struct coop_scan_member *member)
{
	uint64_t id = 0;

	for (size_t i = 0; i < member->size && i < 16; i++) {
		if (member->value[i] < '0' || member->value[i] > '9')
			return 0;
		id = id * 10 + (uint64_t)(member->value[i] - '0');
	}
	return id;
}

static void answer(struct coop *coop, struct coop_reply_slot *slot,
		   struct coop_scan_member *members)
{
	uint64_t request = slot->id;
	struct coop_handler handler = coop_client_take(coop, slot);
	struct coop_error error;

	if (!handler.done)
		return;
	if (members[RESULT].value) {
		/* Behind the value there is at least the brace that closes the frame; it is not
		 * needed again. */
		members[RESULT].value[members[RESULT].size] = 0;
		handler.done(handler.user, request, 0, members[RESULT].value, NULL);
		return;
	}
	coop_client_error_parse(members[ERROR].value, members[ERROR].size, &error);
	handler.done(handler.user, request, -EREMOTEIO, NULL, &error);
}

static void tell_event(const struct coop_reply_slot *slot, char *text, size_t size)
{
	struct coop_handler handler = slot->handler;
	char saved = text[size];

	if (!handler.event)
		return;
	/* The byte behind the frame begins the next one, or is spare (see fill). */
	text[size] = 0;
	handler.event(handler.user, slot->id, text);
	text[size] = saved;
}

static int handle_json(struct coop *coop, char *text, size_t size)
{
	struct coop_scan_member members[MEMBER_COUNT] = {
		[HELLO] = {.name = "hello"},   [ID] = {.name = "id"},
		[RESULT] = {.name = "result"}, [ERROR] = {.name = "error"},
		[EVENT] = {.name = "event"},   [FATAL] = {.name = "fatal"},
	};
	struct coop_error error;

	if (coop_scan_object(text, size, members, MEMBER_COUNT) < 0)
		return end_for(coop, "protocol", "the keeper sent something that is no object");
	if (members[HELLO].value) {
		take_hello(coop, &members[HELLO]);
		return coop->greeted ? 0
				     : end_for(coop, "protocol",
					       "the keeper speaks another protocol version");
	}
	if (members[FATAL].value && members[ERROR].value) {
		coop_client_error_parse(members[ERROR].value, members[ERROR].size, &error);
		end_connection(coop, &error);
		return -EPIPE;
	}
	struct coop_reply_slot *slot = coop_client_find(coop, parse_id(&members[ID]));
	/* Not open: answered already, or an event that crossed a cancel. */
	if (slot && members[EVENT].value)
		tell_event(slot, text, size);
	else if (slot && (members[RESULT].value || members[ERROR].value))
		answer(coop, slot, members);
	return 0;
}

static void handle_data(const struct coop *coop, const struct coop_frame *frame)
{
	const struct coop_reply_slot *slot = coop_client_find(coop, frame->request);
	struct coop_chunk chunk = {
		.stream = (enum coop_stream)frame->stream,
		.offset = frame->offset,
		.cursor = frame->cursor,
		.data = frame->bytes,
		.size = frame->size,
	};

	if (!slot || !slot->handler.data)
		return;
	struct coop_handler handler = slot->handler;
	handler.data(handler.user, frame->request, &chunk);
}

static void consume(struct coop_buf *in, size_t size)
{
	in->head += size;
	if (in->head < in->tail)
		return;
	if (in->capacity > KEEP_CAPACITY)
		coop_buf_clear(in);
	else
		in->head = in->tail = 0;
}

/* Handles every whole frame of the input: what stayed here would wait for a poll that never
 * wakes. */
static int handle_input(struct coop *coop)
{
	int count = 0;

	while (!coop->ended) {
		struct coop_frame frame;
		size_t used;
		const char *why;
		uint8_t *front = coop_buf_front(&coop->in);
		int r = coop_frame_parse(front, coop_buf_size(&coop->in), &frame, &used, &why);

		if (r == 0)
			break;
		if (r < 0)
			return end_for(coop, "protocol", why);
		count++;
		if (frame.kind == COOP_FRAME_DATA)
			handle_data(coop, &frame);
		else
			r = handle_json(coop, (char *)front + (frame.bytes - front), frame.size);
		if (r < 0)
			return r;
		consume(&coop->in, used);
	}
	return count;
}

/* Reads once. Returns 1 if there may be more, 0 if there is nothing now, negative at the end of
 * the connection. */
static int fill(struct coop *coop)
{
	/* One byte is kept spare behind the input, for the NUL that tell_event() needs. */
	uint8_t *place = coop_buf_reserve(&coop->in, READ_SIZE + 1);
	if (!place)
		return -ENOMEM;
	size_t room = coop->in.capacity - coop->in.tail - 1;
	ssize_t n = recv(coop->fd, place, room, MSG_DONTWAIT);
	if (n > 0) {
		coop_buf_commit(&coop->in, (size_t)n);
		return (size_t)n == room;
	}
	if (n < 0 && errno == EINTR)
		return 1;
	if (n < 0 && errno == EAGAIN)
		return 0;
	return n == 0 ? -EPIPE : -errno;
}

static int read_and_handle(struct coop *coop)
{
	int total = 0;

	for (int i = 0, more = 1; more > 0 && i < READS_MAX; i++) {
		more = fill(coop);
		if (more == -ENOMEM)
			return end_for(coop, "unreachable", "out of memory while reading");
		int n = more < 0 ? 0 : handle_input(coop);
		if (n < 0)
			return n;
		total += n;
		if (more < 0)
			return end_for(coop, "unreachable", "the keeper has closed the connection");
	}
	return total;
}

COOP_PUBLIC int coop_dispatch(struct coop *coop, struct coop_error *error)
{
	int r = -EPIPE;

	if (coop->dispatching)
		return coop_client_fail(error, -EBUSY, "invalid_input",
					"a handler may not wait for other requests");
	if (!coop->ended) {
		coop->dispatching = true;
		coop_client_flush(coop);
		r = read_and_handle(coop);
		coop->dispatching = false;
	}
	if (r < 0 && error)
		*error = coop->end;
	return r;
}

COOP_PUBLIC int coop_run(struct coop *coop, int timeout_ms, struct coop_error *error)
{
	struct pollfd entry = {.fd = coop->fd, .events = coop_poll_events(coop)};

	if (coop->ended || coop->dispatching)
		return coop_dispatch(coop, error);
	int n = poll(&entry, 1, timeout_ms);
	if (n < 0 && errno != EINTR)
		return coop_client_fail(error, -errno, "internal", "poll: %s", strerror(errno));
	return n > 0 ? coop_dispatch(coop, error) : 0;
}

COOP_PUBLIC int coop_fd(const struct coop *coop)
{
	return coop->fd;
}

COOP_PUBLIC short coop_poll_events(const struct coop *coop)
{
	if (coop->ended)
		return 0;
	return (short)(POLLIN | (coop_buf_size(&coop->out) ? POLLOUT : 0));
}
