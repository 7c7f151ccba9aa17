/* Operations of the keeper, asked for from within a call. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/fiber.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/run_private.h"

/* Bytes that one answer may bring; no operation gives as many. */
#define DATA_MAX (16u << 20)
/* What a program that does not read is waited for. */
#define WRITE_MS 10000

struct coop_tool_watch {
	struct coop_tool_run *run;
	struct coop_tool_listener listener;
	void *call; /* NULL: done */
};

static void on_watch_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct coop_tool_watch *watch = user;

	(void)request;
	if (watch->listener.data)
		watch->listener.data(watch->listener.context, chunk);
}

static void on_watch_event(void *user, uint64_t request, const char *json)
{
	struct coop_tool_watch *watch = user;

	(void)request;
	if (watch->listener.event)
		watch->listener.event(watch->listener.context, json);
}

static void on_watch_done(void *user, uint64_t request, int status, const char *json,
			  const struct coop_error *error)
{
	struct coop_tool_watch *watch = user;

	(void)request;
	watch->call = NULL;
	if (watch->listener.done)
		watch->listener.done(watch->listener.context, status, json, error);
}

static int open_watch(struct coop_tool_call *call, const char *op, json_t *args, const void *data,
		      size_t size, const struct coop_tool_listener *listener,
		      struct coop_tool_watch **ret)
{
	struct coop_tool_run *run = (struct coop_tool_run *)call;
	struct coop_tool_watch *watch = coop_mem_zalloc(sizeof *watch);
	struct coop_handler handler = {on_watch_data, on_watch_event, on_watch_done, watch};

	if (!watch || !args) {
		json_decref(args);
		free(watch);
		return coop_tool_no_memory(call);
	}
	watch->run = run;
	watch->listener = *listener;
	watch->call = run->host->call(run->host->context, op, args, data, size, &handler);
	if (!watch->call) {
		free(watch);
		return coop_tool_no_memory(call);
	}
	*ret = watch;
	return 0;
}

int coop_tool_open(struct coop_tool_call *call, const char *op, json_t *args,
		   const struct coop_tool_listener *listener, struct coop_tool_watch **ret)
{
	*ret = NULL;
	if (((struct coop_tool_run *)call)->cancelled) {
		json_decref(args);
		return -ECANCELED;
	}
	return open_watch(call, op, args, NULL, 0, listener, ret);
}

void coop_tool_close(struct coop_tool_watch *watch)
{
	if (!watch)
		return;
	if (watch->call)
		watch->run->host->drop(watch->call);
	free(watch);
}

struct ask {
	struct coop_tool_run *run;
	struct coop_tool_answer answer;
	size_t size; /* of the bytes that came */
	int status;
	bool done;
};

static void on_ask_data(void *context, const struct coop_chunk *chunk)
{
	struct ask *ask = context;
	unsigned stream = (unsigned)chunk->stream & 3;
	struct coop_buf *data = &ask->answer.data[stream];

	ask->size += chunk->size;
	if (ask->size > DATA_MAX) {
		ask->status = -EMSGSIZE;
		return;
	}
	if (coop_buf_size(data) == 0)
		ask->answer.at[stream] = chunk->offset;
	/* Events are many streams in one order; of one stream the order is no news. */
	if (coop_buf_append(data, chunk->data, chunk->size) < 0 ||
	    (chunk->cursor != COOP_NO_CURSOR &&
	     coop_buf_append(&ask->answer.order, chunk->data, chunk->size) < 0))
		ask->status = -ENOMEM;
}

static void on_ask_done(void *context, int status, const char *json, const struct coop_error *error)
{
	struct ask *ask = context;
	struct coop_tool_call *call = &ask->run->call;

	ask->done = true;
	if (status < 0) {
		ask->status = status;
		call->error = *error;
	} else if (ask->status == 0) {
		ask->answer.json = json_loads(json, 0, NULL);
		ask->status = ask->answer.json ? 0 : -ENOMEM;
	}
	if (ask->status == -ENOMEM)
		(void)coop_tool_no_memory(call);
	else if (ask->status == -EMSGSIZE)
		(void)coop_tool_fail(call, "too_large", NULL, "the keeper's answer is too large");
	coop_tool_run_kick(ask->run);
}

void coop_tool_answer_clear(struct coop_tool_answer *answer)
{
	json_decref(answer->json);
	for (size_t i = 0; i < sizeof answer->data / sizeof answer->data[0]; i++)
		coop_buf_clear(&answer->data[i]);
	coop_buf_clear(&answer->order);
	memset(answer, 0, sizeof *answer);
}

