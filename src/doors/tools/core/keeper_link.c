#include "doors/tools/core/keeper_link.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"
#include "client/loop/calls.h"
#include "client/loop/uplink.h"
#include "coop.h"

/* The keeper takes 256 requests of a connection at a time. What waits may not take all of them:
 * those that only ask go on. */
#define CALLS_MAX 240u
#define WAITS_MAX 150u
#define UPLINKS_MAX 16u

/* A connection on its way. Whoever has to be started or says hello late must not hold up the loop:
 * that is waited for in a thread. */
struct opening {
	uv_work_t work;
	struct coop_keeper_link *link;
	struct coop *coop;
	int status;
	struct coop_error error;
};

struct coop_keeper_link {
	uv_loop_t *loop;
	struct coop_tool_host host;
	struct coop_keeper_link_options options;
	char *agent;
	struct coop_calls *calls; /* NULL: closed */
	struct opening *opening;
	bool closing;
};

static const struct coop_error no_memory = {"internal", "there is no memory for a connection",
					    "{}"};

static void settle(struct coop_keeper_link *link)
{
	if (!link->closing || link->calls || link->opening)
		return;
	free(link->agent);
	free(link);
}

/* Asks and waits for the answer. Takes the arguments over. */
static int ask(struct coop *coop, const char *op, json_t *args, struct coop_error *error)
{
	struct coop_reply *reply = NULL;
	char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
	int r = text ? coop_call(coop, op, text, NULL, 0, &reply, error) : -ENOMEM;

	coop_reply_free(reply);
	free(text);
	json_decref(args);
	return r;
}

static int connect_to_keeper(const struct coop_keeper_link *link, struct coop **ret,
			     struct coop_error *error)
{
	int r = link->options.private_keeper ? coop_open_private(NULL, ret, error)
					     : coop_open(NULL, ret, error);

	if (r == 0)
		r = link->agent
			    ? ask(*ret, "login", json_pack("{s:s}", "agent", link->agent), error)
			    : 0;
	if (r == 0)
		r = ask(*ret, COOP_CEILING_OP, coop_door_ceiling_args(&link->options.ceiling),
			error);
	if (r < 0) {
		coop_close(*ret);
		*ret = NULL;
	}
	return r;
}

/* Takes the connection over in every case. */
static int add_uplink(struct coop_keeper_link *link, struct coop *coop)
{
	const struct coop_uplink_owner nobody = {0};
	struct coop_uplink *uplink;
	int r = coop_uplink_new(link->loop, coop, &nobody, &uplink);

	return r < 0 ? r : coop_calls_add(link->calls, uplink);
}

static void do_open(uv_work_t *work)
{
	struct opening *opening = work->data;

	opening->status = connect_to_keeper(opening->link, &opening->coop, &opening->error);
}

static void on_opened(uv_work_t *work, int status)
{
	struct opening *opening = work->data;
	struct coop_keeper_link *link = opening->link;
	int r = status < 0 ? status : opening->status;

	link->opening = NULL;
	if (link->closing && r == 0)
		coop_close(opening->coop);
	else if (r == 0)
		r = add_uplink(link, opening->coop);
	if (!link->closing && r < 0)
		coop_calls_fail(link->calls, *opening->error.code ? &opening->error : &no_memory);
	free(opening);
	settle(link);
}

/* Whether another connection is on its way, perhaps from now on; a private keeper has one only. */
static bool open_more(void *user, struct coop_error *error)
{
	struct coop_keeper_link *link = user;
	unsigned count = coop_calls_uplinks(link->calls);

	*error = no_memory;
	if (link->opening)
		return true;
	if (count == UPLINKS_MAX || (count && link->options.private_keeper))
		return false;
	struct opening *opening = coop_mem_zalloc(sizeof *opening);
	if (!opening)
		return false;
	opening->link = link;
	opening->work.data = opening;
	if (uv_queue_work(link->loop, &opening->work, do_open, on_opened) < 0) {
		free(opening);
		return false;
	}
	link->opening = opening;
	return true;
}

static void *start_call(void *context, const char *op, json_t *args, const void *data, size_t size,
			const struct coop_handler *handler)
{
	struct coop_keeper_link *link = context;

	return coop_calls_begin(link->calls, op, args, data, size, handler);
}

static void drop_call(void *call)
{
	coop_calls_drop(call);
}

int coop_keeper_link_new(uv_loop_t *loop, const struct coop_keeper_link_options *options,
			 struct coop_keeper_link **ret, struct coop_error *error)
{
	struct coop_keeper_link *link = coop_mem_zalloc(sizeof *link);
	const struct coop_calls_options limits = {.open_max = CALLS_MAX,
						  .standing_max = WAITS_MAX,
						  .waiting_max = UINT_MAX,
						  .want = open_more,
						  .user = link};
	struct coop *coop = NULL;
	int r = link ? 0 : -ENOMEM;

	*ret = NULL;
	if (r < 0)
		return r;
	link->loop = loop;
	link->options = *options;
	link->host = (struct coop_tool_host){loop, link, start_call, drop_call};
	if (options->agent && !(link->agent = coop_mem_strdup(options->agent)))
		r = -ENOMEM;
	if (r == 0)
		r = connect_to_keeper(link, &coop, error);
	if (r == 0 && !(link->calls = coop_calls_new(loop, &limits))) {
		coop_close(coop);
		r = -ENOMEM;
	}
	if (r == 0 && (r = add_uplink(link, coop)) < 0)
		coop_keeper_link_close(link);
	else if (r < 0) {
		free(link->agent);
		free(link);
	} else {
		*ret = link;
	}
	return r;
}

static void on_calls_closed(void *user)
{
	struct coop_keeper_link *link = user;

	link->calls = NULL;
	settle(link);
}

void coop_keeper_link_close(struct coop_keeper_link *link)
{
	static const struct coop_error gone = {"unreachable", "the connection has been closed",
					       "{}"};

	link->closing = true;
	coop_calls_close(link->calls, &gone, on_calls_closed, link);
	if (link->opening)
		(void)uv_cancel((uv_req_t *)&link->opening->work);
}

bool coop_keeper_link_is_opening(const struct coop_keeper_link *link)
{
	return link->opening != NULL;
}

const struct coop_tool_host *coop_keeper_link_host(const struct coop_keeper_link *link)
{
	return &link->host;
}

struct coop *coop_keeper_link_first(const struct coop_keeper_link *link)
{
	return coop_calls_first(link->calls);
}
