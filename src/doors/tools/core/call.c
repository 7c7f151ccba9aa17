#include "doors/tools/core/call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/text.h"
#include "doors/tools/core/fiber.h"
#include "doors/tools/core/run_private.h"
#include "interface/err.h"
#include "interface/schema.h"

/* An answer must have left before the bound, not begin to be made then. */
#define MARGIN_MS 1000

static struct coop_tool_run *run_of(struct coop_tool_call *call)
{
	return (struct coop_tool_run *)call;
}

int64_t coop_tool_now(void)
{
	return (int64_t)(uv_hrtime() / 1000000);
}

int coop_tool_pause(struct coop_tool_call *call, int64_t until)
{
	struct coop_tool_run *run = run_of(call);

	if (!run->woken && !run->cancelled)
		coop_tool_run_alarm(run, until);
	while (!run->woken && !run->timed_out && !run->cancelled)
		coop_fiber_suspend(run->fiber);
	(void)uv_timer_stop(&run->timer);
	bool woken = run->woken;
	run->woken = run->timed_out = false;
	if (run->cancelled)
		return -ECANCELED;
	return woken ? 0 : -ETIME;
}

void coop_tool_wake(struct coop_tool_call *call)
{
	struct coop_tool_run *run = run_of(call);

	run->woken = true;
	coop_tool_run_kick(run);
}

static int64_t bound_of(const struct coop_tool_call *call)
{
	const struct coop_tool_run *run = (const struct coop_tool_run *)call;
	int64_t most = call->setup->max_wait_ms;

	if (!most)
		return -1;
	return run->started + (most > 2 * MARGIN_MS ? most - MARGIN_MS : most / 2);
}

int64_t coop_tool_until(const struct coop_tool_call *call, int64_t wanted_ms)
{
	int64_t bound = bound_of(call), until = wanted_ms < 0 ? -1 : coop_tool_now() + wanted_ms;

	if (until < 0)
		return bound;
	return bound >= 0 && bound < until ? bound : until;
}

int64_t coop_tool_patience(const struct coop_tool_call *call, int64_t wanted_ms)
{
	int64_t until = coop_tool_until(call, wanted_ms), left = until - coop_tool_now();

	if (until < 0)
		return -1;
	return left > 0 ? left : 0;
}

size_t coop_tool_inline(const struct coop_tool_call *call)
{
	return (size_t)(call->setup->max_inline_bytes ? call->setup->max_inline_bytes
						      : COOP_TOOL_INLINE);
}

bool coop_tool_wants_progress(const struct coop_tool_call *call)
{
	return ((const struct coop_tool_run *)call)->client.progress != NULL;
}

void coop_tool_progress(struct coop_tool_call *call, const char *message)
{
	struct coop_tool_run *run = run_of(call);

	if (run->client.progress && !run->cancelled)
		run->client.progress(run->client.context, message);
}

int coop_tool_fail(struct coop_tool_call *call, const char *code, const char *field,
		   const char *format, ...)
{
	struct coop_error *error = &call->error;
	va_list list;

	(void)snprintf(error->code, sizeof error->code, "%s", code);
	va_start(list, format);
	(void)vsnprintf(error->message, sizeof error->message, format, list);
	va_end(list);
	(void)snprintf(error->details, sizeof error->details, "{}");
	json_t *details = field ? json_pack("{s:s}", "field", field) : NULL;
	char *text = details ? json_dumps(details, JSON_COMPACT) : NULL;
	if (text)
		(void)snprintf(error->details, sizeof error->details, "%s", text);
	free(text);
	json_decref(details);
	return -EINVAL;
}

int coop_tool_no_memory(struct coop_tool_call *call)
{
	(void)coop_tool_fail(call, "internal", NULL, "there is no memory for the answer");
	return -ENOMEM;
}

void coop_tool_set(struct coop_tool_call *call, const char *name, json_t *value)
{
	if (json_object_set_new(call->result, name, value) < 0)
		run_of(call)->no_memory = true;
}

json_t *coop_tool_text(const void *bytes, size_t size)
{
	struct coop_text text;

	if (coop_text_view(bytes, size, false, &text) < 0)
		return NULL;
	json_t *value = json_stringn_nocheck(text.text, text.size);
	coop_text_clear(&text);
	return value;
}

int coop_tool_check_list(struct coop_tool_call *call, const char *name,
			 const struct coop_field *fields)
{
	const json_t *list = coop_arg(call->args, name), *item;
	size_t index;

	json_array_foreach(list, index, item)
	{
		struct coop_err err = {0};
		if (!json_is_object(item))
			return coop_tool_fail(call, "invalid_input", name,
					      "%s[%zu] must be an object", name, index);
		if (coop_schema_check(fields, item, &err) < 0)
			return coop_tool_fail(call, coop_err_name(err.code), name, "in %s[%zu]: %s",
					      name, index, err.message);
	}
	return 0;
}
