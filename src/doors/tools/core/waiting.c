#include "doors/tools/core/waiting.h"

#include <stdio.h>

#include "doors/tools/core/record.h"

/* Who wants to know is told after a second, then less and less often. */
#define FIRST_WORD_MS 1000
#define LAST_WORD_MS 10000

int coop_tool_wait_once(struct coop_tool_call *call, const char *id, int64_t ms,
			size_t output_bytes, bool tidy, struct coop_tool_answer *ret)
{
	json_t *args = json_pack("{s:s, s:I, s:b}", "id", id, "output_bytes",
				 (json_int_t)output_bytes, "tidy", tidy);

	if (args && ms >= 0 && json_object_set_new(args, "timeout_ms", json_integer(ms)) < 0) {
		json_decref(args);
		args = NULL;
	}
	return coop_tool_ask(call, "wait", args, ret);
}

static void tell(struct coop_tool_call *call, const json_t *record)
{
	char text[160];

	(void)snprintf(text, sizeof text, "%s for %lld s, %llu bytes of output%s",
		       json_string_value(json_object_get(record, "state")),
		       (long long)json_integer_value(json_object_get(record, "duration_ms")) / 1000,
		       (unsigned long long)coop_tool_record_bytes(record),
		       json_is_true(json_object_get(record, "blocked_on_stdin"))
			       ? ", waits for input"
			       : "");
	coop_tool_progress(call, text);
}

int coop_tool_wait_end(struct coop_tool_call *call, const char *id, int64_t wanted_ms,
		       size_t output_bytes, struct coop_tool_answer *ret)
{
	int64_t until = coop_tool_until(call, wanted_ms), step = FIRST_WORD_MS;

	for (;;) {
		int64_t left = until < 0 ? -1 : until - coop_tool_now();
		bool last = !coop_tool_wants_progress(call) || (until >= 0 && left <= step);
		if (until >= 0 && left < 0)
			left = 0;
		int r = coop_tool_wait_once(call, id, last ? left : step, output_bytes, true, ret);
		if (r < 0 || last || !json_is_true(json_object_get(ret->json, "running")))
			return r;
		tell(call, json_object_get(ret->json, "process"));
		coop_tool_answer_clear(ret);
		step = step * 2 > LAST_WORD_MS ? LAST_WORD_MS : step * 2;
	}
}