/* With `whole` the answer is waited for even if the caller gives up meanwhile. */
static int ask_for(struct coop_tool_call *call, const char *op, json_t *args, const void *data,
		   size_t size, bool whole, struct coop_tool_answer *ret)
{
	struct coop_tool_run *run = (struct coop_tool_run *)call;
	struct ask ask = {.run = run};
	struct coop_tool_listener listener = {on_ask_data, NULL, on_ask_done, &ask};
	struct coop_tool_watch *watch = NULL;

	if (ret)
		memset(ret, 0, sizeof *ret);
	if (run->cancelled) {
		json_decref(args);
		return -ECANCELED;
	}
	int r = open_watch(call, op, args, data, size, &listener, &watch);
	if (r < 0)
		return r;
	/* A keeper that does not answer must not keep the caller from an answer. */
	if (call->setup->max_wait_ms)
		coop_tool_run_alarm(run, run->started + call->setup->max_wait_ms);
	while (!ask.done && !run->timed_out && (whole || !run->cancelled))
		coop_fiber_suspend(run->fiber);
	(void)uv_timer_stop(&run->timer);
	coop_tool_close(watch);
	r = ask.done ? ask.status : -ECANCELED;
	if (!ask.done && run->timed_out && !run->cancelled) {
		(void)coop_tool_fail(call, "unavailable", NULL, "the keeper does not answer");
		r = -EAGAIN;
	}
	run->timed_out = false;
	if (r < 0 || !ret)
		coop_tool_answer_clear(&ask.answer);
	else
		*ret = ask.answer;
	return r;
}

int coop_tool_ask(struct coop_tool_call *call, const char *op, json_t *args,
		  struct coop_tool_answer *ret)
{
	return ask_for(call, op, args, NULL, 0, false, ret);
}

int coop_tool_ask_data(struct coop_tool_call *call, const char *op, json_t *args, const void *data,
		       size_t size, struct coop_tool_answer *ret)
{
	return ask_for(call, op, args, data, size, false, ret);
}

static int add(json_t *args, const char *name, const char *value)
{
	if (!value || json_object_get(args, name))
		return 0;
	return json_object_set_new(args, name, json_string(value));
}

/* What the door was set up with, where the request says nothing of it. */
static int add_setup(json_t *args, const struct coop_tool_setup *setup)
{
	json_t *sandbox = json_object_get(args, "sandbox");
	bool profiled = json_object_get(args, "sandbox_profile") != NULL;

	if (!sandbox && ((setup->profile && !profiled) || setup->workspace)) {
		sandbox = json_object();
		if (json_object_set_new(args, "sandbox", sandbox) < 0)
			return -ENOMEM;
	}
	if (sandbox && ((!profiled && add(sandbox, "profile", setup->profile) < 0) ||
			add(sandbox, "workspace", setup->workspace) < 0))
		return -ENOMEM;
	if (setup->base_env && !json_object_get(args, "base_env") &&
	    json_object_set(args, "base_env", setup->base_env) < 0)
		return -ENOMEM;
	return add(args, "cwd", setup->cwd) < 0 || add(args, "session", setup->session) < 0
		       ? -ENOMEM
		       : 0;
}

int coop_tool_spawn(struct coop_tool_call *call, json_t *args, const void *input, size_t input_size,
		    json_t **ret_record)
{
	struct coop_tool_run *run = (struct coop_tool_run *)call;
	const char *lease = json_string_value(json_object_get(args, "lease"));
	bool own = lease && strcmp(lease, "ephemeral") == 0;
	struct coop_tool_answer answer;

	*ret_record = NULL;
	if (!args || add_setup(args, call->setup) < 0) {
		json_decref(args);
		return coop_tool_no_memory(call);
	}
	int r = ask_for(call, "spawn", args, input, input_size, own, &answer);
	if (r < 0)
		return r;
	json_t *record = json_incref(json_object_get(answer.json, "process"));
	coop_tool_answer_clear(&answer);
	const char *id = json_string_value(json_object_get(record, "id"));
	if (own && id)
		run->own = coop_mem_strdup(id);
	if (!id || (own && !run->own) || run->cancelled) {
		json_decref(record);
		return run->cancelled ? -ECANCELED : coop_tool_no_memory(call);
	}
	*ret_record = record;
	return 0;
}

int coop_tool_write(struct coop_tool_call *call, const char *id, const void *bytes, size_t size,
		    bool secret, size_t *ret_written)
{
	struct coop_tool_answer answer;
	int64_t patience = coop_tool_patience(call, WRITE_MS);
	int r = coop_tool_ask_data(call, "write_stdin",
				   json_pack("{s:s, s:I, s:b}", "id", id, "timeout_ms",
					     (json_int_t)patience, "secret", secret),
				   bytes, size, &answer);

	*ret_written = 0;
	if (r < 0)
		return r;
	*ret_written = (size_t)coop_tool_number(answer.json, "bytes_written");
	coop_tool_answer_clear(&answer);
	return 0;
}

void coop_tool_let_go(struct coop_tool_call *call)
{
	struct coop_tool_run *run = (struct coop_tool_run *)call;

	free(run->own);
	run->own = NULL;
}

int coop_tool_keep(struct coop_tool_call *call, const char *id)
{
	int r = coop_tool_ask(call, "keep", json_pack("{s:s}", "id", id), NULL);

	if (r == 0)
		coop_tool_let_go(call);
	return r;
}
