#include "doors/mcp/tasks.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/mem.h"
#include "doors/mcp/methods.h"
#include "doors/mcp/request.h"
#include "doors/mcp/tools.h"
#include "doors/tools/core/run.h"
#include "doors/tools/core/table.h"

/* Random bytes of an id: nobody guesses it. */
#define ID_BYTES 16
#define ID_PREFIX "task-"
/* How long run_command lets a command run that says nothing of it. */
#define RUN_DEFAULT_MS 30000

enum state { WORKING, COMPLETED, CANCELLED };
static const char *const state_names[] = {"working", "completed", "cancelled"};

struct task {
	struct coop_mcp_tasks *tasks;
	char id[sizeof ID_PREFIX + (size_t)2 * ID_BYTES];
	enum state state;
	struct coop_tool_run *run; /* while it works */
	json_t *result; /* of the call, once completed; NULL: there was no memory for it */
	int64_t created, updated; /* wall clock */
	int64_t ttl_ms;           /* from its creation; 0: no bound */
	struct coop_mcp_interest *interests;
	struct task *next;
};

struct coop_mcp_tasks {
	struct coop_mcp *mcp;
	struct coop_tool_setup
		setup;     /* of the server, but for the bound on waiting: nobody waits for these */
	struct task *list; /* newest first */
	unsigned count;
};

static void task_free(struct task *task)
{
	if (task->run)
		coop_tool_cancel(task->run);
	coop_mcp_interest_release(&task->interests);
	json_decref(task->result);
	task->tasks->count--;
	free(task);
}

/* Whether nobody may expect it to be there any more. What works always is. */
static bool is_stale(const struct task *task, int64_t now)
{
	int64_t until =
		task->ttl_ms ? task->created + task->ttl_ms : task->updated + COOP_MCP_TASKS_TTL_MS;

	return task->state != WORKING && now >= until;
}

static void forget_stale(struct coop_mcp_tasks *tasks)
{
	int64_t now = coop_clock_wall_ms();

	for (struct task **place = &tasks->list; *place;) {
		struct task *task = *place;
		if (!is_stale(task, now)) {
			place = &task->next;
			continue;
		}
		*place = task->next;
		task_free(task);
	}
}

static struct task *find(const struct coop_mcp *mcp, const char *id)
{
	if (!mcp->tasks || !id)
		return NULL;
	forget_stale(mcp->tasks);
	struct task *task = mcp->tasks->list;
	while (task && strcmp(task->id, id) != 0)
		task = task->next;
	return task;
}

static int make_id(struct task *task)
{
	uint8_t bytes[ID_BYTES];
	char *at = task->id + strlen(ID_PREFIX);

	if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) != (ssize_t)sizeof bytes)
		return -EAGAIN;
	memcpy(task->id, ID_PREFIX, strlen(ID_PREFIX));
	for (size_t i = 0; i < sizeof bytes; i++, at += 2)
		(void)snprintf(at, 3, "%02x", bytes[i]);
	return 0;
}

static json_t *time_text(int64_t wall_ms)
{
	char text[COOP_CLOCK_TEXT];

	coop_clock_format(wall_ms, text);
	return json_string(text);
}

/* The task, flat, as every message about it has it. */
static json_t *show(const struct task *task)
{
	json_t *shown = json_pack("{s:s, s:s, s:o, s:o, s:o, s:i}", "taskId", task->id, "status",
				  state_names[task->state], "createdAt", time_text(task->created),
				  "lastUpdatedAt", time_text(task->updated), "ttlMs",
				  task->ttl_ms ? json_integer(task->ttl_ms) : json_null(),
				  "pollIntervalMs", COOP_MCP_TASKS_POLL_MS);

	if (!shown || task->state != COMPLETED)
		return shown;
	if (task->result) {
		(void)json_object_set(shown, "result", task->result);
		return shown;
	}
	/* The call was carried out, and only its result is lost. */
	(void)json_object_set_new(shown, "status", json_string("failed"));
	(void)json_object_set_new(shown, "error",
				  json_pack("{s:i, s:s}", "code", COOP_MCP_INTERNAL, "message",
					    "no memory was left for the result"));
	return shown;
}

json_t *coop_mcp_tasks_show(const struct coop_mcp *mcp, const char *id)
{
	const struct task *task = find(mcp, id);

	return task ? show(task) : NULL;
}

int coop_mcp_tasks_watch(struct coop_mcp *mcp, const char *id, struct coop_mcp_interest *interest)
{
	struct task *task = find(mcp, id);

	if (!task)
		return -ENOENT;
	coop_mcp_interest_add(&task->interests, interest);
	if (task->state != WORKING)
		interest->changed(interest);
	return 0;
}

/* It is over; states that are final stay. */
static void end(struct task *task, enum state state)
{
	task->run = NULL;
	task->state = state;
	task->updated = coop_clock_wall_ms();
	coop_mcp_interest_tell(task->interests);
}

static void on_done(void *context, enum coop_tool_outcome outcome, json_t *result)
{
	struct task *task = context;

	task->result = coop_mcp_tool_result(outcome, result);
	end(task, COMPLETED);
}

