/* What runs, how much it uses, and single signals. */
#include <errno.h>
#include <string.h>

#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/output.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/read.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "interface/schema.h"

static const struct coop_field list_input[] = {
	IN_BOOL("include_finished", "also ended ones"),
	IN_BOOL("last_line", "with the last line of output"),
	FIELDS_END,
};
static const struct coop_field list_item[] = {
	OUT_INT_NULL("pid"), OUT_STRING("id"),           OUT_STRING("command"),
	OUT_STRING("agent"), OUT_NUMBER_NULL("cpu_pct"), OUT_INT_NULL("mem_bytes"),
	OUT_STRING("state"), OUT_STRING("label"),        OUT_STRING_NULL("started_at"),
	FIELDS_END,
};
static const struct coop_field list_output[] = {
	{.name = "processes", .type = COOP_FIELD_OBJECTS, .fields = list_item},
	FIELDS_END,
};

/* What is only worth its bytes where it is there. */
static void add_if_told(json_t *row, const json_t *record, const char *member, const char *name)
{
	json_t *value = json_object_get(record, member);

	if (value && !json_is_null(value))
		(void)json_object_set(row, name, value);
}

static json_t *row_of(const json_t *record)
{
	const json_t *stats = json_object_get(record, "stats");
	json_t *row = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "pid",
		coop_tool_member(record, "pid"), "id", coop_tool_member(record, "id"), "command",
		coop_tool_member(record, "command"), "agent", coop_tool_member(record, "agent"),
		"cpu_pct", coop_tool_member(stats, "cpu_pct"), "mem_bytes",
		coop_tool_member(stats, "memory_bytes"), "state", coop_tool_member(record, "state"),
		"label", coop_tool_member(record, "label"), "started_at",
		coop_tool_member(record, "started_at"));

	if (!row)
		return NULL;
	add_if_told(row, record, "why", "why");
	add_if_told(row, record, "task", "task");
	add_if_told(row, record, "end_cause", "end_cause");
	if (coop_tool_is_over(record)) {
		const json_t *end = json_object_get(record, "exit");
		add_if_told(row, record, "ended_at", "ended_at");
		add_if_told(row, end, "code", "exit_code");
		add_if_told(row, end, "signal_name", "signal");
	}
	if (json_integer_value(json_object_get(record, "descendants")) && coop_tool_is_over(record))
		add_if_told(row, record, "descendants", "descendants");
	return row;
}

static int add_line_of(struct coop_tool_call *call, const json_t *record, enum coop_stream stream,
		       json_t *row)
{
	struct coop_tool_piece piece;
	int r = coop_tool_read(call, coop_tool_record_id(record), coop_tool_streams[stream],
			       json_pack("{s:i, s:i}", "tail", 1000, "max", 1000), &piece);
	/* It may have been released meanwhile: it is listed as it was. */
	if (r < 0)
		return r == -EREMOTEIO ? 0 : r;
	json_t *line = coop_tool_last_line(piece.bytes, piece.size, 200);
	coop_tool_piece_clear(&piece);
	return json_object_set_new(row, "last_line", line) < 0 ? coop_tool_no_memory(call) : 0;
}

static int add_last_line(struct coop_tool_call *call, const json_t *record, json_t *row)
{
	enum coop_stream stream = coop_tool_main_stream(record);

	if (json_is_true(json_object_get(record, "receipt")))
		return 0;
	int r = add_line_of(call, record, stream, row);
	/* Many a server talks on stderr alone. */
	if (r == 0 && stream == COOP_STDOUT &&
	    json_string_length(json_object_get(row, "last_line")) == 0)
		r = add_line_of(call, record, COOP_STDERR, row);
	return r;
}

static int run_list(struct coop_tool_call *call)
{
	bool lines = coop_arg_bool(call->args, "last_line", false);
	struct coop_tool_answer answer;
	json_t *rows = json_array(), *record;
	size_t index;
	int r = coop_tool_ask(call, "list",
			      json_pack("{s:b, s:b, s:i}", "include_finished",
					coop_arg_bool(call->args, "include_finished", false),
					"brief", 1, "limit", COOP_TOOL_ROWS),
			      &answer);

	if (r < 0) {
		json_decref(rows);
		return r;
	}
	json_array_foreach(json_object_get(answer.json, "processes"), index, record)
	{
		/* One that is just being started has no pid, and so not yet the id that it will
		 * have. */
		if (json_is_null(json_object_get(record, "pid")) && !coop_tool_is_over(record))
			continue;
		json_t *row = row_of(record);
		r = row && lines ? add_last_line(call, record, row) : r;
		if (json_array_append_new(rows, row) < 0)
			r = coop_tool_no_memory(call);
		if (r < 0)
			break;
	}
	coop_tool_set(call, "processes", rows);
	if (json_is_true(json_object_get(answer.json, "more")))
		coop_tool_set(
			call, "hint",
			json_string(
				"There are more. End what is not needed with release_process."));
	coop_tool_answer_clear(&answer);
	return r;
}

