#include "doors/mcp/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doors/mcp/methods.h"
#include "doors/tools/core/record.h"

/* Between tries to reach the keeper again: doubled each time, up to the last. */
#define RETRY_MS 500u
#define RETRIES_MAX 6u

/* Looks in one pause, each after three times as long as the one before: a program may take a while
 * from its question to its waiting. */
#define LOOKS_MAX 4u

/* A time that never comes. */
#define NEVER UINT64_MAX

/* A call that stays open, and when to make it again. */
struct line {
	void *call;
	uint64_t at; /* to be asked then */
	unsigned failures;
};

struct process {
	struct coop_mcp_watch *watch;
	char id[COOP_ID_SIZE];
	struct coop_mcp_interest *interests;
	struct line follow;
	struct line look;
	uint64_t bytes; /* of output, as far as they were noticed */
	bool known;     /* `bytes` are */
	bool input;     /* its stdin is open: it may wait for it */
	bool blocked;   /* that it does has been told */
	unsigned looks; /* in this pause */
	struct process *next, **link;
};

struct coop_mcp_watch {
	const struct coop_tool_host *host;
	uv_timer_t timer;
	struct coop_mcp_interest *lists;
	struct line events;
	struct process *processes;
	unsigned count;
};

void coop_mcp_interest_add(struct coop_mcp_interest **list, struct coop_mcp_interest *interest)
{
	interest->next = *list;
	interest->link = list;
	if (interest->next)
		interest->next->link = &interest->next;
	*list = interest;
}

static void remove_interest(struct coop_mcp_interest *interest)
{
	if (!interest->link)
		return;
	*interest->link = interest->next;
	if (interest->next)
		interest->next->link = interest->link;
	interest->next = NULL;
	interest->link = NULL;
}

void coop_mcp_interest_tell(struct coop_mcp_interest *list)
{
	for (; list; list = list->next)
		list->changed(list);
}

