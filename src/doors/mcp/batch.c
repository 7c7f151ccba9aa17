/* Batches, which revision 2025-03-26 has: many messages in one array, their answers in one as
 * well. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "doors/mcp/mcp.h"
#include "doors/mcp/request.h"

#define BATCH_MAX 100

struct batch {
	struct coop_mcp_channel channel; /* first */
	struct coop_mcp_channel *outer;
	struct coop_buf answers;
	unsigned open; /* answers that are still to come; and one while messages are taken */
	bool failed;
};

static void settle(struct batch *batch)
{
	if (--batch->open)
		return;
	if (batch->failed)
		coop_mcp_refuse(batch->outer, COOP_MCP_INTERNAL,
				"there is no memory for the answers");
	else if (coop_buf_size(&batch->answers) == 0 && batch->outer->cancelled)
		batch->outer->cancelled(batch->outer);
	else if (coop_buf_size(&batch->answers) && coop_buf_append(&batch->answers, "]", 1) == 0)
		batch->outer->send(batch->outer, (char *)coop_buf_front(&batch->answers),
				   coop_buf_size(&batch->answers), true);
	coop_buf_clear(&batch->answers);
	free(batch);
}

static void on_send(struct coop_mcp_channel *channel, const char *json, size_t size, bool last)
{
	struct batch *batch = (struct batch *)channel;

	if (!last) {
		batch->outer->send(batch->outer, json, size, false);
		return;
	}
	const char *sign = coop_buf_size(&batch->answers) ? "," : "[";
	if (coop_buf_append(&batch->answers, sign, 1) < 0 ||
	    coop_buf_append(&batch->answers, json, size) < 0)
		batch->failed = true;
	settle(batch);
}

static void on_cancelled(struct coop_mcp_channel *channel)
{
	settle((struct batch *)channel);
}

static bool has_room(const struct coop_mcp_channel *channel)
{
	const struct coop_mcp_channel *outer = ((const struct batch *)channel)->outer;

	return !outer->has_room || outer->has_room(outer);
}

unsigned coop_mcp_take_batch(struct coop_mcp *mcp, struct coop_mcp_session *session,
			     struct coop_mcp_channel *channel, json_t *messages)
{
	struct batch *batch;
	json_t *message;
	size_t index;
	unsigned begun = 0;

	if (json_array_size(messages) == 0 || json_array_size(messages) > BATCH_MAX) {
		coop_mcp_refuse(channel, COOP_MCP_INVALID_REQUEST, "a batch has 1 to 100 messages");
		return 1;
	}
	batch = coop_mem_zalloc(sizeof *batch);
	if (!batch) {
		coop_mcp_refuse(channel, COOP_MCP_INTERNAL, "there is no memory for the batch");
		return 1;
	}
	batch->channel = (struct coop_mcp_channel){
		.send = on_send, .cancelled = on_cancelled, .has_room = has_room};
	batch->outer = channel;
	batch->open = 1;
	json_array_foreach(messages, index, message)
	{
		/* An answer may come at once. */
		batch->open++;
		if (coop_mcp_take_one(mcp, session, &batch->channel, message))
			begun = 1;
		else
			batch->open--;
	}
	settle(batch);
	return begun;
}
