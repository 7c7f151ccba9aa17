#include "doors/tools/core/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "client/text.h"
#include "client/views/budget.h"
#include "client/views/plain.h"
#include "doors/tools/core/read.h"
#include "doors/tools/core/record.h"

static int render_raw(const void *bytes, size_t size, uint64_t offset, bool last,
		      struct coop_rendered *ret)
{
	struct coop_text text;
	int r = coop_text_view(bytes, size, !last, &text);

	if (r == 0)
		*ret = (struct coop_rendered){text.text, text.size, offset + text.consumed,
					      text.utf8_valid};
	return r;
}

int coop_tool_render(const void *bytes, size_t size, uint64_t offset, bool raw, bool last,
		     struct coop_rendered *ret)
{
	if (raw)
		return render_raw(bytes, size, offset, last, ret);
	struct coop_plain *plain = coop_plain_new(COOP_PLAIN_COLLAPSE, offset);
	int r = plain ? coop_plain_feed(plain, bytes, size) : -ENOMEM;
	if (r == 0 && last)
		r = coop_plain_finish(plain);
	if (r == 0) {
		const char *text = coop_plain_text(plain, &ret->size);
		ret->text = coop_mem_alloc(ret->size + 1);
		ret->next = coop_plain_offset(plain, ret->size);
		ret->utf8_valid = coop_plain_valid(plain);
		if (ret->text) {
			memcpy(ret->text, text, ret->size);
			ret->text[ret->size] = '\0';
		}
		r = ret->text ? 0 : -ENOMEM;
	}
	coop_plain_free(plain);
	return r;
}

json_t *coop_tool_last_line(const char *bytes, size_t bytes_size, size_t max)
{
	struct coop_rendered rendered = {0};

	if (coop_tool_render(bytes, bytes_size, 0, false, true, &rendered) < 0)
		return NULL;
	size_t end = rendered.size;
	while (end && (rendered.text[end - 1] == '\n' || rendered.text[end - 1] == ' '))
		end--;
	size_t start = end;
	while (start && rendered.text[start - 1] != '\n')
		start--;
	size_t size = coop_budget_head(rendered.text + start, end - start, max);
	json_t *line = json_stringn_nocheck(rendered.text + start, size);
	free(rendered.text);
	return line;
}

static void set_named(struct coop_tool_call *call, const char *stream, const char *suffix,
		      json_t *value)
{
	char name[32];

	(void)snprintf(name, sizeof name, "%s%s", stream, suffix);
	coop_tool_set(call, name, value);
}

struct excerpt {
	const char *stream;
	uint64_t from, to; /* what is left out */
	uint64_t lost;     /* so many bytes of its beginning are not kept any more */
	bool mangled;      /* some bytes are no text */
};

/* The two parts with a word between them on what is missing. */
static int set_text(struct coop_tool_call *call, const struct excerpt *cut, const char *head,
		    size_t head_size, const char *tail, size_t tail_size)
{
	char note[160] = "", lost[64] = "";

	if (cut->lost)
		(void)snprintf(lost, sizeof lost, ", of which %llu are lost",
			       (unsigned long long)cut->lost);
	if (cut->to > cut->from)
		(void)snprintf(note, sizeof note,
			       "%s[… %llu bytes left out: offset %llu to %llu%s …]\n",
			       head_size && head[head_size - 1] != '\n' ? "\n" : "",
			       (unsigned long long)(cut->to - cut->from),
			       (unsigned long long)cut->from, (unsigned long long)cut->to, lost);
	struct coop_buf text = {0};
	int r = coop_buf_append(&text, head, head_size);
	if (r == 0)
		r = coop_buf_append(&text, note, strlen(note));
	if (r == 0)
		r = coop_buf_append(&text, tail, tail_size);
	if (r == 0) {
		size_t size = coop_buf_size(&text);
		set_named(call, cut->stream, "",
			  json_stringn_nocheck(size ? (char *)coop_buf_front(&text) : "", size));
		set_named(call, cut->stream, "_truncated", json_boolean(cut->to > cut->from));
		if (cut->mangled)
			set_named(call, cut->stream, "_utf8_valid", json_false());
	}
	coop_buf_clear(&text);
	if (r == 0 && cut->to > cut->from)
		set_named(call, cut->stream, "_omitted",
			  json_pack("{s:I, s:I}", "from", (json_int_t)cut->from, "to",
				    (json_int_t)cut->to));
	return r < 0 ? coop_tool_no_memory(call) : 0;
}

