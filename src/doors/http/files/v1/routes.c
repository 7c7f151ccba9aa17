#include "doors/http/files/v1/routes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "doors/http/files/link.h"
#include "doors/http/files/v1/refusal.h"
#include "doors/http/files/v1/work.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/target.h"
#include "doors/http/runtime/v1/refusal.h"

char *coop_files_path(struct coop_http_exchange *exchange)
{
	int status;
	char *path = coop_query_get(exchange->query, "path", &status);

	if (status == -ENOMEM)
		coop_http_refuse(exchange, 503, "sandbox_overloaded", "out of memory");
	else if (!path || !*path)
		coop_http_refuse(exchange, 400, "invalid_argument", "path %s",
				 status < 0 ? "is no UTF-8 text" : "is missing");
	if (path && *path)
		return path;
	free(path);
	return NULL;
}

bool coop_files_flag(struct coop_http_exchange *exchange, const char *name, bool *ret)
{
	if (coop_query_bool(exchange->query, name, ret) >= 0)
		return true;
	coop_http_refuse(exchange, 400, "invalid_argument", "%s must be true or false", name);
	return false;
}

void *coop_files_work_new(struct coop_http_exchange *exchange, size_t size,
			  const struct coop_http_behaviour *behaviour)
{
	struct coop_files_work *work = coop_mem_zalloc(size);

	if (!work) {
		coop_http_refuse(exchange, 503, "sandbox_overloaded", "out of memory");
		return NULL;
	}
	work->exchange = exchange;
	coop_http_expect(exchange, behaviour, work);
	return work;
}

void coop_files_work_begin(struct coop_files_work *work, json_t *request,
			   void (*answer)(void *context, const struct coop_files_answer *answer),
			   void (*failed)(void *context, const struct coop_error *error))
{
	const struct coop_files_handler handler = {answer, failed, work};
	int r = coop_files_open(work->exchange->user, request, &handler, &work->talk);

	if (r < 0)
		coop_http_refuse(work->exchange, 503, "sandbox_overloaded",
				 r == -EBUSY ? "too many requests for files at a time"
					     : "out of memory");
}

void coop_files_work_failed(void *context, const struct coop_error *error)
{
	const struct coop_files_work *work = context;

	coop_files_refuse(work->exchange, error);
}

static void on_over(struct coop_http_exchange *exchange)
{
	struct coop_files_work *work = exchange->context;

	coop_files_close(work->talk);
	free(work);
}

/* A request with one answer, which is the client's. */
static void on_answer(void *context, const struct coop_files_answer *answer)
{
	const struct coop_files_work *work = context;

	coop_http_answer_json(work->exchange, 200, answer->text, answer->text_size);
}

/* Takes the request over. */
static void ask_for(struct coop_http_exchange *exchange, json_t *request)
{
	static const struct coop_http_behaviour behaviour = {.over = on_over};
	struct coop_files_work *work = coop_files_work_new(exchange, sizeof *work, &behaviour);

	if (work)
		coop_files_work_begin(work, request, on_answer, coop_files_work_failed);
	else
		json_decref(request);
}

static void ask_about_path(struct coop_http_exchange *exchange, const char *op)
{
	COOP_AUTO_FREE char *path = coop_files_path(exchange);

	if (path)
		ask_for(exchange, json_pack("{s:s,s:s}", "op", op, "path", path));
}

static void handle_stat(struct coop_http_exchange *exchange)
{
	ask_about_path(exchange, "stat");
}

static void handle_remove(struct coop_http_exchange *exchange)
{
	ask_about_path(exchange, "remove");
}

static void handle_mkdir(struct coop_http_exchange *exchange)
{
	ask_about_path(exchange, "mkdir");
}

static void handle_move(struct coop_http_exchange *exchange)
{
	const char *from = json_string_value(json_object_get(exchange->json, "from_path"));
	const char *to = json_string_value(json_object_get(exchange->json, "to_path"));

	if (!from || !*from || !to || !*to)
		coop_http_refuse(exchange, 400, "invalid_argument", "%s must be a path",
				 from && *from ? "to_path" : "from_path");
	else
		ask_for(exchange, json_pack("{s:s,s:s,s:s}", "op", "move", "from", from, "to", to));
}

const struct coop_http_route coop_routes_files[] = {
	{"GET", "/runtime/v1/files", 0, COOP_BODY_NONE, 0, coop_files_download},
	{"PUT", "/runtime/v1/files", 0, COOP_BODY_STREAM, 0, coop_files_upload},
	{"DELETE", "/runtime/v1/files", 0, COOP_BODY_NONE, 0, handle_remove},
	{"GET", "/runtime/v1/files/stat", 0, COOP_BODY_NONE, 0, handle_stat},
	{"POST", "/runtime/v1/files/move", 0, COOP_BODY_JSON, 0, handle_move},
	{"POST", "/runtime/v1/files/write_files", 0, COOP_BODY_JSON, COOP_FILES_BATCH_MAX,
	 coop_files_batch},
	{"POST", "/runtime/v1/files/apply_diff", 0, COOP_BODY_NONE, 0, coop_refuse_route},
	{"GET", "/runtime/v1/files/watch", COOP_ROUTE_UPGRADE, COOP_BODY_NONE, 0, coop_files_watch},
	{"GET", "/runtime/v1/directories", 0, COOP_BODY_NONE, 0, coop_files_list},
	{"POST", "/runtime/v1/directories", 0, COOP_BODY_NONE, 0, handle_mkdir},
	{0},
};