void coop_mcp_interest_release(struct coop_mcp_interest **list)
{
	while (*list) {
		struct coop_mcp_interest *interest = *list;
		remove_interest(interest);
		interest->changed(interest);
	}
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void on_timer(uv_timer_t *timer);

/* Sets the one timer to what comes next. */
static void set_timer(struct coop_mcp_watch *watch)
{
	uint64_t now = uv_now(watch->host->loop), at = watch->events.at;

	for (const struct process *process = watch->processes; process; process = process->next)
		at = earlier(at, earlier(process->follow.at, process->look.at));
	if (at == NEVER)
		(void)uv_timer_stop(&watch->timer);
	else
		(void)uv_timer_start(&watch->timer, on_timer, at > now ? at - now : 0, 0);
}

static void drop(const struct coop_mcp_watch *watch, struct line *line)
{
	if (line->call)
		watch->host->drop(line->call);
	line->call = NULL;
	line->at = NEVER;
}

/* Puts the line off after a failure. */
static void retry(const struct coop_mcp_watch *watch, struct line *line)
{
	line->at = uv_now(watch->host->loop) + (RETRY_MS << line->failures);
	if (line->failures < RETRIES_MAX)
		line->failures++;
}

/* `args` is taken over. */
static void ask(struct coop_mcp_watch *watch, struct line *line, const char *op, json_t *args,
		const struct coop_handler *handler)
{
	const struct coop_tool_host *host = watch->host;

	line->at = NEVER;
	line->call = args ? host->call(host->context, op, args, NULL, 0, handler) : NULL;
	if (!line->call)
		retry(watch, line);
}

static void tell(const struct process *process, bool output_only)
{
	for (struct coop_mcp_interest *i = process->interests; i; i = i->next)
		if (i->output || !output_only)
			i->changed(i);
}

/* Something came. What comes next is not looked at for a while: whoever reads after being told has
 * that, too. */
static void output_came(struct process *process)
{
	struct coop_mcp_watch *watch = process->watch;

	drop(watch, &process->follow);
	drop(watch, &process->look);
	process->blocked = false;
	process->looks = 0;
	process->follow.at = uv_now(watch->host->loop) + COOP_MCP_PAUSE_MS;
	tell(process, true);
	set_timer(watch);
}

/* The next look in this pause comes after that time, if it has a point. */
static void look_after(struct process *process, uint64_t wait)
{
	if (!process->input || process->blocked || process->looks >= LOOKS_MAX)
		return;
	process->looks++;
	process->look.at = uv_now(process->watch->host->loop) + wait;
	set_timer(process->watch);
}

static void on_looked(void *user, uint64_t id, int status, const char *json,
		      const struct coop_error *error)
{
	struct process *process = user;
	json_t *answer = json ? json_loads(json, 0, NULL) : NULL;
	const json_t *record = json_object_get(answer, "process");
	uint64_t wait = COOP_MCP_PAUSE_MS;

	(void)id;
	(void)status;
	(void)error;
	process->look.call = NULL;
	process->input = json_is_true(json_object_get(record, "stdin_open"));
	if (json_is_true(json_object_get(record, "blocked_on_stdin"))) {
		process->blocked = true;
		tell(process, false);
	}
	for (unsigned i = 0; i < process->looks; i++)
		wait *= 3;
	look_after(process, wait);
	json_decref(answer);
}

static void look(struct process *process)
{
	const struct coop_handler handler = {.done = on_looked, .user = process};

	ask(process->watch, &process->look, "status", json_pack("{s:s}", "id", process->id),
	    &handler);
	/* One that could not be asked for is left out. */
	process->look.at = NEVER;
}

/* The follow has begun, again or for the first time. */
static void attached(struct process *process, const json_t *record)
{
	uint64_t bytes = coop_tool_record_bytes(record);
	bool rested = process->known, more = rested && bytes > process->bytes;

	process->follow.failures = 0;
	process->bytes = bytes;
	process->known = true;
	process->input = json_is_true(json_object_get(record, "stdin_open"));
	if (coop_tool_is_over(record)) {
		/* What is left to say comes at once. */
		if (more)
			tell(process, true);
	} else if (more) {
		output_came(process);
	} else {
		/* A rest is as long as a pause. */
		look_after(process, rested ? 0 : COOP_MCP_PAUSE_MS);
	}
}

static void on_follow_data(void *user, uint64_t id, const struct coop_chunk *chunk)
{
	struct process *process = user;

	(void)id;
	process->bytes += chunk->size;
	output_came(process);
}

static void on_follow_event(void *user, uint64_t id, const char *text)
{
	struct process *process = user;
	json_t *event = json_loads(text, 0, NULL);
	const char *name = json_string_value(json_object_get(event, "event"));

	(void)id;
	if (name && !strcmp(name, "attached"))
		attached(process, json_object_get(event, "process"));
	else if (name && !strcmp(name, "gap"))
		output_came(process);
	json_decref(event);
}

static void process_free(struct process *process)
{
	drop(process->watch, &process->follow);
	drop(process->watch, &process->look);
	*process->link = process->next;
	if (process->next)
		process->next->link = process->link;
	process->watch->count--;
	free(process);
}

static void on_follow_done(void *user, uint64_t id, int status, const char *json,
			   const struct coop_error *error)
{
	struct process *process = user;
	struct coop_mcp_watch *watch = process->watch;

	(void)id;
	(void)json;
	process->follow.call = NULL;
	if (status < 0 && strcmp(error->code, "no_such_process") != 0) {
		retry(watch, &process->follow);
	} else {
		/* Nothing comes any more: this is the last word on it. */
		coop_mcp_interest_release(&process->interests);
		process_free(process);
	}
	set_timer(watch);
}

static void follow(struct process *process)
{
	const struct coop_handler handler = {.data = on_follow_data,
					     .event = on_follow_event,
					     .done = on_follow_done,
					     .user = process};

	ask(process->watch, &process->follow, "follow",
	    json_pack("{s:s, s:i, s:s}", "id", process->id, "tail", 0, "until", "eof"), &handler);
}

static struct process *find(const struct coop_mcp_watch *watch, const char *id)
{
	struct process *process = watch->processes;

	while (process && strcmp(process->id, id) != 0)
		process = process->next;
	return process;
}

static void tell_everything(const struct coop_mcp_watch *watch)
{
	coop_mcp_interest_tell(watch->lists);
	for (const struct process *process = watch->processes; process; process = process->next)
		tell(process, false);
}

/* A process has another state now. */
static void changed(struct coop_mcp_watch *watch, const char *event, const char *id)
{
	bool end = !strcmp(event, "exited"), list = end || !strcmp(event, "started");
	struct process *process = find(watch, id);

	if (list)
		coop_mcp_interest_tell(watch->lists);
	if (process && (list || !strcmp(event, "stopped") || !strcmp(event, "continued") ||
			!strcmp(event, "output_first")))
		tell(process, false);
	/* Its last word comes with the follow: it has rested long enough, so that both are one. */
	if (process && end && !process->follow.call) {
		process->follow.at = uv_now(watch->host->loop);
		set_timer(watch);
	}
}

static void on_event(void *user, uint64_t id, const char *text)
{
	struct coop_mcp_watch *watch = user;
	json_t *event = json_loads(text, 0, NULL);
	const char *name = json_string_value(json_object_get(event, "event"));
	const char *who =
		json_string_value(json_object_get(json_object_get(event, "process"), "id"));

	(void)id;
	if (!name || !strcmp(name, "gap")) {
		tell_everything(watch);
	} else if (!strcmp(name, "subscribed")) {
		if (watch->events.failures)
			tell_everything(watch);
		watch->events.failures = 0;
	} else if (who) {
		changed(watch, name, who);
	}
	json_decref(event);
}

static void on_events_done(void *user, uint64_t id, int status, const char *json,
			   const struct coop_error *error)
{
	struct coop_mcp_watch *watch = user;

	(void)id;
	(void)status;
	(void)json;
	(void)error;
	watch->events.call = NULL;
	retry(watch, &watch->events);
	set_timer(watch);
}

static void follow_events(struct coop_mcp_watch *watch)
{
	const struct coop_handler handler = {
		.event = on_event, .done = on_events_done, .user = watch};

	ask(watch, &watch->events, "follow_events", json_pack("{s:b}", "replay", 0), &handler);
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_mcp_watch *watch = timer->data;
	uint64_t now = uv_now(watch->host->loop);

	if (watch->events.at <= now)
		follow_events(watch);
	for (struct process *process = watch->processes; process; process = process->next) {
		if (process->follow.at <= now)
			follow(process);
		if (process->look.at <= now)
			look(process);
	}
	set_timer(watch);
}

static struct coop_mcp_watch *watch_of(struct coop_mcp *mcp)
{
	struct coop_mcp_watch *watch = mcp->watch;

	if (watch)
		return watch;
	watch = coop_mem_zalloc(sizeof *watch);
	if (!watch)
		return NULL;
	watch->host = mcp->host;
	watch->events.at = NEVER;
	(void)uv_timer_init(mcp->host->loop, &watch->timer);
	watch->timer.data = watch;
	mcp->watch = watch;
	return watch;
}

/* Somebody is interested from now on. */
static void begin(struct coop_mcp_watch *watch)
{
	if (!watch->events.call && watch->events.at == NEVER)
		follow_events(watch);
	set_timer(watch);
}

static struct process *process_new(struct coop_mcp_watch *watch, const char *id)
{
	struct process *process = coop_mem_zalloc(sizeof *process);

	if (!process)
		return NULL;
	process->watch = watch;
	(void)strncpy(process->id, id, sizeof process->id - 1);
	process->look.at = NEVER;
	process->next = watch->processes;
	process->link = &watch->processes;
	if (process->next)
		process->next->link = &process->next;
	watch->processes = process;
	watch->count++;
	follow(process);
	return process;
}

int coop_mcp_watch_process(struct coop_mcp *mcp, const char *id, struct coop_mcp_interest *interest)
{
	struct coop_mcp_watch *watch = watch_of(mcp);
	struct process *process = watch ? find(watch, id) : NULL;

	if (watch && !process) {
		if (watch->count >= COOP_MCP_WATCHED_MAX)
			return -ENOSPC;
		process = process_new(watch, id);
	}
	if (!process)
		return -ENOMEM;
	coop_mcp_interest_add(&process->interests, interest);
	begin(watch);
	return 0;
}

int coop_mcp_watch_list(struct coop_mcp *mcp, struct coop_mcp_interest *interest)
{
	struct coop_mcp_watch *watch = watch_of(mcp);

	if (!watch)
		return -ENOMEM;
	coop_mcp_interest_add(&watch->lists, interest);
	begin(watch);
	return 0;
}

void coop_mcp_watch_end(struct coop_mcp *mcp, struct coop_mcp_interest *interest)
{
	struct coop_mcp_watch *watch = mcp->watch;

	remove_interest(interest);
	if (!watch)
		return;
	for (struct process *process = watch->processes, *next; process; process = next) {
		next = process->next;
		if (!process->interests)
			process_free(process);
	}
	if (!watch->processes && !watch->lists) {
		drop(watch, &watch->events);
		watch->events.failures = 0;
	}
	set_timer(watch);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void coop_mcp_watch_free(struct coop_mcp_watch *watch)
{
	if (!watch)
		return;
	while (watch->processes) {
		while (watch->processes->interests)
			remove_interest(watch->processes->interests);
		process_free(watch->processes);
	}
	while (watch->lists)
		remove_interest(watch->lists);
	drop(watch, &watch->events);
	uv_close((uv_handle_t *)&watch->timer, on_closed);
}
