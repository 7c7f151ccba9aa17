#include "doors/cli/record.h"

#include <stdio.h>
#include <string.h>

#include "doors/cli/cli.h"

const char *cli_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

int64_t cli_number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

const json_t *cli_member(const json_t *object, const char *outer, const char *inner)
{
	return json_object_get(json_object_get(object, outer), inner);
}

bool cli_record_finished(const json_t *record)
{
	const char *state = cli_text(record, "state");
	return strcmp(state, "exited") == 0 || strcmp(state, "signaled") == 0;
}

bool cli_record_lost(const json_t *record)
{
	return strcmp(cli_text(record, "end_cause"), "lost") == 0;
}

bool cli_record_wants_reader(const json_t *record)
{
	const char *name;
	json_t *stream;
	if (strcmp(cli_text(record, "lease"), "ephemeral") == 0 ||
	    strcmp(cli_text(record, "agent"), "self") != 0)
		return false;
	json_object_foreach(json_object_get(record, "streams"), name, stream)
	{
		if (strcmp(cli_text(stream, "overflow"), "backpressure") == 0)
			return true;
	}
	return false;
}

bool cli_stream_full(const json_t *stream)
{
	return cli_number(stream, "end") - cli_number(stream, "start") >=
	       cli_number(stream, "ring_bytes");
}

int cli_record_exit_code(const json_t *record)
{
	const json_t *code = cli_member(record, "exit", "code"),
		     *signal = cli_member(record, "exit", "signal");
	if (strcmp(cli_text(record, "end_cause"), "timed_out") == 0)
		return CLI_TIMED_OUT;
	if (json_is_integer(code))
		return (int)json_integer_value(code);
	if (json_is_integer(signal))
		return CLI_SIGNAL_BASE + (int)json_integer_value(signal);
	return CLI_OWN_FAILURE;
}

void cli_record_state(const json_t *record, char ret_text[CLI_TEXT_MAX])
{
	const char *cause = cli_text(record, "end_cause");
	char end[48];
	if (!cli_record_finished(record)) {
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%s%s", cli_text(record, "state"),
			       json_is_true(json_object_get(record, "frozen")) ? " (frozen)" : "");
		return;
	}
	if (cli_record_lost(record)) {
		(void)snprintf(ret_text, CLI_TEXT_MAX, "lost");
		return;
	}
	const json_t *code = cli_member(record, "exit", "code");
	if (json_is_integer(code))
		(void)snprintf(end, sizeof(end), "exited %d", (int)json_integer_value(code));
	else
		(void)snprintf(end, sizeof(end), "%s",
			       cli_text(json_object_get(record, "exit"), "signal_name"));
	/* What ended by itself or by the signal that is named needs no further reason. */
	if (!*cause || strcmp(cause, "self_exit") == 0 || strcmp(cause, "signal") == 0)
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%s", end);
	else
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%s (%.40s)", end, cause);
}

void cli_format_duration(int64_t ms, char ret_text[CLI_TEXT_MAX])
{
	const long long s = ms / 1000;
	if (ms < 1000)
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%lldms", (long long)ms);
	else if (s < 60)
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%llds", s);
	else if (s < 3600)
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%lldm%02llds", s / 60, s % 60);
	else if (s < 86400)
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%lldh%02lldm", s / 3600, s / 60 % 60);
	else
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%lldd%02lldh", s / 86400, s / 3600 % 24);
}

void cli_format_exact_duration(int64_t ms, char ret_text[CLI_TEXT_MAX])
{
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
	size_t unit = 0;
	while (units[unit].ms > 1 && (ms == 0 || ms % units[unit].ms))
		unit++;
	(void)snprintf(ret_text, CLI_TEXT_MAX, "%lld%s", (long long)(ms / units[unit].ms),
		       units[unit].name);
}

void cli_format_exact_bytes(int64_t bytes, char ret_text[CLI_TEXT_MAX])
{
	static const char units[] = "KMGT";
	size_t unit = 0;
	while (units[unit] && bytes != 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	(void)snprintf(ret_text, CLI_TEXT_MAX, unit ? "%lld%c" : "%lld", (long long)bytes,
		       unit ? units[unit - 1] : 0);
}

void cli_format_bytes(int64_t bytes, char ret_text[CLI_TEXT_MAX])
{
	static const char units[] = " KMGTPE";
	double value = (double)bytes;
	size_t unit = 0;
	for (; value >= 1023.5 && unit + 2 < sizeof(units); unit++)
		value /= 1024;
	if (unit == 0)
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%lld", (long long)bytes);
	else
		(void)snprintf(ret_text, CLI_TEXT_MAX, value < 9.95 ? "%.1f%c" : "%.0f%c", value,
			       units[unit]);
}

void cli_format_bytes_or_dash(const json_t *value, char ret_text[CLI_TEXT_MAX])
{
	if (json_is_integer(value))
		cli_format_bytes(json_integer_value(value), ret_text);
	else
		(void)snprintf(ret_text, CLI_TEXT_MAX, "-");
}

void cli_format_cpu(const json_t *record, char ret_text[CLI_TEXT_MAX])
{
	const json_t *cpu = cli_member(record, "stats", "cpu_pct");
	if (json_is_number(cpu))
		(void)snprintf(ret_text, CLI_TEXT_MAX, "%.1f", json_number_value(cpu));
	else
		(void)snprintf(ret_text, CLI_TEXT_MAX, "-");
}

void cli_record_say_left_behind(const json_t *record)
{
	const long long count = (long long)cli_number(record, "descendants");
	const char *id = cli_text(record, "id");
	if (count <= 0 || !cli_record_finished(record))
		return;
	const char *noun = count == 1 ? "process" : "processes";
	if (strcmp(cli_text(record, "lease"), "ephemeral") == 0)
		cli_say("%s left %lld %s running; %s now, with this coop run (--lease awaited "
			"keeps %s until: coop kill %s)",
			id, count, noun, count == 1 ? "it ends" : "they end",
			count == 1 ? "it" : "them", id);
	else
		cli_say("%s left %lld %s running (coop kill %s ends %s)", id, count, noun, id,
			count == 1 ? "it" : "them");
}

void cli_record_say_facts(const json_t *record)
{
	size_t i;
	json_t *fact;
	json_array_foreach(json_object_get(record, "facts"), i, fact)
		cli_say("%s", json_string_value(fact) ? json_string_value(fact) : "?");
}
