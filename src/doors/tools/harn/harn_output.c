#include "doors/tools/harn/harn_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/utf8.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/table.h"
#include "doors/tools/harn/harn_result.h"
#include "interface/schema.h"

#define LENGTH 65536
#define LENGTH_MAX (1 << 20)
#define CHARACTER_MAX 4u

const char *const coop_harn_sources[] = {"combined", "stdout", "stderr", "pty", NULL};

void coop_harn_piece_clear(struct coop_harn_piece *piece)
{
	coop_text_clear(&piece->text);
}

static uint64_t number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* One answer of the keeper, behind what there is already. 1: there may be more; 0: there is none
 * now. */
static int read_more(struct coop_tool_call *call, json_t *args, struct coop_buf *buf,
		     struct coop_harn_piece *piece)
{
	struct coop_tool_answer answer;
	const struct coop_buf *data = NULL;
	int r = coop_tool_ask(call, "read", args, &answer);

	if (r < 0)
		return r;
	uint64_t cursor = number(answer.json, "cursor");
	if (!coop_buf_size(buf)) {
		piece->dropped = number(answer.json, "bytes_dropped");
		piece->offset = piece->next = cursor;
	}
	for (int i = COOP_STDOUT; i <= COOP_PTY; i++)
		if (coop_buf_size(&answer.data[i]))
			data = &answer.data[i];
	/* Behind a hole there is more, for the next call. */
	if (cursor == piece->next) {
		piece->total = number(answer.json, "total");
		piece->eof = json_is_true(json_object_get(answer.json, "drained_eof"));
	} else {
		data = NULL;
	}
	if (data) {
		r = coop_buf_append(buf, coop_buf_front(data), coop_buf_size(data));
		piece->next += coop_buf_size(data);
	}
	r = r < 0 ? coop_tool_no_memory(call) : data != NULL;
	coop_tool_answer_clear(&answer);
	return r;
}

/* What of the bytes is shown: no more than was asked for, but a whole character at least. */
static int show(const struct coop_buf *buf, size_t length, struct coop_harn_piece *piece)
{
	const uint8_t *bytes = coop_buf_front(buf);
	size_t have = coop_buf_size(buf), size = have < length ? have : length;
	bool last = size == have && piece->eof;
	int r = coop_text_view(bytes, size, !last, &piece->text);

	if (r == 0 && !piece->text.consumed && have > size) {
		size_t whole = coop_utf8_char(bytes, have);
		coop_text_clear(&piece->text);
		r = coop_text_view(bytes, whole ? whole : 1, false, &piece->text);
	}
	if (r < 0)
		return r;
	piece->next = piece->offset + piece->text.consumed;
	piece->eof = piece->eof && piece->text.consumed == have;
	return 0;
}

int coop_harn_read(struct coop_tool_call *call, const char *id, const char *source, uint64_t offset,
		   size_t length, struct coop_harn_piece *ret)
{
	const char *stream = strcmp(source, "combined") == 0 ? "output" : source;
	size_t wanted = length < CHARACTER_MAX ? CHARACTER_MAX : length;
	struct coop_harn_piece piece = {.next = offset};
	struct coop_buf buf = {0};
	int r = 1;

	/* The keeper gives what lies on disk in parts. */
	while (r > 0 && coop_buf_size(&buf) < wanted)
		r = read_more(call,
			      json_pack("{s:s, s:s, s:I, s:I}", "id", id, "stream", stream,
					"cursor", (json_int_t)piece.next, "max",
					(json_int_t)(wanted - coop_buf_size(&buf))),
			      &buf, &piece);
	if (r >= 0 && show(&buf, length, &piece) < 0)
		r = coop_tool_no_memory(call);
	coop_buf_clear(&buf);
	if (r < 0)
		return r;
	*ret = piece;
	return 0;
}

/* Which artifact of a record a path names. */
static const char *source_of(const json_t *record, const char *path)
{
	static const char *const members[][2] = {
		{"output_path", "combined"}, {"stdout_path", "stdout"}, {"stderr_path", "stderr"}};

	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
		const char *own = json_string_value(json_object_get(record, members[i][0]));
		if (own && strcmp(own, path) == 0)
			return members[i][1];
	}
	return NULL;
}

/* Looks through the records that the caller may see, page after page, for the one whose artifact
 * the path is. 1 found, 0 there may be more after *after. */
static int search_page(struct coop_tool_call *call, const char *path, char **after, char **ret_id,
		       const char **ret_source)
{
	json_t *args =
		json_pack("{s:b, s:i, s:s*}", "include_finished", 1, "limit", 200, "after", *after);
	struct coop_tool_answer answer;
	const json_t *record;
	size_t index;
	int r = coop_tool_ask(call, "list", args, &answer);

	if (r < 0)
		return r;
	const json_t *list = json_object_get(answer.json, "processes");
	const char *last = NULL;
	bool more = json_is_true(json_object_get(answer.json, "more"));
	free(*after);
	*after = NULL;
	json_array_foreach(list, index, record)
	{
		last = json_string_value(json_object_get(record, "id"));
		*ret_source = source_of(record, path);
		if (*ret_source)
			break;
	}
	if (*ret_source)
		*ret_id = coop_mem_strdup(last);
	else if (more && last)
		*after = coop_mem_strdup(last);
	if ((*ret_source && !*ret_id) || (more && last && !*ret_source && !*after))
		r = coop_tool_no_memory(call);
	coop_tool_answer_clear(&answer);
	return r < 0 ? r : *ret_source ? 1 : 0;
}

