/* A body that becomes a file. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "doors/http/files/link.h"
#include "doors/http/files/v1/work.h"
#include "doors/http/net/exchange.h"

/* Chunks of the body are put together to pieces of at least this size. */
#define PIECE (64u << 10)
/* A client is held up while this many are on their way to the helper, and goes on below the
 * second. */
#define AHEAD_HIGH 16u
#define AHEAD_LOW 8u

struct upload {
	struct coop_files_work work; /* first */
	bool opened, paused;
	struct coop_buf held; /* less than a piece */
	unsigned ahead;       /* pieces that have not been answered */
};

static void on_over(struct coop_http_exchange *exchange)
{
	struct upload *upload = exchange->context;

	coop_files_close(upload->work.talk);
	coop_buf_clear(&upload->held);
	free(upload);
}

static void no_memory(struct coop_http_exchange *exchange)
{
	coop_http_refuse(exchange, 503, "sandbox_overloaded", "out of memory");
}

static int send_held(struct upload *upload)
{
	const size_t size = coop_buf_size(&upload->held);

	if (!size)
		return 0;
	int r = coop_files_send(upload->work.talk, json_pack("{s:s}", "op", "write"),
				coop_buf_front(&upload->held), size);
	coop_buf_consume(&upload->held, size);
	upload->ahead++;
	return r;
}

static void on_body(struct coop_http_exchange *exchange, const void *data, size_t size)
{
	struct upload *upload = exchange->context;
	const char *bytes = data;

	while (size) {
		const size_t part = size < PIECE ? size : PIECE;
		if (coop_buf_append(&upload->held, bytes, part) < 0 ||
		    (coop_buf_size(&upload->held) >= PIECE && send_held(upload) < 0)) {
			no_memory(exchange);
			return;
		}
		bytes += part;
		size -= part;
	}
	if (!upload->paused && (upload->ahead >= AHEAD_HIGH ||
				(upload->ahead && coop_files_full(upload->work.talk)))) {
		upload->paused = true;
		coop_http_pause(exchange);
	}
}

static void on_body_end(struct coop_http_exchange *exchange)
{
	struct upload *upload = exchange->context;

	if (send_held(upload) < 0 ||
	    coop_files_send(upload->work.talk, json_pack("{s:s}", "op", "commit"), NULL, 0) < 0)
		no_memory(exchange);
}

static void on_answer(void *context, const struct coop_files_answer *answer)
{
	struct upload *upload = context;

	if (!upload->opened) {
		upload->opened = true;
	} else if (!upload->ahead) {
		coop_http_answer_json(upload->work.exchange, 200, answer->text, answer->text_size);
	} else if (--upload->ahead <= AHEAD_LOW && upload->paused) {
		upload->paused = false;
		coop_http_resume(upload->work.exchange); /* may end it all */
	}
}

static void start(struct coop_http_exchange *exchange, const char *path, bool gzip)
{
	static const struct coop_http_behaviour behaviour = {
		.body = on_body, .body_end = on_body_end, .over = on_over};
	struct upload *upload = coop_files_work_new(exchange, sizeof *upload, &behaviour);

	if (upload)
		coop_files_work_begin(&upload->work,
				      json_pack("{s:s,s:s,s:b,s:I}", "op", "open_write", "path",
						path, "gzip", gzip, "limit",
						(json_int_t)COOP_FILES_UPLOAD_MAX),
				      on_answer, coop_files_work_failed);
}

void coop_files_upload(struct coop_http_exchange *exchange)
{
	const char *encoding = coop_http_header(exchange, "content-encoding");
	const bool packed = encoding && strcasecmp(encoding, "gzip") == 0;
	bool gzip = false;

	if (!coop_files_flag(exchange, "gzip", &gzip))
		return;
	if (encoding && *encoding && !packed && strcasecmp(encoding, "identity") != 0) {
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "the only encoding that is understood is gzip");
		return;
	}
	if (exchange->body_length > (int64_t)COOP_FILES_UPLOAD_MAX) {
		coop_http_refuse(exchange, 413, "too_large", "a file may have at most %llu bytes",
				 COOP_FILES_UPLOAD_MAX);
		return;
	}
	COOP_AUTO_FREE char *path = coop_files_path(exchange);
	if (path)
		start(exchange, path, gzip || packed);
}
