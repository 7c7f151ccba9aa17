#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/json/jsoncheck.h"
#include "base/mem.h"
#include "client/client.h"
#include "coop.h"
#include "interface/frame.h"

#define FIRST_SLOTS 16u
#define OP_MAX 64u

/* What one submit puts on the wire: {"id":…,"op":… ,"args":… ,"data":…} and data frames. */
struct message {
	uint64_t id;
	char head[OP_MAX + 48];
	const char *args; /* NULL: none */
	char tail[48];
	size_t head_size, args_size, tail_size, json_size;
	const uint8_t *data;
	size_t data_size;
};

struct coop_reply_slot *coop_client_find(const struct coop *coop, uint64_t request)
{
	if (!coop->slot_count || !request)
		return NULL;
	struct coop_reply_slot *slot = &coop->slots[request & (coop->slot_count - 1)];
	return slot->id == request ? slot : NULL;
}

struct coop_handler coop_client_take(struct coop *coop, struct coop_reply_slot *slot)
{
	struct coop_handler handler = slot->handler;

	*slot = (struct coop_reply_slot){0};
	coop->open_count--;
	return handler;
}

/* Keeps half of the slots free, so that a free one is near. Ids that differ modulo n also differ
 * modulo 2n. */
static int make_room(struct coop *coop)
{
	size_t count = coop->slot_count ? coop->slot_count * 2 : FIRST_SLOTS;

	if (coop->slot_count && coop->open_count < coop->slot_count / 2)
		return 0;
	struct coop_reply_slot *slots = coop_mem_zalloc(count * sizeof *slots);
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < coop->slot_count; i++) {
		if (coop->slots[i].id)
			slots[coop->slots[i].id & (count - 1)] = coop->slots[i];
	}
	free(coop->slots);
	coop->slots = slots;
	coop->slot_count = count;
	return 0;
}

static struct coop_reply_slot *next_slot(struct coop *coop)
{
	while (coop->slots[coop->next_id & (coop->slot_count - 1)].id)
		coop->next_id++;
	return &coop->slots[coop->next_id & (coop->slot_count - 1)];
}

static bool is_op_name(const char *op)
{
	size_t length = op ? strlen(op) : 0;

	for (size_t i = 0; i < length && length < OP_MAX; i++) {
		if (!isalnum((unsigned char)op[i]) && !strchr("_-.", op[i]))
			return false;
	}
	return length > 0 && length < OP_MAX;
}

static int compose(struct message *message, const char *op, struct coop_error *error)
{
	bool starts = strcmp(op, "spawn") == 0 || strcmp(op, "check") == 0;
	const char *join = message->args ? ",\"args\":" : "";
	int n;

	n = snprintf(message->head, sizeof message->head, "{\"id\":%" PRIu64 ",\"op\":\"%s\"%s",
		     message->id, op, join);
	message->head_size = (size_t)n;
	n = message->data_size ? snprintf(message->tail, sizeof message->tail, ",\"data\":%zu}",
					  message->data_size)
			       : snprintf(message->tail, sizeof message->tail, "}");
	message->tail_size = (size_t)n;
	message->args_size = message->args ? strlen(message->args) : 0;
	if (message->data_size > (starts ? COOP_SPAWN_DATA_MAX : COOP_WRITE_STDIN_MAX))
		return coop_client_refuse(error, -EMSGSIZE, "too_large", "data",
					  starts ? "a spawn takes at most 20 MiB of bytes"
						 : "a request takes at most 1 MiB of bytes");
	if (message->args_size > COOP_FRAME_JSON_MAX - message->head_size - message->tail_size)
		return coop_client_refuse(error, -EMSGSIZE, "too_large", "args",
					  "a request is at most 8 MiB of JSON");
	/* What stands behind an object would become members of the request. */
	if (message->args && !coop_jsoncheck_object(message->args, message->args_size))
		return coop_client_refuse(error, -EINVAL, "invalid_input", "args",
					  "not a JSON object");
	message->json_size = message->head_size + message->args_size + message->tail_size;
	return 0;
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t size)
{
	if (size)
		memcpy(at, bytes, size);
	return at + size;
}

/* All frames of the message go into the queue together or not at all: nothing may come between
 * them. */
