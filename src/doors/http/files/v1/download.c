/* Files and listings, given to the client as it takes them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "doors/http/files/link.h"
#include "doors/http/files/v1/work.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/target.h"

/* Asked of the helper ahead of the client, and waiting for the client. */
#define AHEAD (4u * COOP_FILES_SLICE)
#define PENDING_HIGH (1u << 20)

struct download {
	struct coop_files_work work; /* first */
	const char *type;
	bool begun;
	bool busy, over; /* a function works with it; the exchange has ended meanwhile */
	uint64_t size, asked, sent;
};

static void on_over(struct coop_http_exchange *exchange)
{
	struct download *download = exchange->context;

	coop_files_close(download->work.talk);
	download->work.talk = NULL;
	download->over = true;
	if (!download->busy)
		free(download);
}

static int ask_for_more(struct download *download)
{
	while (download->asked < download->size && download->asked - download->sent < AHEAD &&
	       coop_http_pending(download->work.exchange) < PENDING_HIGH) {
		json_t *request =
			json_pack("{s:s,s:I,s:I}", "op", "read", "offset",
				  (json_int_t)download->asked, "max", (json_int_t)COOP_FILES_SLICE);
		int r = coop_files_send(download->work.talk, request, NULL, 0);
		if (r < 0)
			return r;
		download->asked += COOP_FILES_SLICE;
	}
	return 0;
}

/* What the helper must bring next. */
static size_t expected(const struct download *download)
{
	const uint64_t left = download->size - download->sent;

	return left < COOP_FILES_SLICE ? (size_t)left : COOP_FILES_SLICE;
}

static void begin(struct download *download, const struct coop_files_answer *answer)
{
	const json_t *size = json_object_get(answer->json, "size");

	if (!json_is_integer(size) || json_integer_value(size) < 0) {
		coop_http_refuse(download->work.exchange, 500, "internal", "the file has no size");
		return;
	}
	download->size = (uint64_t)json_integer_value(size);
	download->asked = COOP_FILES_SLICE;
	download->begun = true;
	coop_http_begin(download->work.exchange, 200, download->type, json_integer_value(size));
	if (!download->over && strcmp(download->work.exchange->method, "HEAD") == 0)
		coop_http_end(download->work.exchange);
}

static void on_answer(void *context, const struct coop_files_answer *answer)
{
	struct download *download = context;

	download->busy = true;
	if (!download->begun)
		begin(download, answer);
	/* Fewer bytes than promised: it has become shorter, and the client has to notice. */
	if (!download->over && answer->size != expected(download))
		coop_http_abort(download->work.exchange);
	if (!download->over) {
		download->sent += answer->size;
		coop_http_write(download->work.exchange, answer->data, answer->size);
	}
	if (!download->over && download->sent == download->size)
		coop_http_end(download->work.exchange);
	if (!download->over && ask_for_more(download) < 0)
		coop_http_abort(download->work.exchange);
	download->busy = false;
	if (download->over)
		free(download);
}

static void on_writable(struct coop_http_exchange *exchange)
{
	struct download *download = exchange->context;

	if (download->begun && !download->busy && ask_for_more(download) < 0)
		coop_http_abort(exchange);
}

/* Takes the request over. */
static void start(struct coop_http_exchange *exchange, json_t *request, const char *type)
{
	static const struct coop_http_behaviour behaviour = {.writable = on_writable,
							     .over = on_over};
	struct download *download = coop_files_work_new(exchange, sizeof *download, &behaviour);

	if (!download) {
		json_decref(request);
		return;
	}
	download->type = type;
	coop_files_work_begin(&download->work, request, on_answer, coop_files_work_failed);
}

void coop_files_download(struct coop_http_exchange *exchange)
{
	COOP_AUTO_FREE char *path = coop_files_path(exchange);

	if (path)
		start(exchange, json_pack("{s:s,s:s}", "op", "open_read", "path", path),
		      "application/octet-stream");
}

void coop_files_list(struct coop_http_exchange *exchange)
{
	uint64_t depth = 1;

	if (coop_query_uint(exchange->query, "depth", UINT32_MAX, &depth) < 0 || depth < 1) {
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "depth must be a whole number, at least 1");
		return;
	}
	if (depth > COOP_FILES_DEPTH_MAX)
		depth = COOP_FILES_DEPTH_MAX;
	COOP_AUTO_FREE char *path = coop_files_path(exchange);
	if (path)
		start(exchange,
		      json_pack("{s:s,s:s,s:I}", "op", "list", "path", path, "depth",
				(json_int_t)depth),
		      "application/json");
}
