#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "client/client.h"
#include "coop.h"

#define STREAM_COUNT 5

struct coop_reply {
	char *json;
	struct coop_buf streams[STREAM_COUNT];
	size_t size; /* bytes of all streams */
};

/* One blocking call on its way. */
struct call {
	struct coop *coop;
	struct coop_reply *reply;
	struct coop_error *error;
	bool done;
	int status;
	int lost; /* why bytes of the answer could not be kept: -ENOMEM, -EMSGSIZE */
};

static void keep_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct call *call = user;
	struct coop_reply *reply = call->reply;

	if (call->lost)
		return;
	if (chunk->size > COOP_REPLY_MAX - reply->size)
		call->lost = -EMSGSIZE;
	else
		call->lost =
			coop_buf_append(&reply->streams[chunk->stream], chunk->data, chunk->size);
	reply->size += call->lost ? 0 : chunk->size;
	/* Fails only if the connection or the memory is gone; the request then ends by itself. */
	if (call->lost)
		(void)coop_cancel(call->coop, request);
}

static void keep_end(void *user, uint64_t request, int status, const char *json,
		     const struct coop_error *error)
{
	struct call *call = user;

	(void)request;
	call->done = true;
	call->status = status;
	if (call->lost == -EMSGSIZE) {
		call->status = coop_client_fail(call->error, call->lost, "too_large",
						"the answer brings more than 64 MiB");
		return;
	}
	if (status < 0) {
		if (call->error)
			*call->error = *error;
		return;
	}
	call->reply->json = coop_mem_strdup(json);
	if (!call->reply->json || call->lost)
		call->status = coop_client_fail(call->error, -ENOMEM, "internal", "out of memory");
}

static int wait_for(struct call *call, uint64_t request)
{
	while (!call->done) {
		int r = coop_run(call->coop, -1, call->error);
		if (r < 0 && !call->done) {
			/* `call` is about to go, so nothing may point at it. */
			struct coop_reply_slot *slot = coop_client_find(call->coop, request);
			if (slot)
				slot->handler = (struct coop_handler){0};
			return r;
		}
	}
	return call->status;
}

COOP_PUBLIC int coop_call(struct coop *coop, const char *op, const char *args, const void *data,
			  size_t size, struct coop_reply **ret, struct coop_error *error)
{
	struct call call = {.coop = coop, .error = error};
	struct coop_handler handler = {.data = keep_data, .done = keep_end, .user = &call};
	uint64_t request = 0;
	int r;

	if (coop->dispatching)
		return coop_client_fail(error, -EBUSY, "invalid_input",
					"a handler may not wait for other requests");
	call.reply = coop_mem_zalloc(sizeof *call.reply);
	if (!call.reply)
		return coop_client_fail(error, -ENOMEM, "internal", "out of memory");
	r = coop_submit(coop, op, args, data, size, &handler, &request, error);
	if (r == 0)
		r = wait_for(&call, request);
	if (r < 0 || !ret) {
		coop_reply_free(call.reply);
		return r;
	}
	*ret = call.reply;
	return 0;
}

COOP_PUBLIC const char *coop_reply_json(const struct coop_reply *reply)
{
	return reply->json;
}

COOP_PUBLIC const void *coop_reply_data(const struct coop_reply *reply, enum coop_stream stream,
					size_t *ret_size)
{
	/* unsigned: callers written in other languages pass any number */
	unsigned index = (unsigned)stream;

	if (index >= STREAM_COUNT || !reply->streams[index].data) {
		*ret_size = 0;
		return "";
	}
	*ret_size = coop_buf_size(&reply->streams[index]);
	return coop_buf_front(&reply->streams[index]);
}

COOP_PUBLIC void coop_reply_free(struct coop_reply *reply)
{
	if (!reply)
		return;
	for (size_t i = 0; i < STREAM_COUNT; i++)
		coop_buf_clear(&reply->streams[i]);
	free(reply->json);
	free(reply);
}