static int enqueue(struct coop *coop, const struct message *message)
{
	size_t frames = (message->data_size + COOP_FRAME_DATA_MAX - 1) / COOP_FRAME_DATA_MAX;
	size_t total = COOP_FRAME_HEADER + message->json_size + frames * COOP_FRAME_DATA_HEADER +
		       message->data_size;
	uint8_t *start, *at;

	if (coop_buf_size(&coop->out) > COOP_CLIENT_OUT_MAX)
		return -EAGAIN;
	start = at = coop_buf_reserve(&coop->out, total);
	if (!at)
		return -ENOMEM;
	coop_frame_put_json(at, message->json_size);
	at = put(at + COOP_FRAME_HEADER, message->head, message->head_size);
	at = put(at, message->args, message->args_size);
	at = put(at, message->tail, message->tail_size);
	for (size_t done = 0; done < message->data_size;) {
		struct coop_frame frame = {
			.kind = COOP_FRAME_DATA,
			.stream = COOP_STDIN,
			.size = message->data_size - done,
			.request = message->id,
			.offset = done,
			.cursor = COOP_FRAME_NO_CURSOR,
		};
		if (frame.size > COOP_FRAME_DATA_MAX)
			frame.size = COOP_FRAME_DATA_MAX;
		coop_frame_put_data(at, &frame);
		at = put(at + COOP_FRAME_DATA_HEADER, message->data + done, frame.size);
		done += frame.size;
	}
	coop_buf_commit(&coop->out, (size_t)(at - start));
	return 0;
}

void coop_client_flush(struct coop *coop)
{
	while (!coop->deaf && coop_buf_size(&coop->out)) {
		ssize_t n = send(coop->fd, coop_buf_front(&coop->out), coop_buf_size(&coop->out),
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			coop_buf_consume(&coop->out, (size_t)n);
		} else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
			return;
		} else if (errno != EINTR) {
			/* What the keeper said before, perhaps why it left, is still to be read. */
			coop->deaf = true;
			coop_buf_clear(&coop->out);
		}
	}
}

COOP_PUBLIC int coop_submit(struct coop *coop, const char *op, const char *args, const void *data,
			    size_t size, const struct coop_handler *handler, uint64_t *ret_request,
			    struct coop_error *error)
{
	struct message message = {.args = args, .data = data, .data_size = size};
	int r;

	if (coop->ended || coop->deaf)
		return coop_client_fail(error, -EPIPE, "unreachable",
					"the connection to the keeper has ended");
	if (!is_op_name(op))
		return coop_client_refuse(error, -EINVAL, "invalid_input", "op",
					  "not the name of an operation");
	r = make_room(coop);
	if (r < 0)
		return coop_client_fail(error, r, "internal", "out of memory");
	struct coop_reply_slot *slot = next_slot(coop);
	message.id = coop->next_id;
	r = compose(&message, op, error);
	if (r < 0)
		return r;
	r = enqueue(coop, &message);
	if (r < 0)
		return coop_client_fail(error, r, "internal", "%s",
					r == -EAGAIN ? "too many requests wait to be sent"
						     : "out of memory");
	*slot = (struct coop_reply_slot){.id = message.id};
	if (handler)
		slot->handler = *handler;
	coop->open_count++;
	coop->next_id++;
	if (ret_request)
		*ret_request = message.id;
	coop_client_flush(coop);
	return 0;
}

COOP_PUBLIC int coop_cancel(struct coop *coop, uint64_t request)
{
	uint8_t frame[COOP_FRAME_HEADER + 48];
	int n, r;

	if (coop->ended || coop->deaf)
		return -EPIPE;
	if (!coop_client_find(coop, request))
		return 0;
	n = snprintf((char *)frame + COOP_FRAME_HEADER, 48, "{\"cancel\":%" PRIu64 "}", request);
	coop_frame_put_json(frame, (size_t)n);
	r = coop_buf_append(&coop->out, frame, COOP_FRAME_HEADER + (size_t)n);
	if (r == 0)
		coop_client_flush(coop);
	return r;
}

COOP_PUBLIC size_t coop_pending(const struct coop *coop)
{
	return coop->open_count;
}