/* All bytes are at hand: the text is cut. */
static int cut_whole(struct coop_tool_call *call, const char *stream, const void *bytes,
		     size_t size, uint64_t at, size_t budget)
{
	struct coop_plain *plain = coop_plain_new(COOP_PLAIN_COLLAPSE, at);
	int r = plain ? coop_plain_feed(plain, bytes, size) : -ENOMEM;

	if (r == 0)
		r = coop_plain_finish(plain);
	if (r < 0) {
		coop_plain_free(plain);
		return coop_tool_no_memory(call);
	}
	size_t text_size;
	const char *text = coop_plain_text(plain, &text_size);
	struct coop_budget_cut cut = coop_budget_cut(text, text_size, budget);
	struct excerpt excerpt = {.stream = stream, .mangled = !coop_plain_valid(plain)};
	/* A head that begins behind lost bytes is no head: these are left out as well. */
	if (at) {
		excerpt.to = excerpt.lost = at;
		if (cut.tail)
			excerpt.to = coop_plain_offset(plain, text_size - cut.tail);
		else
			cut.tail = text_size;
		cut.head = 0;
	} else if (cut.head + cut.tail < text_size) {
		excerpt.from = coop_plain_offset(plain, cut.head);
		excerpt.to = coop_plain_offset(plain, text_size - cut.tail);
	}
	r = set_text(call, &excerpt, text, cut.head, text + text_size - cut.tail, cut.tail);
	coop_plain_free(plain);
	return r;
}

/* Where a head may end: behind a line's end that is near. */
static size_t head_end(const char *bytes, size_t size)
{
	const char *line = memrchr(bytes + size - size / 8, '\n', size / 8);

	return line ? (size_t)(line - bytes) + 1 : size;
}

/* Where a tail that begins anywhere may be shown from: behind a line's end that is near, else at a
 * character. */
static size_t tail_start(const char *bytes, size_t size)
{
	const char *line = memchr(bytes, '\n', size / 8);
	size_t start = line ? (size_t)(line - bytes) + 1 : 0;

	while (start < size && start < 4 && ((unsigned char)bytes[start] & 0xc0) == 0x80)
		start++;
	return start;
}

static int cut_far(struct coop_tool_call *call, const json_t *record, const char *stream,
		   const struct coop_buf *head, uint64_t at, size_t budget)
{
	struct coop_rendered front = {0}, back = {0};
	struct coop_tool_piece tail;
	json_int_t want = (json_int_t)(budget - budget / 3);
	int r = coop_tool_read(call, coop_tool_record_id(record), stream,
			       json_pack("{s:I, s:I}", "tail", want, "max", want), &tail);

	if (r < 0)
		return r;
	size_t skip = tail_start(tail.bytes, tail.size);
	size_t front_size = coop_buf_size(head) < budget / 3 ? coop_buf_size(head) : budget / 3;
	/* A head that begins behind lost bytes is no head. */
	front_size = at > 0 ? 0 : head_end((const char *)coop_buf_front(head), front_size);
	r = coop_tool_render(coop_buf_front(head), front_size, at, false, false, &front);
	if (r == 0)
		r = coop_tool_render(tail.bytes + skip, tail.size - skip, tail.at + skip, false,
				     true, &back);
	struct excerpt cut = {.stream = stream,
			      .from = front_size ? front.next : 0,
			      .to = tail.at + skip,
			      .lost = at,
			      .mangled = (front_size && !front.utf8_valid) || !back.utf8_valid};
	if (r < 0)
		(void)coop_tool_no_memory(call);
	else
		r = set_text(call, &cut, front.text, front.size, back.text, back.size);
	free(front.text);
	free(back.text);
	coop_tool_piece_clear(&tail);
	return r;
}

int coop_tool_add_excerpt(struct coop_tool_call *call, const json_t *record,
			  enum coop_stream stream, const struct coop_buf *head, uint64_t at,
			  size_t budget)
{
	const char *name = coop_tool_streams[stream];
	const json_t *state = coop_tool_stream(record, name);

	if (!state)
		return 0;
	uint64_t end = coop_tool_number(state, "end");
	size_t size = coop_buf_size(head);
	if (!size)
		at = coop_tool_number(state, "start");
	int r = at + size >= end ? cut_whole(call, name, coop_buf_front(head), size, at, budget)
				 : cut_far(call, record, name, head, at, budget);
	if (r == 0)
		set_named(call, name, "_bytes", json_integer((json_int_t)end));
	return r;
}

int coop_tool_add_output(struct coop_tool_call *call, const json_t *record,
			 const struct coop_tool_answer *answer, size_t budget)
{
	int r = 0;

	for (int stream = COOP_STDOUT; r == 0 && stream <= COOP_PTY; stream++)
		r = coop_tool_add_excerpt(call, record, (enum coop_stream)stream,
					  &answer->data[stream], answer->at[stream], budget);
	return r;
}