const struct coop_tool coop_tool_list_processes = {
	.name = "list_processes",
	.title = "List processes",
	.description = "Your processes and shells (and those of agents below you), running ones by "
		       "default. Call it first if you lost an id.",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_ALL,
	.input = list_input,
	.output = list_output,
	.run = run_list,
};

static const struct coop_field stats_input[] = {IN_PID, FIELDS_END};
static const struct coop_field stats_output[] = {
	OUT_INT_NULL("pid"),
	OUT_STRING("id"),
	OUT_STRING("command"),
	OUT_STRINGS("args"),
	OUT_STRING("agent"),
	OUT_STRING_NULL("started_at"),
	OUT_STRING("status"),
	OUT_INT_NULL("cpu_usage_ns"),
	OUT_NUMBER_NULL("cpu_pct"),
	OUT_INT_NULL("memory_bytes"),
	OUT_STRING_NULL("cgroup_path"),
	OUT_BOOL("has_captured_output"),
	FIELDS_END,
};

static bool has_output(const json_t *record)
{
	json_t *streams = json_object_get(record, "streams"), *stream;
	const char *name;

	json_object_foreach(streams, name, stream)
	{
		if (json_integer_value(json_object_get(stream, "end")) >
		    json_integer_value(json_object_get(stream, "start")))
			return true;
	}
	return false;
}

/* The program, and its other arguments. */
static void set_command(struct coop_tool_call *call, const json_t *record)
{
	json_t *argv = json_object_get(record, "argv"), *args = json_array();

	for (size_t i = 1; i < json_array_size(argv); i++)
		(void)json_array_append(args, json_array_get(argv, i));
	coop_tool_set(call, "command",
		      json_array_size(argv) ? json_incref(json_array_get(argv, 0))
					    : coop_tool_member(record, "command"));
	coop_tool_set(call, "args", args);
}

/* Whether it waits for somebody: the reason why nothing happens. */
static void set_waiting(struct coop_tool_call *call, const json_t *record)
{
	if (!coop_tool_is_over(record)) {
		coop_tool_set(call, "stdin_open", coop_tool_member(record, "stdin_open"));
		coop_tool_set(call, "blocked_on_stdin",
			      coop_tool_member(record, "blocked_on_stdin"));
		coop_tool_set(call, "echo_off", coop_tool_member(record, "echo_off"));
	}
	coop_tool_set(call, "descendants", coop_tool_member(record, "descendants"));
}

static int run_stats(struct coop_tool_call *call)
{
	json_t *record;
	int r = coop_tool_process(call, "pid", &record);

	if (r < 0)
		return r;
	const json_t *stats = json_object_get(record, "stats");
	coop_tool_set_process(call, record);
	set_command(call, record);
	coop_tool_set(call, "agent", coop_tool_member(record, "agent"));
	coop_tool_set(call, "started_at", coop_tool_member(record, "started_at"));
	coop_tool_set(call, "status", coop_tool_status(record));
	coop_tool_set(call, "cpu_usage_ns", coop_tool_member(stats, "cpu_usage_ns"));
	coop_tool_set(call, "cpu_pct", coop_tool_member(stats, "cpu_pct"));
	coop_tool_set(call, "memory_bytes", coop_tool_member(stats, "memory_bytes"));
	coop_tool_set(call, "memory_peak_bytes", coop_tool_member(stats, "memory_peak_bytes"));
	coop_tool_set(call, "cgroup_path", coop_tool_member(stats, "cgroup_path"));
	coop_tool_set(call, "has_captured_output", json_boolean(has_output(record)));
	coop_tool_set(call, "end_cause", coop_tool_member(record, "end_cause"));
	set_waiting(call, record);
	json_decref(record);
	return 0;
}

const struct coop_tool coop_tool_process_stats = {
	.name = "process_stats",
	.title = "Process details",
	.description = "CPU, memory, state of one process, and whether it waits for input "
		       "(blocked_on_stdin; echo_off: a password).",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_DEFAULT,
	.input = stats_input,
	.output = stats_output,
	.run = run_stats,
};
