/* write_stdin and close_stdin. */
#include <string.h>

#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "interface/schema.h"

static const struct coop_field write_input[] = {
	IN_PID,
	IN_STRING_NEEDED("input", 1 << 20, "sent as it is; \\n is Enter"),
	IN_BOOL("secret", "a password: kept out of logs and records"),
	FIELDS_END,
};
static const struct coop_field write_output[] = {OUT_INT_NULL("pid"), OUT_STRING("id"),
						 OUT_INT("bytes"), FIELDS_END};

static int run_write(struct coop_tool_call *call)
{
	const json_t *input = coop_arg(call->args, "input");
	size_t size = json_string_length(input), written = 0;
	json_t *record;
	int r = coop_tool_process(call, "pid", &record);

	if (r == 0)
		r = coop_tool_write(call, coop_tool_record_id(record), json_string_value(input),
				    size, coop_arg_bool(call->args, "secret", false), &written);
	if (r == 0) {
		coop_tool_set_process(call, record);
		coop_tool_set(call, "bytes", json_integer((json_int_t)written));
		call->failed = written < size;
		if (call->failed)
			coop_tool_set(
				call, "hint",
				json_string("It does not read its input; only the first bytes "
					    "were taken. Look at process_stats."));
	}
	json_decref(record);
	return r;
}

const struct coop_tool coop_tool_write_stdin = {
	.name = "write_stdin",
	.title = "Write to stdin",
	.description =
		"Writes text to a terminal, or to the stdin of what run_command started with "
		"open_stdin.",
	.kind = COOP_TOOL_START,
	.sets = COOP_TOOLS_DEFAULT,
	.input = write_input,
	.output = write_output,
	.run = run_write,
};

static const struct coop_field close_input[] = {IN_PID, FIELDS_END};
static const struct coop_field close_output[] = {OUT_INT_NULL("pid"), OUT_STRING("id"),
						 OUT_BOOL("closed"), FIELDS_END};

static int run_close(struct coop_tool_call *call)
{
	json_t *record;
	int r = coop_tool_process(call, "pid", &record);

	if (r == 0)
		r = coop_tool_ask(call, "close_stdin",
				  json_pack("{s:s}", "id", coop_tool_record_id(record)), NULL);
	if (r == 0) {
		coop_tool_set_process(call, record);
		coop_tool_set(call, "closed", json_true());
	}
	json_decref(record);
	return r;
}

const struct coop_tool coop_tool_close_stdin = {
	.name = "close_stdin",
	.title = "Close stdin",
	.description = "Gives a process end of file on its stdin.",
	.kind = COOP_TOOL_END,
	.sets = COOP_TOOLS_DEFAULT,
	.input = close_input,
	.output = close_output,
	.run = run_close,
};