static struct coop_mcp_tasks *tasks_of(struct coop_mcp *mcp)
{
	struct coop_mcp_tasks *tasks = mcp->tasks;

	if (tasks)
		return tasks;
	tasks = coop_mem_zalloc(sizeof *tasks);
	if (!tasks)
		return NULL;
	tasks->mcp = mcp;
	tasks->setup = *mcp->setup;
	tasks->setup.max_wait_ms = 0;
	mcp->tasks = tasks;
	return tasks;
}

/* How long it may be looked at; the arguments have not been checked. */
static int64_t ttl_of(const json_t *args)
{
	const json_t *seconds = json_object_get(args, "timeout_secs");
	const json_t *ms = json_object_get(args, "timeout_ms");
	json_int_t limit = json_integer_value(json_is_integer(seconds) ? seconds : ms);

	if (limit <= 0 && coop_tool_is_harn(args))
		return 0;
	if (limit <= 0 || limit > COOP_JSON_INT_MAX / 2000)
		limit = RUN_DEFAULT_MS;
	else if (json_is_integer(seconds))
		limit *= 1000;
	return limit + COOP_MCP_TASKS_TTL_MS;
}

/* Begins the call as a task; NULL: it cannot be one now. */
static struct task *begin(struct coop_mcp *mcp, json_t *args)
{
	struct coop_mcp_tasks *tasks = tasks_of(mcp);

	if (!tasks)
		return NULL;
	forget_stale(tasks);
	struct task *task =
		tasks->count < COOP_MCP_TASKS_MAX ? coop_mem_zalloc(sizeof *task) : NULL;
	if (!task)
		return NULL;
	const struct coop_tool_client client = {.done = on_done, .context = task};
	task->tasks = tasks;
	task->created = task->updated = coop_clock_wall_ms();
	task->ttl_ms = ttl_of(args);
	if (make_id(task) == 0)
		task->run = coop_tool_run(mcp->host, &tasks->setup, &coop_tool_run_command, args,
					  &client);
	if (!task->run) {
		free(task);
		return NULL;
	}
	task->next = tasks->list;
	tasks->list = task;
	tasks->count++;
	return task;
}

/* run_command, to be waited for. */
static bool is_wait(const json_t *params)
{
	const char *name = json_string_value(json_object_get(params, "name"));
	const json_t *args = json_object_get(params, "arguments");

	return name && !strcmp(name, coop_tool_run_command.name) && json_is_object(args) &&
	       !json_is_false(json_object_get(args, "wait")) &&
	       !json_is_true(json_object_get(args, "background")) &&
	       !json_is_true(json_object_get(args, "long_running"));
}

bool coop_mcp_tasks_take(struct coop_mcp_request *request)
{
	if (!coop_mcp_declares_tasks(request) || !is_wait(request->params))
		return false;
	const struct task *task =
		begin(request->mcp, json_object_get(request->params, "arguments"));
	if (!task)
		return false;
	json_t *result = show(task);
	if (result)
		(void)json_object_set_new(result, "resultType", json_string("task"));
	coop_mcp_answer(request, result);
	return true;
}

void coop_mcp_tasks_free(struct coop_mcp_tasks *tasks)
{
	if (!tasks)
		return;
	while (tasks->list) {
		struct task *task = tasks->list;
		tasks->list = task->next;
		task_free(task);
	}
	free(tasks);
}

/* The task that the request is about; NULL: it has been refused. */
static struct task *asked(struct coop_mcp_request *request)
{
	struct task *task =
		find(request->mcp, coop_mcp_plain(json_object_get(request->params, "taskId")));

	if (!coop_mcp_declares_tasks(request)) {
		coop_mcp_error(request, COOP_MCP_NO_CAPABILITY,
			       json_pack("{s:{s:{s:{}}}}", "requiredCapabilities", "extensions",
					 COOP_MCP_TASKS_EXTENSION),
			       "this request does not declare the extension %s",
			       COOP_MCP_TASKS_EXTENSION);
		return NULL;
	}
	if (!task)
		coop_mcp_error(request, COOP_MCP_INVALID_PARAMS, NULL,
			       "taskId names no task, or one whose time is over");
	return task;
}

static void get(struct coop_mcp_request *request)
{
	const struct task *task = asked(request);

	if (task)
		coop_mcp_answer(request, show(task));
}

/* Tasks here never ask for anything, so that there is nothing to be brought. */
static void update(struct coop_mcp_request *request)
{
	if (asked(request))
		coop_mcp_answer(request, json_object());
}

static void cancel(struct coop_mcp_request *request)
{
	struct task *task = asked(request);

	if (!task)
		return;
	if (task->state == WORKING) {
		coop_tool_cancel(task->run);
		end(task, CANCELLED);
	}
	coop_mcp_answer(request, json_object());
}

const struct coop_mcp_method coop_mcp_methods_tasks[] = {
	{"tasks/get", false, true, get},
	{"tasks/update", false, true, update},
	{"tasks/cancel", false, true, cancel},
	{0},
};
