/* The typed calls on a process that exists. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json/jsonw.h"
#include "client/arguments.h"
#include "client/client.h"
#include "coop.h"

#define READ_MAX (4u << 20)

static int begin(struct coop_arguments *arguments, const char *id, struct coop_error *error)
{
	coop_arguments_begin(arguments);
	if (!id)
		return coop_client_refuse(error, -EINVAL, "invalid_input", "id", "missing");
	return coop_arguments_string(arguments, "id", "id", id, error);
}

static void copy(char *to, size_t size, const json_t *text)
{
	const char *value = json_string_value(text);

	(void)snprintf(to, size, "%s", value ? value : "");
}

static void read_end(const json_t *process, struct coop_end *ret)
{
	const json_t *end = json_object_get(process, "exit");
	const json_t *code = json_object_get(end, "code");

	*ret = (struct coop_end){
		.exit_code = json_is_integer(code) ? (int)json_integer_value(code) : -1,
		.signal = (int)json_integer_value(json_object_get(end, "signal")),
	};
	copy(ret->state, sizeof ret->state, json_object_get(process, "state"));
	copy(ret->cause, sizeof ret->cause, json_object_get(process, "end_cause"));
}

COOP_PUBLIC int coop_wait(struct coop *coop, const char *id, int64_t timeout_ms,
			  struct coop_end *ret, struct coop_error *error)
{
	COOP_AUTO_ARGUMENTS struct coop_arguments arguments = {0};
	COOP_AUTO_JSON json_t *result = NULL;
	int r = begin(&arguments, id, error);

	if (r < 0)
		return r;
	if (timeout_ms >= 0)
		coop_jsonw_int(&arguments.w, "timeout_ms", timeout_ms);
	r = coop_arguments_call(&arguments, coop, "wait", NULL, 0, &result, NULL, error);
	if (r < 0)
		return r;
	if (ret)
		read_end(json_object_get(result, "process"), ret);
	return json_is_true(json_object_get(result, "running")) ? 0 : 1;
}

static uint64_t number(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 ? (uint64_t)value : 0;
}

COOP_PUBLIC int coop_read(struct coop *coop, const char *id, enum coop_stream stream,
			  uint64_t cursor, void *buffer, size_t size, struct coop_position *ret,
			  struct coop_error *error)
{
	static const char *const names[] = {
		[COOP_STDOUT] = "stdout", [COOP_STDERR] = "stderr", [COOP_PTY] = "pty"};
	COOP_AUTO_ARGUMENTS struct coop_arguments arguments = {0};
	COOP_AUTO_JSON json_t *result = NULL;
	struct coop_reply *reply;
	size_t got;
	int r = begin(&arguments, id, error);

	if (r < 0)
		return r;
	if ((unsigned)stream > COOP_PTY || !names[stream])
		return coop_client_refuse(error, -EINVAL, "invalid_input", "stream",
					  "no such output");
	size = size < READ_MAX ? size : READ_MAX;
	coop_jsonw_string(&arguments.w, "stream", names[stream]);
	coop_jsonw_uint(&arguments.w, "cursor", cursor);
	coop_jsonw_uint(&arguments.w, "max", size);
	r = coop_arguments_call(&arguments, coop, "read", NULL, 0, &result, &reply, error);
	if (r < 0)
		return r;
	const void *bytes = coop_reply_data(reply, stream, &got);
	if (got > size)
		r = coop_client_fail(error, -EPROTO, "protocol", "more bytes than asked for");
	else if (got)
		memcpy(buffer, bytes, got);
	coop_reply_free(reply);
	if (r < 0)
		return r;
	if (ret)
		*ret = (struct coop_position){
			.cursor = number(result, "cursor"),
			.next = number(result, "next"),
			.bytes_dropped = number(result, "bytes_dropped"),
			.eof = json_is_true(json_object_get(result, "drained_eof")),
		};
	return (int)got;
}

/* One piece of at most 1 MiB; *written counts on, also when the call fails. */
static int write_piece(struct coop *coop, const char *id, const void *data, size_t size,
		       int64_t timeout_ms, size_t *written, struct coop_error *error)
{
	COOP_AUTO_ARGUMENTS struct coop_arguments arguments = {0};
	COOP_AUTO_JSON json_t *result = NULL;
	int r = begin(&arguments, id, error);

	if (r < 0)
		return r;
	coop_jsonw_int(&arguments.w, "timeout_ms", timeout_ms < 0 ? -1 : timeout_ms);
	r = coop_arguments_call(&arguments, coop, "write_stdin", data, size, &result, NULL, error);
	if (r < 0)
		return r;
	*written += (size_t)number(result, "bytes_written");
	if (json_is_true(json_object_get(result, "success")))
		return 0;
	return coop_client_fail(error, -ETIMEDOUT, "timed_out",
				"the process did not take all of its input in time");
}

