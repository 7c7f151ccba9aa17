#include "doors/tools/core/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doors/tools/core/advice.h"
#include "doors/tools/core/fiber.h"
#include "doors/tools/core/run_private.h"
#include "interface/schema.h"

static void on_closed(uv_handle_t *handle)
{
	struct coop_tool_run *run = handle->data;

	coop_fiber_free(run->fiber);
	json_decref(run->call.args);
	json_decref(run->call.result);
	free(run->own);
	free(run);
}

/* What it started for itself has nobody any more who waits for it. */
static void end_own(const struct coop_tool_run *run)
{
	const struct coop_handler nobody = {0};
	json_t *args = run->own ? json_pack("{s:[s]}", "ids", run->own) : NULL;

	if (args)
		(void)run->host->call(run->host->context, "cancel", args, NULL, 0, &nobody);
}

static enum coop_tool_outcome outcome_of(struct coop_tool_run *run)
{
	struct coop_tool_call *call = &run->call;

	if (run->status == 0 && run->no_memory)
		run->status = coop_tool_no_memory(call);
	if (run->status == 0)
		return call->failed ? COOP_TOOL_FAILURE : COOP_TOOL_OK;
	json_t *error = coop_advice_error(&call->error);
	if (error) {
		json_decref(call->result);
		call->result = error;
	} else {
		(void)json_object_clear(call->result);
	}
	return call->failed ? COOP_TOOL_FAILURE : COOP_TOOL_ERROR;
}

static void finish(struct coop_tool_run *run)
{
	end_own(run);
	if (!run->cancelled) {
		enum coop_tool_outcome outcome = outcome_of(run);
		run->client.done(run->client.context, outcome, run->call.result);
	}
	uv_close((uv_handle_t *)&run->timer, on_closed);
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_tool_run *run = timer->data;

	if (run->over) {
		finish(run);
		return;
	}
	run->timed_out = true;
	coop_tool_run_kick(run);
}

void coop_tool_run_kick(struct coop_tool_run *run)
{
	if (run->over || run->running)
		return;
	run->running = true;
	run->over = coop_fiber_resume(run->fiber);
	run->running = false;
	if (run->over)
		finish(run);
}

void coop_tool_run_alarm(struct coop_tool_run *run, int64_t until)
{
	int64_t left = until - coop_tool_now();

	run->timed_out = false;
	if (until < 0)
		(void)uv_timer_stop(&run->timer);
	else
		(void)uv_timer_start(&run->timer, on_timer, left > 0 ? (uint64_t)left : 0, 0);
}

bool coop_tool_is_harn(const json_t *args)
{
	return coop_arg(args, "mode") || coop_arg(args, "argv");
}

static int carry_out(struct coop_tool_call *call)
{
	const struct coop_tool *form = call->tool;
	struct coop_err err = {0};

	if (!json_is_object(call->args))
		return coop_tool_fail(call, "invalid_input", "arguments",
				      "arguments must be an object");
	if (form->harn && coop_tool_is_harn(call->args))
		form = form->harn;
	if (form->checks_itself || coop_schema_check(form->input, call->args, &err) == 0)
		return form->run(call);
	coop_advice_take(&call->error, &err, call->tool);
	return -EINVAL;
}

static void begin(void *context)
{
	struct coop_tool_run *run = context;

	run->status = carry_out(&run->call);
}

struct coop_tool_run *coop_tool_run(const struct coop_tool_host *host,
				    const struct coop_tool_setup *setup,
				    const struct coop_tool *tool, json_t *args,
				    const struct coop_tool_client *client)
{
	struct coop_tool_run *run = coop_mem_zalloc(sizeof *run);

	if (!run)
		return NULL;
	run->call.tool = tool;
	run->call.setup = setup;
	run->call.args = args ? json_incref(args) : json_object();
	run->call.result = json_object();
	run->host = host;
	run->client = *client;
	run->started = coop_tool_now();
	run->fiber = coop_fiber_new(begin, run);
	if (!run->call.args || !run->call.result || !run->fiber) {
		coop_fiber_free(run->fiber);
		json_decref(run->call.args);
		json_decref(run->call.result);
		free(run);
		return NULL;
	}
	(void)uv_timer_init(host->loop, &run->timer);
	run->timer.data = run;
	run->running = true;
	run->over = coop_fiber_resume(run->fiber);
	run->running = false;
	/* The caller has not got it yet: an answer that is there already comes later. */
	if (run->over)
		(void)uv_timer_start(&run->timer, on_timer, 0, 0);
	return run;
}

void coop_tool_cancel(struct coop_tool_run *run)
{
	run->cancelled = true;
	if (run->over) {
		(void)uv_timer_stop(&run->timer);
		finish(run);
		return;
	}
	coop_tool_run_kick(run);
}
