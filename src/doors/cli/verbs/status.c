#include <stdio.h>
#include <string.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/sandbox_text.h"
#include "doors/cli/verbs.h"

static void line(const char *name, const char *text)
{
	if (*text)
		(void)printf("  %-10s %s\n", name, text);
}

static void show_times(const json_t *record)
{
	char duration[CLI_TEXT_MAX];
	cli_format_duration(cli_number(record, "duration_ms"), duration);
	(void)printf("  %-10s %s", "started", cli_text(record, "started_at"));
	if (cli_record_lost(record))
		(void)printf(", found lost %s\n", cli_text(record, "ended_at"));
	else if (cli_record_finished(record))
		(void)printf(", ended %s, after %s\n", cli_text(record, "ended_at"), duration);
	else
		(void)printf(", %s ago\n", duration);
}

static void show_use(const json_t *record)
{
	const json_t *stats = json_object_get(record, "stats");
	char cpu[CLI_TEXT_MAX], memory[CLI_TEXT_MAX], peak[CLI_TEXT_MAX], time[CLI_TEXT_MAX];
	cli_format_cpu(record, cpu);
	cli_format_bytes_or_dash(json_object_get(stats, "memory_bytes"), memory);
	cli_format_bytes_or_dash(json_object_get(stats, "memory_peak_bytes"), peak);
	cli_format_duration(cli_number(stats, "cpu_usage_ns") / 1000000, time);
	(void)printf("  %-10s cpu time %s, memory at most %s", "use", time, peak);
	/* The momentary values end with the process. */
	if (!cli_record_finished(record))
		(void)printf("; now cpu %s %%, memory %s, processes %lld", cpu, memory,
			     (long long)cli_number(stats, "pids"));
	(void)putchar('\n');
}

static void show_streams(const json_t *record)
{
	const char *name;
	json_t *stream;
	json_object_foreach(json_object_get(record, "streams"), name, stream)
	{
		const int64_t end = cli_number(stream, "end"), start = cli_number(stream, "start");
		(void)printf("  %-10s %lld bytes", name, (long long)end);
		if (start > 0)
			(void)printf(", kept from %lld on", (long long)start);
		if (cli_number(stream, "bytes_dropped") > 0)
			(void)printf(", %lld lost", (long long)cli_number(stream, "bytes_dropped"));
		(void)printf("%s\n",
			     json_is_true(json_object_get(stream, "eof")) ? ", at its end" : "");
	}
}

static void show_input(const json_t *record)
{
	if (cli_record_finished(record))
		return;
	const bool open = json_is_true(json_object_get(record, "stdin_open"));
	const bool blocked = json_is_true(json_object_get(record, "blocked_on_stdin"));
	const bool hidden = json_is_true(json_object_get(record, "echo_off"));
	if (open || blocked)
		(void)printf("  %-10s %s%s%s\n", "stdin", open ? "open" : "closed",
			     blocked ? ", the command waits for input (coop stdin or coop attach)"
				     : "",
			     hidden ? ", echo is off (a password?)" : "");
}

static void show_sandbox(const json_t *record)
{
	char text[2048];
	cli_sandbox_line(json_object_get(record, "sandbox"), text, sizeof(text));
	line("sandbox", text);
	cli_limits_line(json_object_get(record, "limits"), text, sizeof(text));
	line("limits", text);
}

/* What the kernel says about an end that was none of the good ones. */
static void show_facts(const json_t *record)
{
	size_t i;
	json_t *fact;
	json_array_foreach(json_object_get(record, "facts"), i, fact)
		line(i ? "" : "facts", json_string_value(fact) ? json_string_value(fact) : "?");
}

static void show_descendants(const json_t *record)
{
	const long long count = (long long)cli_number(record, "descendants");
	if (count <= 0)
		return;
	(void)printf("  %-10s %lld %s", "tree", count, count == 1 ? "descendant" : "descendants");
	if (cli_record_finished(record))
		(void)printf(" left running (coop kill ends %s)", count == 1 ? "it" : "them");
	(void)putchar('\n');
}

static void show(const json_t *record)
{
	char state[CLI_TEXT_MAX];
	cli_record_state(record, state);
	(void)printf("%s: %s\n", cli_text(record, "id"), state);
	line("tag", cli_text(record, "tag"));
	line("why", cli_text(record, "why"));
	line("task", cli_text(record, "task"));
	line("call", cli_text(record, "call_id"));
	line("agent", cli_text(record, "agent_path"));
	line("session", cli_text(record, "session"));
	line("audit", cli_text(record, "audit_id"));
	line("command", cli_text(record, "command"));
	line("folder", cli_text(record, "cwd"));
	const char *start = cli_text(record, "start");
	(void)printf("  %-10s %lld, %s, %s lease%s%s\n", "pid",
		     (long long)cli_number(record, "pid"), cli_text(record, "kind"),
		     cli_text(record, "lease"), *start ? ", " : "", start);
	show_times(record);
	show_descendants(record);
	show_facts(record);
	show_sandbox(record);
	if (json_is_true(json_object_get(record, "receipt"))) {
		line("output", "no longer kept");
		return;
	}
	show_use(record);
	show_streams(record);
	show_input(record);
}

static bool show_result(const struct cli *cli, const char *id, const json_t *result)
{
	if (!cli->json)
		show(json_object_get(result, "process"));
	return true;
}

/* One id after the other, and not the operation's form for many: that one leaves unknown ids out
 * without a word. */
static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	struct coop_error error;
	if (cli_open(cli, CLI_START_IF_RECORDED, &error) < 0)
		return cli_fail(cli, count == 1 ? operands[0] : NULL, &error);
	return cli_each(cli, "status", json_object(), count, operands, show_result);
}

const struct cli_verb cli_verb_status = {
	.name = "status",
	.synopsis = "ID…",
	.summary = "Show all about processes: state, times, sandbox, use, output, limits",
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.run = run,
};
