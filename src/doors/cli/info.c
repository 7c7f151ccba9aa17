#include <stdio.h>
#include <stdlib.h>

#include "record.h"
#include "verbs.h"

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
		(void)printf("  %-20s %s\n", name, text ? text : "?");
		free(text);
	}
}

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	const json_t *processes = json_object_get(result, "processes");
	if (cli->json)
		return true;
	(void)printf("keeper      coop %s, pid %lld, since %s\n", cli_text(result, "version"),
		     (long long)cli_number(result, "pid"), cli_text(result, "started_at"));
	(void)printf("socket      %s\n", cli_text(result, "socket"));
	(void)printf("state       %s\n", cli_text(result, "state_dir"));
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
	(void)printf("connections %lld\n", (long long)cli_number(result, "connections"));
	show_memory(result);
	show_settings(json_object_get(result, "settings"));
	return true;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	return cli_once(cli, CLI_ONLY_RUNNING, "info", json_object(), show);
}

const struct cli_verb cli_verb_info = {
	.name = "info",
	.synopsis = "",
	.summary = "Show the keeper: where it is, what it holds, its settings",
	.failure = CLI_FAILED,
	.usage = CLI_USAGE,
	.run = run,
};
