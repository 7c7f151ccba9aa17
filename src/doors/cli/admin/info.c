#include <stdio.h>
#include <stdlib.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

static void show_memory(const json_t *result)
{
	const json_t *memory = json_object_get(result, "memory"),
		     *fds = json_object_get(result, "fds");
	char rss[CLI_TEXT_MAX], buffers[CLI_TEXT_MAX], spool[CLI_TEXT_MAX];
	cli_format_bytes_or_dash(json_object_get(memory, "rss_bytes"), rss);
	cli_format_bytes_or_dash(json_object_get(memory, "buffer_bytes"), buffers);
	cli_format_bytes_or_dash(json_object_get(memory, "spool_bytes"), spool);
	(void)printf("memory      %s, buffers %s, spool files %s\n", rss, buffers, spool);
	(void)printf("files       %lld open of %lld\n", (long long)cli_number(fds, "open"),
		     (long long)cli_number(fds, "limit"));
}

static void show_settings(json_t *settings)
{
	const char *name;
	json_t *value;
	(void)printf("settings\n");
	json_object_foreach(settings, name, value)
	{
		char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		(void)printf("  %-22s %s\n", name, text ? text : "?");
		free(text);
	}
}

static void show_processes(const json_t *processes)
{
	(void)printf("processes   %lld live, %lld finished, %lld receipts\n",
		     (long long)cli_number(processes, "live"),
		     (long long)cli_number(processes, "finished"),
		     (long long)cli_number(processes, "receipts"));
	const long long strays = (long long)cli_number(processes, "strays");
	if (strays > 0)
		(void)printf("strays      %lld %s to no record; %s with the keeper (coop "
			     "shutdown)\n",
			     strays, strays == 1 ? "process that belongs" : "processes that belong",
			     strays == 1 ? "it ends" : "they end");
}

/* Records or audit: whether it can be written, and what is missing in it. */
static void show_log(const char *name, const json_t *log)
{
	const char *why = cli_text(log, "error"), *fault = cli_text(log, "fault");
	if (!json_is_object(log))
		return;
	(void)printf("%-11s %s", name, cli_text(log, "state"));
	if (cli_number(log, "pending") > 0)
		(void)printf(", %lld to be written", (long long)cli_number(log, "pending"));
	if (cli_number(log, "last") > 0)
		(void)printf(", %lld lines", (long long)cli_number(log, "last"));
	if (cli_number(log, "lost") > 0)
		(void)printf(", %lld lost", (long long)cli_number(log, "lost"));
	(void)printf("%s%s\n", *why ? ": " : "", why);
	if (*fault)
		(void)printf("            not whole: %s (coop audit verify --acknowledge forgets "
			     "that)\n",
			     fault);
}

static void show_configuration(const json_t *configuration)
{
	const char *path = cli_text(configuration, "path"), *why = cli_text(configuration, "error"),
		   *at = cli_text(configuration, "loaded_at");
	if (!json_is_object(configuration))
		return;
	(void)printf("conf        %s%s%s\n", *path ? path : "none", *path && *at ? ", read " : "",
		     *path ? at : "");
	if (*why)
		(void)printf("            not in force: %s\n", why);
}

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	const json_t *you = json_object_get(result, "you");
	const bool chief = json_is_true(json_object_get(you, "operator"));
	if (cli->json)
		return true;
	(void)printf("keeper      coop %s, pid %lld, since %s\n", cli_text(result, "version"),
		     (long long)cli_number(result, "pid"), cli_text(result, "started_at"));
	(void)printf("you         %s of %s%s\n", cli_text(you, "agent"), cli_text(you, "principal"),
		     chief ? ", the operator" : "");
	show_processes(json_object_get(result, "processes"));
	/* The rest of the keeper's affairs are the operator's alone. */
	if (chief) {
		if (*cli_text(result, "socket"))
			(void)printf("socket      %s\nstate       %s\n", cli_text(result, "socket"),
				     cli_text(result, "state_dir"));
		(void)printf("connections %lld\n", (long long)cli_number(result, "connections"));
		show_memory(result);
		show_log("records", json_object_get(result, "records"));
		show_log("audit", json_object_get(result, "audit"));
		show_configuration(json_object_get(result, "configuration"));
	}
	if (json_object_size(json_object_get(result, "settings")))
		show_settings(json_object_get(result, "settings"));
	return true;
}

const struct cli_verb cli_verb_info = {
	.name = "info",
	.synopsis = "",
	.summary = "Show the keeper: where it is, what it holds, its settings",
	.operation = &coop_operation_info,
	.start = CLI_ONLY_RUNNING,
	.show = show,
};