static int find_path(struct coop_tool_call *call, const char *path, char **ret_id,
		     const char **ret_source)
{
	char *after = NULL;
	int r;

	do
		r = search_page(call, path, &after, ret_id, ret_source);
	while (r == 0 && after);
	free(after);
	if (r != 0)
		return r < 0 ? r : 0;
	/* The same words for all of them: whether such a file is there is nobody's business. */
	return coop_tool_fail(
		call, "boundary_escape", "path",
		"path must be an output_path, stdout_path or stderr_path of a process "
		"that you may read; or give its handle_id");
}

/* The process, what of it, and the path that the result names. */
static int find_target(struct coop_tool_call *call, char **ret_id, const char **ret_source,
		       json_t **ret_path)
{
	const char *path = coop_arg_string(call->args, "path", NULL);
	const char *handle = coop_arg_string(call->args, "handle_id", NULL);
	const char *command = coop_arg_string(call->args, "command_id", NULL);
	const char *source = coop_arg_string(call->args, "source", NULL);
	json_t *record;

	if ((path != NULL) + (handle != NULL) + (command != NULL) != 1)
		return coop_tool_fail(call, "invalid_input", "handle_id",
				      "give exactly one of handle_id, command_id and path");
	if (path && source)
		return coop_tool_fail(
			call, "invalid_input", "source",
			"source goes with handle_id or command_id; a path says it itself");
	if (path) {
		*ret_path = json_string(path);
		return find_path(call, path, ret_id, ret_source);
	}
	int r = coop_tool_record(call, handle ? handle : command, &record);
	if (r < 0)
		return r;
	*ret_source = source ? source : "combined";
	const char *member = strcmp(*ret_source, "stderr") == 0   ? "stderr_path"
			     : strcmp(*ret_source, "stdout") == 0 ? "stdout_path"
								  : "output_path";
	*ret_path = json_incref(json_object_get(record, member));
	*ret_id = coop_mem_strdup(json_string_value(json_object_get(record, "id")));
	json_decref(record);
	return *ret_id ? 0 : coop_tool_no_memory(call);
}

static void set_piece(struct coop_tool_call *call, const char *id,
		      const struct coop_harn_piece *piece)
{
	coop_tool_set(call, "handle_id", json_string(id));
	coop_tool_set(call, "offset", json_integer((json_int_t)piece->offset));
	coop_tool_set(call, "bytes_read", json_integer((json_int_t)piece->text.consumed));
	coop_tool_set(call, "next_offset", json_integer((json_int_t)piece->next));
	coop_tool_set(call, "total_bytes", json_integer((json_int_t)piece->total));
	coop_tool_set(call, "bytes_dropped", json_integer((json_int_t)piece->dropped));
	coop_tool_set(call, "eof", json_boolean(piece->eof));
	coop_tool_set(call, "utf8_valid", json_boolean(piece->text.utf8_valid));
	coop_tool_set(call, "content", json_stringn_nocheck(piece->text.text, piece->text.size));
}

static int read_output(struct coop_tool_call *call)
{
	struct coop_harn_piece piece;
	const char *source = NULL;
	json_t *path = NULL;
	char *id = NULL;
	int r = find_target(call, &id, &source, &path);

	if (r == 0)
		r = coop_harn_read(call, id, source,
				   (uint64_t)coop_arg_int(call->args, "offset", 0),
				   (size_t)coop_arg_int(call->args, "length", LENGTH), &piece);
	if (r == 0) {
		coop_tool_set(call, "path", path);
		path = NULL;
		set_piece(call, id, &piece);
		coop_harn_piece_clear(&piece);
	}
	json_decref(path);
	free(id);
	return r;
}

static const struct coop_field input[] = {
	IN_STRING("handle_id", 512, NULL),
	IN_STRING("command_id", 512, "the same as handle_id"),
	IN_STRING("path", 8192, "an output_path, stdout_path or stderr_path of a result"),
	IN_ENUM("source", coop_harn_sources, "combined (default): all in order of arrival"),
	IN_INT("offset", 0, COOP_JSON_INT_MAX, "where to begin (0), in bytes"),
	IN_INT("length", 1, LENGTH_MAX, "bytes at most (65536)"),
	FIELDS_END,
};

static const struct coop_field output[] = {
	OUT_STRING_NULL("path"),
	OUT_STRING("handle_id"),
	OUT_INT("offset"),
	OUT_INT("bytes_read"),
	OUT_INT("next_offset"),
	OUT_INT("total_bytes"),
	OUT_INT("bytes_dropped"),
	OUT_BOOL("eof"),
	OUT_BOOL("utf8_valid"),
	OUT_STRING("content"),
	FIELDS_END,
};

const struct coop_tool coop_tool_read_command_output = {
	.name = "read_command_output",
	.title = "Read a command's output",
	.description = "Reads output of a command by position, while it runs and afterwards. Go on "
		       "with offset = "
		       "next_offset until eof.",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_HARN,
	.input = input,
	.output = output,
	.run = read_output,
};
