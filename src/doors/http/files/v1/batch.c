/* Several files in one request, written one after the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "doors/http/files/link.h"
#include "doors/http/files/v1/refusal.h"
#include "doors/http/files/v1/work.h"
#include "doors/http/net/exchange.h"

struct batch {
	struct coop_files_work work; /* first */
	const json_t *files;         /* the exchange's */
	size_t index;
	bool opened;
	uint8_t *data; /* of the file in turn */
	size_t size, sent;
	struct coop_buf text; /* of the answer */
	bool busy, over;      /* a function works with it; the exchange has ended meanwhile */
};

static void on_over(struct coop_http_exchange *exchange)
{
	struct batch *batch = exchange->context;

	coop_files_close(batch->work.talk);
	batch->work.talk = NULL;
	free(batch->data);
	coop_buf_clear(&batch->text);
	batch->over = true;
	if (!batch->busy)
		free(batch);
}

static void no_memory(struct batch *batch)
{
	coop_http_refuse(batch->work.exchange, 503, "sandbox_overloaded", "out of memory");
}

static int decode(struct batch *batch, const json_t *file)
{
	const json_t *text = json_object_get(file, "data_base64");
	const size_t length = json_string_length(text);

	free(batch->data);
	batch->data = coop_mem_alloc(coop_base64_room(length) + 1);
	batch->sent = 0;
	if (!batch->data)
		return -1;
	return coop_base64_decode(json_string_value(text), length, batch->data, &batch->size);
}

static void on_answer(void *context, const struct coop_files_answer *answer);

/* The message names the file. */
static void on_failed(void *context, const struct coop_error *error)
{
	const struct batch *batch = context;
	struct coop_error told = *error;

	(void)snprintf(told.message, sizeof told.message, "files[%zu]: %.480s", batch->index,
		       error->message);
	coop_files_refuse(batch->work.exchange, &told);
}

/* Begins with the next file, or answers. */
static void next(struct batch *batch)
{
	const json_t *file = json_array_get(batch->files, batch->index);

	coop_files_close(batch->work.talk);
	batch->work.talk = NULL;
	batch->opened = false;
	if (!file) {
		if (coop_buf_append(&batch->text, "]}", 2) < 0)
			no_memory(batch);
		else
			coop_http_answer_json(batch->work.exchange, 200,
					      (const char *)coop_buf_front(&batch->text),
					      coop_buf_size(&batch->text));
		return;
	}
	if (decode(batch, file) < 0) {
		no_memory(batch); /* what it holds has been looked at before */
		return;
	}
	coop_files_work_begin(&batch->work,
			      json_pack("{s:s,s:O,s:b,s:I}", "op", "open_write", "path",
					json_object_get(file, "path"), "gzip",
					json_is_true(json_object_get(file, "gzip")), "limit",
					(json_int_t)COOP_FILES_UPLOAD_MAX),
			      on_answer, on_failed);
}

/* One piece at a time; an empty file is committed at once. */
static void go_on(struct batch *batch)
{
	const size_t left = batch->size - batch->sent;
	const size_t piece = left < COOP_FILES_SLICE ? left : COOP_FILES_SLICE;
	json_t *request = json_pack("{s:s}", "op", left ? "write" : "commit");
	const uint8_t *data = batch->data + batch->sent;

	batch->sent += piece;
	if (coop_files_send(batch->work.talk, request, data, piece) < 0)
		no_memory(batch);
}

static int add_entry(struct batch *batch, const json_t *entry)
{
	COOP_AUTO_FREE char *text = entry ? json_dumps(entry, JSON_COMPACT) : NULL;

	if (!text || (batch->index && coop_buf_append(&batch->text, ",", 1) < 0))
		return -1;
	return coop_buf_append(&batch->text, text, strlen(text));
}

static void on_answer(void *context, const struct coop_files_answer *answer)
{
	struct batch *batch = context;
	const json_t *entry = json_object_get(answer->json, "file");

	batch->busy = true;
	if (!entry) {
		go_on(batch);
	} else if (add_entry(batch, entry) < 0) {
		no_memory(batch);
	} else {
		batch->index++;
		next(batch);
	}
	batch->busy = false;
	if (batch->over)
		free(batch);
}

static bool is_base64(const json_t *text)
{
	const size_t length = json_string_length(text);
	COOP_AUTO_FREE void *place = coop_mem_alloc(coop_base64_room(length) + 1);
	size_t size;

	return place && coop_base64_decode(json_string_value(text), length, place, &size) == 0;
}

/* All is looked at before anything is written. False: the exchange has been refused. */
static bool check(struct coop_http_exchange *exchange, const json_t *files)
{
	size_t i;
	const json_t *file;

	if (!json_is_array(files)) {
		coop_http_refuse(exchange, 400, "invalid_argument", "files must be a list");
		return false;
	}
	json_array_foreach(files, i, file)
	{
		const json_t *path = json_object_get(file, "path");
		const json_t *data = json_object_get(file, "data_base64");
		const json_t *gzip = json_object_get(file, "gzip");
		const char *wrong = NULL;
		if (!json_string_length(path))
			wrong = "path must be a path";
		else if (!json_is_string(data) || !is_base64(data))
			wrong = "data_base64 must be base64, with padding";
		else if (gzip && !json_is_boolean(gzip) && !json_is_null(gzip))
			wrong = "gzip must be true or false";
		if (wrong) {
			coop_http_refuse(exchange, 400, "invalid_argument", "files[%zu]: %s", i,
					 wrong);
			return false;
		}
	}
	return true;
}

void coop_files_batch(struct coop_http_exchange *exchange)
{
	static const struct coop_http_behaviour behaviour = {.over = on_over};
	const json_t *files = json_object_get(exchange->json, "files");

	if (!check(exchange, files))
		return;
	struct batch *batch = coop_files_work_new(exchange, sizeof *batch, &behaviour);
	if (!batch)
		return;
	batch->files = files;
	if (coop_buf_append(&batch->text, "{\"files\":[", 10) < 0)
		no_memory(batch);
	else
		next(batch);
}
