#include "doors/tools/harn/harn_output.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/utf8.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/read.h"
#include "doors/tools/core/record.h"
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

/* One answer of the keeper, behind what there is already. 1: there may be more; 0: there is none
 * now. */
static int read_more(struct coop_tool_call *call, const char *id, const char *stream, size_t wanted,
		     struct coop_buf *buf, struct coop_harn_piece *ret)
{
	struct coop_tool_piece piece;
	int r = coop_tool_read(call, id, stream,
			       json_pack("{s:I, s:I}", "cursor", (json_int_t)ret->next, "max",
					 (json_int_t)(wanted - coop_buf_size(buf))),
			       &piece);

	if (r < 0)
		return r;
	if (!coop_buf_size(buf)) {
		ret->dropped = piece.dropped;
		ret->offset = ret->next = piece.at;
	}
	/* Behind a hole there is more, for the next call. */
	if (piece.at == ret->next) {
		ret->total = piece.total;
		ret->eof = piece.drained;
		ret->next += piece.size;
		r = piece.size > 0;
		if (coop_buf_append(buf, piece.bytes, piece.size) < 0)
			r = coop_tool_no_memory(call);
	}
	coop_tool_piece_clear(&piece);
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
		r = read_more(call, id, stream, wanted, &buf, &piece);
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

struct search {
	struct coop_tool_call *call;
	const char *path;
	char *id;
	const char *source;
};

/* Whether the path is an artifact of the record: 1, with its id. */
static int match(void *user, const json_t *record)
{
	struct search *search = user;

	search->source = source_of(record, search->path);
	if (!search->source)
		return 0;
	search->id = coop_mem_strdup(coop_tool_record_id(record));
	return search->id ? 1 : coop_tool_no_memory(search->call);
}

/* Looks through the records that the caller may see. */
static int find_path(struct coop_tool_call *call, const char *path, char **ret_id,
		     const char **ret_source)
{
	struct search search = {.call = call, .path = path};
	int r = coop_tool_each_record(
		call, json_pack("{s:b, s:i}", "include_finished", 1, "limit", 200), match, &search);

	*ret_id = search.id;
	*ret_source = search.source;
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
