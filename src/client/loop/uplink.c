#include "client/loop/uplink.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/mem.h"

struct coop_uplink {
	struct coop *coop;
	struct coop_uplink_owner owner;
	uv_poll_t poll;
	int watched;      /* the events that libuv looks for */
	bool deaf;        /* the keeper takes nothing any more */
	bool dispatching; /* what is wanted is looked at afterwards */
	bool closing;
};

static void on_poll(uv_poll_t *poll, int status, int events);

static void watch(struct coop_uplink *uplink)
{
	short wanted = coop_poll_events(uplink->coop);
	int events = (wanted & POLLIN ? UV_READABLE : 0) | (wanted & POLLOUT ? UV_WRITABLE : 0);

	if (uplink->closing || uplink->dispatching || events == uplink->watched)
		return;
	uplink->watched = events;
	(void)uv_poll_start(&uplink->poll, events, on_poll);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct coop_uplink *uplink = poll->data;
	struct coop_error error = {0};

	(void)events;
	/* After an error libuv looks no more; what had come before it is still there, and then the
	 * end. */
	if (status < 0)
		uplink->watched = 0;
	uplink->dispatching = true;
	bool ended = coop_dispatch(uplink->coop, &error) < 0;
	if (!uplink->closing)
		uplink->owner.turned(uplink->owner.user, uplink, ended ? &error : NULL);
	uplink->dispatching = false;
	watch(uplink);
}

int coop_uplink_new(uv_loop_t *loop, struct coop *coop, const struct coop_uplink_owner *owner,
		    struct coop_uplink **ret)
{
	struct coop_uplink *uplink = coop_mem_zalloc(sizeof *uplink);
	int r = uplink ? uv_poll_init(loop, &uplink->poll, coop_fd(coop)) : -ENOMEM;

	if (r < 0) {
		coop_close(coop);
		free(uplink);
		return r;
	}
	uplink->coop = coop;
	uplink->owner = *owner;
	uplink->poll.data = uplink;
	watch(uplink);
	*ret = uplink;
	return 0;
}

void coop_uplink_give(struct coop_uplink *uplink, const struct coop_uplink_owner *owner)
{
	uplink->owner = *owner;
}

static void on_closed(uv_handle_t *handle)
{
	struct coop_uplink *uplink = handle->data;
	struct coop_uplink_owner owner = uplink->owner;

	coop_close(uplink->coop);
	free(uplink);
	if (owner.closed)
		owner.closed(owner.user);
}

void coop_uplink_close(struct coop_uplink *uplink)
{
	if (uplink->closing)
		return;
	uplink->closing = true;
	uv_close((uv_handle_t *)&uplink->poll, on_closed);
}

size_t coop_uplink_pending(const struct coop_uplink *uplink)
{
	return coop_pending(uplink->coop);
}

bool coop_uplink_takes(const struct coop_uplink *uplink)
{
	return !uplink->deaf && !uplink->closing;
}

int coop_uplink_submit(struct coop_uplink *uplink, const char *op, const char *args,
		       const void *data, size_t size, const struct coop_handler *handler,
		       uint64_t *ret_request, struct coop_error *error)
{
	int r = coop_submit(uplink->coop, op, args, data, size, handler, ret_request, error);

	uplink->deaf = uplink->deaf || r == -EPIPE;
	watch(uplink);
	return r;
}

void coop_uplink_cancel(struct coop_uplink *uplink, uint64_t request)
{
	(void)coop_cancel(uplink->coop, request);
	watch(uplink);
}

struct coop *coop_uplink_coop(const struct coop_uplink *uplink)
{
	return uplink->coop;
}
