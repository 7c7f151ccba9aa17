#include "doors/tools/core/read.h"

#include <string.h>

#include "base/buf.h"
#include "doors/tools/core/record.h"

void coop_tool_piece_clear(struct coop_tool_piece *piece)
{
	coop_tool_answer_clear(&piece->answer);
	memset(piece, 0, sizeof *piece);
}

int coop_tool_read(struct coop_tool_call *call, const char *id, const char *stream, json_t *args,
		   struct coop_tool_piece *ret)
{
	struct coop_tool_answer *answer = &ret->answer;

	memset(ret, 0, sizeof *ret);
	if (json_object_set_new(args, "id", json_string(id)) < 0 ||
	    json_object_set_new(args, "stream", json_string(stream)) < 0) {
		json_decref(args);
		args = NULL;
	}
	int r = coop_tool_ask(call, "read", args, answer);
	if (r < 0)
		return r;
	ret->bytes = "";
	for (size_t i = 0; i < sizeof answer->data / sizeof answer->data[0]; i++) {
		if (coop_buf_size(&answer->data[i])) {
			ret->bytes = (const char *)coop_buf_front(&answer->data[i]);
			ret->size = coop_buf_size(&answer->data[i]);
		}
	}
	ret->at = coop_tool_number(answer->json, "cursor");
	ret->next = coop_tool_number(answer->json, "next");
	ret->total = coop_tool_number(answer->json, "total");
	ret->dropped = coop_tool_number(answer->json, "bytes_dropped");
	ret->eof = json_is_true(json_object_get(answer->json, "eof"));
	ret->drained = json_is_true(json_object_get(answer->json, "drained_eof"));
	return 0;
}

int coop_tool_each_record(struct coop_tool_call *call, json_t *args,
			  int (*take)(void *user, const json_t *record), void *user)
{
	bool more = true;
	int r = args ? 0 : coop_tool_no_memory(call);

	while (r == 0 && more) {
		struct coop_tool_answer answer;
		const json_t *record, *last = NULL;
		size_t index;
		r = coop_tool_ask(call, "list", json_copy(args), &answer);
		json_array_foreach(json_object_get(answer.json, "processes"), index, record)
		{
			last = record;
			r = take(user, record);
			if (r != 0)
				break;
		}
		more = last && json_is_true(json_object_get(answer.json, "more"));
		if (r == 0 && more &&
		    json_object_set(args, "after", json_object_get(last, "id")) < 0)
			r = coop_tool_no_memory(call);
		coop_tool_answer_clear(&answer);
	}
	json_decref(args);
	return r;
}
