/* What a door gives to the tools: a loop, and a way to ask the keeper on behalf of the caller. The
 * gateway's coop_user_call() and a connection of libcoop (keeper_link.h) are such ways. */
#ifndef COOP_TOOLS_HOST_H
#define COOP_TOOLS_HOST_H

#include <jansson.h>
#include <uv.h>

#include "coop.h"

struct coop_tool_host {
	uv_loop_t *loop;
	void *context;
	/* Asks for an operation; `args` is taken over in every case, `data` is copied. The
	 * handler's functions are called later, never from here, and `done` exactly once unless the
	 * call was dropped. NULL without memory: `done` is not called then. */
	void *(*call)(void *context, const char *op, json_t *args, const void *data, size_t size,
		      const struct coop_handler *handler);
	/* Forgets it: the handler is not called any more. Not after `done`. */
	void (*drop)(void *call);
};

#endif
