#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coop.h"
#include "doors/cli/cli.h"
#include "doors/cli/serve/serve.h"

void cli_serve_url(const struct cli_serve *serve, const struct cli_serve_listener *listener,
		   char *ret_url, size_t size)
{
	const char *scheme = !listener->tcp             ? "unix:"
			     : serve->gateway.cert.data ? "https://"
							: "http://";
	const struct cli_list *names = serve->gateway.names;
	const char *port = listener->wildcard ? strrchr(listener->address, ':') : NULL;
	if (!port) {
		(void)snprintf(ret_url, size, "%s%s", scheme, listener->address);
		return;
	}
	/* Nobody is called 0.0.0.0, and requests to that would be refused. */
	const char *host = names && names->count         ? names->items[0]
			   : listener->address[0] == '[' ? "[::1]"
							 : "127.0.0.1";
	(void)snprintf(ret_url, size, "%s%.*s%s", scheme, CLI_SERVE_URL_MAX - 16, host, port);
}

/* URLs of TCP, and apart from them the path of the first Unix socket. */
static json_t *urls(const struct cli_serve *serve, const char **ret_unix)
{
	json_t *list = json_array();
	*ret_unix = NULL;
	for (size_t i = 0; i < serve->listeners.count; i++) {
		const struct cli_serve_listener *listener = &serve->listeners.list[i];
		char url[CLI_SERVE_URL_MAX + 16];
		cli_serve_url(serve, listener, url, sizeof(url));
		if (listener->tcp)
			(void)json_array_append_new(list, json_string(url));
		else if (!*ret_unix)
			*ret_unix = listener->address;
	}
	return list;
}

static void tell_json(const struct cli_serve *serve)
{
	const char *unix_path;
	json_t *list = urls(serve, &unix_path), *pids = json_array();
	for (size_t i = 0; i < serve->worker_count; i++)
		(void)json_array_append_new(pids, json_integer(serve->workers[i].child.pid));
	json_t *value =
		json_pack("{s:O?, s:o, s:s?, s:s, s:i, s:o, s:i, s:s}", "url",
			  json_array_get(list, 0), "urls", list, "unix", unix_path, "token_file",
			  serve->token_file, "pid", (int)getpid(), "gateway_pids", pids,
			  "keeper_pid", serve->cli->coop ? coop_keeper_pid(serve->cli->coop) : 0,
			  "confined", serve->workers[0].held);
	if (value)
		cli_print_json_line(value);
	json_decref(value);
}

void cli_serve_tell(const struct cli_serve *serve)
{
	if (serve->cli->json) {
		tell_json(serve);
	} else {
		for (size_t i = 0; i < serve->listeners.count; i++) {
			char url[CLI_SERVE_URL_MAX + 16];
			cli_serve_url(serve, &serve->listeners.list[i], url, sizeof(url));
			(void)printf("%s%s", i ? ", " : "coop serves ", url);
		}
		(void)printf(" (token in %s)\n", serve->token_file);
	}
	(void)fflush(stdout);
}
