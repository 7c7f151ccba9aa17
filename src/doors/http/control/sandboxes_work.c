#include "doors/http/control/sandboxes_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doors/http/runtime/v1/refusal.h"
#include "doors/http/users/detail.h"

void coop_sandbox_work_free(struct coop_sandbox_work *work)
{
	coop_user_drop(work->call);
	coop_user_unref(work->user);
	json_decref(work->agent);
	json_decref(work->list);
	json_decref(work->args);
	json_decref(work->warnings);
	coop_sandbox_query_clear(&work->query);
	explicit_bzero(work->token, sizeof work->token);
	free(work);
}

static void over(struct coop_http_exchange *exchange)
{
	struct coop_sandbox_work *work = exchange->context;

	work->exchange = NULL;
	if (!work->call || !work->stays)
		coop_sandbox_work_free(work);
}

static void no_memory(struct coop_http_exchange *exchange)
{
	coop_http_refuse(exchange, 500, "internal", "no memory is left for this");
}

struct coop_sandbox_work *coop_sandbox_work_new(struct coop_http_exchange *exchange)
{
	static const struct coop_http_behaviour behaviour = {.over = over};
	struct coop_sandbox_work *work = coop_mem_zalloc(sizeof *work);

	if (!work) {
		no_memory(exchange);
		return NULL;
	}
	work->exchange = exchange;
	work->user = coop_user_ref(exchange->user);
	work->status = 200;
	coop_http_expect(exchange, &behaviour, work);
	return work;
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct coop_sandbox_work *work = user;
	static const struct coop_error unreadable = {.code = "internal",
						     .message = "the keeper's answer is lost"};
	json_t *result = status == 0 ? json_loads(json, 0, NULL) : NULL;

	work->call = NULL;
	work->step(work, result, result ? NULL : status == 0 ? &unreadable : error);
	json_decref(result);
}

void coop_sandbox_ask(struct coop_sandbox_work *work, const char *op, json_t *args,
		      coop_sandbox_step *step)
{
	const struct coop_handler handler = {.done = on_done, .user = work};

	work->step = step;
	work->call = args ? coop_user_call(work->user, op, args, NULL, 0, &handler) : NULL;
	if (work->call)
		return;
	if (work->exchange)
		no_memory(work->exchange);
	else
		coop_sandbox_work_free(work);
}

void coop_sandbox_refuse(struct coop_sandbox_work *work, const struct coop_error *error)
{
	char message[sizeof error->message + 8];

	/* Of one that is yet to be made it is another complaint. */
	if (coop_detail_is(error, "field", "agent") && !work->stays) {
		coop_http_refuse(work->exchange, 404, "sandbox_not_found",
				 "there is no such sandbox");
		return;
	}
	json_t *details = json_loads(error->details, 0, NULL);
	const char *field = json_string_value(json_object_get(details, "field"));
	bool env = field && !strncmp(field, "env", 3) && !strncmp(error->message, "env", 3);
	json_decref(details);
	(void)snprintf(message, sizeof message, "%s%s", env ? "envs" : "",
		       error->message + (env ? 3 : 0));
	coop_refuse_as(work->exchange, coop_refusal_of(error), message);
}