COOP_PUBLIC int coop_write_stdin(struct coop *coop, const char *id, const void *data, size_t size,
				 int64_t timeout_ms, size_t *ret_written, struct coop_error *error)
{
	const char *bytes = data;
	size_t written = 0;
	int r = 0;

	for (size_t at = 0; r == 0 && at < size;) {
		size_t piece = size - at < COOP_WRITE_STDIN_MAX ? size - at : COOP_WRITE_STDIN_MAX;
		r = write_piece(coop, id, bytes + at, piece, timeout_ms, &written, error);
		at += piece;
	}
	if (ret_written)
		*ret_written = written;
	return r;
}

COOP_PUBLIC int coop_close_stdin(struct coop *coop, const char *id, struct coop_error *error)
{
	COOP_AUTO_ARGUMENTS struct coop_arguments arguments = {0};
	COOP_AUTO_JSON json_t *result = NULL;
	int r = begin(&arguments, id, error);

	if (r == 0)
		r = coop_arguments_call(&arguments, coop, "close_stdin", NULL, 0, &result, NULL,
					error);
	return r;
}

COOP_PUBLIC int coop_signal(struct coop *coop, const char *id, const char *signal,
			    struct coop_error *error)
{
	COOP_AUTO_ARGUMENTS struct coop_arguments arguments = {0};
	COOP_AUTO_JSON json_t *result = NULL;
	int r = begin(&arguments, id, error);

	if (r == 0 && !signal)
		r = coop_client_refuse(error, -EINVAL, "invalid_input", "signal", "missing");
	if (r == 0)
		r = coop_arguments_string(&arguments, "signal", "signal", signal, error);
	if (r == 0)
		r = coop_arguments_call(&arguments, coop, "signal", NULL, 0, &result, NULL, error);
	if (r < 0)
		return r;
	return json_is_true(json_object_get(result, "sent")) ? 1 : 0;
}

static int end_process(struct coop *coop, struct coop_arguments *arguments, const char *op,
		       struct coop_receipt *ret, struct coop_error *error)
{
	COOP_AUTO_JSON json_t *result = NULL;
	int r = coop_arguments_call(arguments, coop, op, NULL, 0, &result, NULL, error);

	if (r == 0 && ret)
		*ret = (struct coop_receipt){
			.success = json_is_true(json_object_get(result, "success")),
			.signalled = json_array_size(json_object_get(result, "signalled")),
			.killed = json_array_size(json_object_get(result, "killed")),
			.survivors = (size_t)number(result, "survivors"),
		};
	return r;
}

COOP_PUBLIC int coop_kill(struct coop *coop, const char *id, struct coop_receipt *ret,
			  struct coop_error *error)
{
	COOP_AUTO_ARGUMENTS struct coop_arguments arguments = {0};
	int r = begin(&arguments, id, error);

	return r < 0 ? r : end_process(coop, &arguments, "kill", ret, error);
}

COOP_PUBLIC int coop_stop(struct coop *coop, const char *id, int grace_ms, struct coop_receipt *ret,
			  struct coop_error *error)
{
	COOP_AUTO_ARGUMENTS struct coop_arguments arguments = {0};
	int r = begin(&arguments, id, error);

	if (r < 0)
		return r;
	coop_jsonw_int(&arguments.w, "grace_ms", grace_ms);
	return end_process(coop, &arguments, "stop", ret, error);
}

COOP_PUBLIC int coop_release(struct coop *coop, const char *id, struct coop_error *error)
{
	COOP_AUTO_ARGUMENTS struct coop_arguments arguments = {0};
	COOP_AUTO_JSON json_t *result = NULL;
	int r = begin(&arguments, id, error);

	if (r == 0)
		r = coop_arguments_call(&arguments, coop, "release", NULL, 0, &result, NULL, error);
	return r;
}
