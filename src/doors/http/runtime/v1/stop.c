#include "doors/http/runtime/v1/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/jsonw.h"
#include "base/text/signame.h"
#include "doors/http/net/target.h"
#include "doors/http/runtime/ask.h"
#include "doors/http/runtime/stop.h"
#include "doors/http/runtime/v1/process_ask.h"
#include "doors/http/runtime/v1/view.h"

static void refuse(struct coop_http_exchange *exchange, const char *field, const char *rule)
{
	coop_http_refuse(exchange, 400, "invalid_argument", "%s %s", field, rule);
}

#define SIGNAL_RULE "must be the name or the number of a signal"
#define GROUP_RULE "must be true or false"
#define GRACE_RULE "must be a whole number of milliseconds, at most a day"

/* {"process": P} with what is left of it, if anything should not be. */
static void on_stopped(struct coop_stop *stop, const json_t *result)
{
	const json_t *survivors = json_object_get(result, "survivors");
	struct coop_process_view view;
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	if (!coop_v1_ask_view(&stop->ask, result, &view))
		return;
	json_int_t left = json_integer_value(survivors);
	if (stop->killing && !survivors)
		left = json_integer_value(json_object_get(view.record, "descendants")) +
		       !view.ended;
	coop_jsonw_begin(&w, NULL);
	coop_process_view_write(&view, &w, "process");
	if (stop->killing)
		coop_jsonw_int(&w, "survivors", left);
	coop_jsonw_end(&w);
	coop_ask_answer(&stop->ask, &text, &w);
}

static void on_status(struct coop_ask *ask, const json_t *result)
{
	struct coop_process_view view;

	if (!coop_v1_ask_view(ask, result, &view))
		return;
	if (view.ended)
		coop_v1_answer_process(ask, &view);
	else
		coop_stop_begin((struct coop_stop *)ask);
}

static void begin(struct coop_http_exchange *exchange, const struct coop_stop *wanted)
{
	struct coop_stop *stop = coop_ask_new(exchange, sizeof *stop);

	if (!stop)
		return;
	stop->signal = wanted->signal;
	stop->group = wanted->group;
	stop->grace_ms = wanted->grace_ms;
	stop->stopped = on_stopped;
	coop_v1_ask_process(&stop->ask, on_status);
}

void coop_runtime_delete(struct coop_http_exchange *exchange)
{
	struct coop_stop stop = {.signal = SIGTERM, .group = true, .grace_ms = -1};
	uint64_t grace = 0;
	int status;
	COOP_AUTO_FREE char *name = coop_query_get(exchange->query, "signal", &status);
	int group = coop_query_bool(exchange->query, "kill_group", &stop.group);
	int has_grace =
		coop_query_uint(exchange->query, "grace_ms", COOP_STOP_GRACE_MOST_MS, &grace);

	if (name)
		stop.signal = coop_signame_parse(name);
	if (has_grace > 0)
		stop.grace_ms = (int64_t)grace;
	if (status == -ENOMEM)
		coop_http_refuse(exchange, 500, "internal", "out of memory");
	else if (status < 0 || stop.signal < 0)
		refuse(exchange, "signal", SIGNAL_RULE);
	else if (group < 0)
		refuse(exchange, "kill_group", GROUP_RULE);
	else if (has_grace < 0)
		refuse(exchange, "grace_ms", GRACE_RULE);
	else
		begin(exchange, &stop);
}

static const json_t *member(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_null(value) ? NULL : value;
}

void coop_runtime_signal(struct coop_http_exchange *exchange)
{
	struct coop_stop stop = {.signal = SIGTERM, .group = true, .grace_ms = -1};
	const json_t *signal = member(exchange->json, "signal");
	const json_t *group = member(exchange->json, "kill_group");
	const json_t *grace = member(exchange->json, "grace_ms");

	if (signal)
		stop.signal = coop_process_signal(signal);
	if (group)
		stop.group = json_is_true(group);
	if (grace)
		stop.grace_ms = json_is_integer(grace) ? json_integer_value(grace) : -1;
	if (stop.signal < 0)
		refuse(exchange, "signal", SIGNAL_RULE);
	else if (group && !json_is_boolean(group))
		refuse(exchange, "kill_group", GROUP_RULE);
	else if (grace && (stop.grace_ms < 0 || stop.grace_ms > COOP_STOP_GRACE_MOST_MS))
		refuse(exchange, "grace_ms", GRACE_RULE);
	else
		begin(exchange, &stop);
}
