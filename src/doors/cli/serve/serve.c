#include "doors/cli/serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/log.h"
#include "base/io/paths.h"
#include "base/text/netname.h"
#include "client/locate.h"
#include "doors/cli/cli.h"
#include "doors/cli/options.h"
#include "doors/cli/place.h"
#include "doors/cli/record.h"
#include "doors/cli/sandbox_args.h"
#include "doors/cli/verbs.h"
#include "doors/cli/workspace.h"

#define DEFAULT_PING_MS 30000
#define PING_MAX_MS 3600000
#define DEFAULT_LISTEN "127.0.0.1:7717"

struct settings {
	struct cli_list listen, names, origins, proxies;
	const char *public_url;
	struct cli_number ping;
	const char *unix_path, *tls_cert, *tls_key;
	struct cli_sandbox sandbox; /* profile and workspace */
	struct cli_number workers;
	bool no_workspace, control_plane, insecure;
};

#define AT(MEMBER) offsetof(struct settings, MEMBER)

static const struct cli_option options[] = {
	{"listen", 0, CLI_LIST, AT(listen), NULL, "ADDRESS:PORT",
	 "where to listen (127.0.0.1:7717, unless --unix is given); port 0: any that is free; may "
	 "be repeated. Sockets of systemd (LISTEN_FDS) come instead"},
	{"unix", 0, CLI_TEXT, AT(unix_path), NULL, "PATH",
	 "listen on a Unix socket, for this user alone"},
	{"tls-cert", 0, CLI_TEXT, AT(tls_cert), NULL, "FILE",
	 "speak TLS with this certificate and what signed it (PEM)"},
	{"tls-key", 0, CLI_TEXT, AT(tls_key), NULL, "FILE", "its private key (PEM)"},
	{"insecure-listen", 0, CLI_FLAG, AT(insecure), NULL, NULL,
	 "listen also where other machines reach it without TLS"},
	{"name", 0, CLI_LIST, AT(names), NULL, "NAME",
	 "another name that clients call this host by; the first one stands in the URLs that "
	 "clients are given; may be repeated"},
	{"origin", 0, CLI_LIST, AT(origins), NULL, "ORIGIN",
	 "take requests that pages of this origin send, too, as in https://example.org; may be "
	 "repeated"},
	{"public-url", 0, CLI_TEXT, AT(public_url), NULL, "URL",
	 "what clients reach this by, as in https://coop.example.org: its name is one of this "
	 "host's, and sandboxes are given it"},
	{"trust-proxy", 0, CLI_LIST, AT(proxies), NULL, "ADDRESS",
	 "believe what this proxy says of its clients (Forwarded, X-Forwarded-For, -Proto, -Host): "
	 "an address, a network as in 10.0.0.0/8, or unix for --unix; may be repeated"},
	{"ping-interval", 0, CLI_DURATION, AT(ping), NULL, "DURATION",
	 "send a ping over silent WebSockets so often, which keeps them through proxies (30s); 0: "
	 "never"},
	CLI_ARG("sandbox.profile", AT(sandbox.profile),
		"of every process, and the most that a request can ask for: read-only, "
		"workspace-write (usual), full, or one of coop.conf"),
	CLI_ARG("sandbox.workspace", AT(sandbox.workspace),
		"the folder that processes of main may change (this one)"),
	{"no-workspace", 0, CLI_FLAG, AT(no_workspace), NULL, NULL, "they may change none"},
	{"control-plane", 0, CLI_FLAG, AT(control_plane), NULL, NULL,
	 "serve also /v1/sandboxes: who has the token may make and remove sandboxes"},
	{"workers", 0, CLI_COUNT, AT(workers), NULL, "N", "so many gateway processes (1)"},
	{0},
};

/* What is found out from the settings and must live as long as the loop. */
struct cli_serve_found {
	char gateway[COOP_PATHS_MAX], url[CLI_SERVE_URL_MAX + 16];
	json_t *args; /* of a command as coop run would start it: {"sandbox": …} */
	json_t *unix_path;
};

static int check_proxies(const struct cli *cli, const struct settings *s)
{
	char origin[COOP_ORIGIN_SIZE];
	struct coop_address_range network;
	if (s->public_url && coop_origin_parse(s->public_url, origin) < 0)
		return cli_misuse(
			cli,
			"--public-url %s: it is as in https://coop.example.org, without a path",
			s->public_url);
	if (s->proxies.count > CLI_SERVE_PROXIES_MAX)
		return cli_misuse(cli, "--trust-proxy: %d at most", CLI_SERVE_PROXIES_MAX);
	for (size_t i = 0; i < s->proxies.count; i++)
		if (strcmp(s->proxies.items[i], "unix") != 0 &&
		    coop_network_parse(s->proxies.items[i], &network) < 0)
			return cli_misuse(cli,
					  "--trust-proxy %s: it is an address, a network as in "
					  "10.0.0.0/8, or unix",
					  s->proxies.items[i]);
	if (s->ping.set && s->ping.value && (s->ping.value < 100 || s->ping.value > PING_MAX_MS))
		return cli_misuse(cli, "--ping-interval is 0, or from 100ms to 1h");
	return CLI_OK;
}

/* Everything that needs no look at the machine. */
static int check(const struct cli *cli, const struct settings *s)
{
	if (!s->tls_cert != !s->tls_key)
		return cli_misuse(cli, "--tls-cert and --tls-key go together");
	if (s->sandbox.workspace && s->no_workspace)
		return cli_misuse(cli, "--workspace does not go with --no-workspace");
	if (s->workers.set && (s->workers.value < 1 || s->workers.value > CLI_SERVE_WORKERS_MAX))
		return cli_misuse(cli, "--workers is from 1 to %d", CLI_SERVE_WORKERS_MAX);
	if (s->names.count > CLI_SERVE_NAMES_MAX)
		return cli_misuse(cli, "--name: %d at most", CLI_SERVE_NAMES_MAX);
	if (s->origins.count > CLI_SERVE_NAMES_MAX)
		return cli_misuse(cli, "--origin: %d at most", CLI_SERVE_NAMES_MAX);
	const int r = check_proxies(cli, s);
	if (r != CLI_OK)
		return r;
	for (size_t i = 0; i < s->names.count; i++)
		if (!*s->names.items[i] || strpbrk(s->names.items[i], "/: \t"))
			return cli_misuse(cli, "--name %s: it is a host's name, without a port",
					  s->names.items[i]);
	for (size_t i = 0; i < s->origins.count; i++)
		if (!strstr(s->origins.items[i], "://") || strchr(s->origins.items[i], ' '))
			return cli_misuse(cli, "--origin %s: it is as in https://example.org",
					  s->origins.items[i]);
	for (size_t i = 0; i < s->listen.count; i++)
		if (!cli_serve_listen_valid(s->listen.items[i]))
			return cli_misuse(cli,
					  "--listen %s: it is no ADDRESS:PORT as in "
					  "127.0.0.1:7717, [::1]:7717 or localhost:0",
					  s->listen.items[i]);
	return CLI_OK;
}

/* A file that is needed once: its bytes stay here, and go to each gateway that is started. */
static int read_file(const char *option, const char *path, struct cli_serve_bytes *ret,
		     struct coop_error *error)
{
	COOP_AUTO_FREE char *data = malloc(CLI_SERVE_FILE_MAX + 1);
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t size = 0;
	ssize_t n = -1;
	while (data && fd >= 0 && size <= CLI_SERVE_FILE_MAX &&
	       (n = read(fd, data + size, CLI_SERVE_FILE_MAX + 1 - size)) > 0)
		size += (size_t)n;
	const char *why = n < 0                       ? strerror(errno)
			  : size == 0                 ? "it is empty"
			  : size > CLI_SERVE_FILE_MAX ? "it is too large"
						      : NULL;
	if (why) {
		cli_error(error, "invalid_input", "%s %.200s: %s", option, path, why);
		return -EINVAL;
	}
	*ret = (struct cli_serve_bytes){COOP_TAKE_PTR(data), size};
	return 0;
}

static int read_tls(const struct settings *s, struct cli_serve_gateway *gateway,
		    struct coop_error *error)
{
	if (!s->tls_cert)
		return 0;
	const int r = read_file("--tls-cert", s->tls_cert, &gateway->cert, error);
	return r < 0 ? r : read_file("--tls-key", s->tls_key, &gateway->key, error);
}

static int open_listeners(const struct settings *s, struct cli_serve *serve,
			  struct cli_serve_found *found, struct coop_error *error)
{
	struct cli_serve_listeners *listeners = &serve->listeners;
	const bool insecure = s->insecure || s->tls_cert;
	int r = cli_serve_listen_given(listeners, insecure, error);
	const size_t given = listeners->count;
	for (size_t i = 0; r == 0 && given == 0 && i < s->listen.count; i++)
		r = cli_serve_listen_tcp(listeners, s->listen.items[i], insecure, error);
	if (r == 0 && given == 0 && s->listen.count == 0 && !s->unix_path)
		r = cli_serve_listen_tcp(listeners, DEFAULT_LISTEN, false, error);
	if (r == 0 && s->unix_path) {
		found->unix_path = cli_place_path(s->unix_path, error);
		r = found->unix_path
			    ? cli_serve_listen_unix(listeners, json_string_value(found->unix_path),
						    error)
			    : -EINVAL;
	}
	return r;
}

/* What clients are told to use: the first address, by the first name if there is one. */
static void find_url(const struct settings *s, struct cli_serve *serve,
		     struct cli_serve_found *found)
{
	const struct cli_serve_listener *listener = &serve->listeners.list[0];
	const char *port = strrchr(listener->address, ':');
	if (!listener->tcp)
		(void)snprintf(found->url, sizeof(found->url), "http://localhost");
	else if (s->names.count && port)
		(void)snprintf(found->url, sizeof(found->url), "%s://%.*s%s",
			       s->tls_cert ? "https" : "http", CLI_SERVE_URL_MAX - 16,
			       s->names.items[0], port);
	else
		cli_serve_url(serve, listener, found->url, sizeof(found->url));
	serve->gateway.url = found->url;
}

static int find_programs(struct cli_serve *serve, struct cli_serve_found *found,
			 struct coop_error *error)
{
	int r = coop_locate_program("coop-gateway", "COOP_GATEWAY", found->gateway,
				    sizeof(found->gateway));
	if (r < 0) {
		cli_error(error, "unavailable",
			  "cannot find the program coop-gateway (it belongs beside coop, in "
			  "../libexec/coop or in PATH)");
		return r;
	}
	serve->gateway.program = found->gateway;
	return 0;
}

/* Default folder: this one, where it can be a workspace. Another profile is not chosen for the user
 * as coop run does: agents have folders of their own, which would become read-only too. */
static void choose_workspace(struct cli *cli, const struct settings *s, json_t *args)
{
	char folder[PATH_MAX];
	if (s->no_workspace)
		return;
	const char *why = s->sandbox.workspace || s->sandbox.profile ? NULL
			  : realpath(".", folder)                    ? cli_workspace_refused(folder)
								     : "there is no current folder";
	if (why)
		cli_say("nothing is writable: %s (--workspace DIR names one)", why);
	else
		cli_workspace_add(cli, &s->sandbox, NULL, NULL, args);
}

/* Lets the keeper look at what every process is to be started with: better now than with the first
 * one. */
static int prepare(struct cli_serve *serve, struct coop_error *error)
{
	struct cli_serve_found *found = serve->found;
	json_t *result = NULL, *args = found->args;
	choose_workspace(serve->cli, serve->cli->settings, args);
	const json_t *sandbox = json_object_get(args, "sandbox");
	const char *profile = cli_text(sandbox, "profile"),
		   *workspace = cli_text(sandbox, "workspace");
	serve->gateway.profile = *profile ? profile : NULL;
	serve->gateway.workspace = *workspace ? workspace : NULL;
	(void)json_object_set_new(args, "argv", json_pack("[s]", "true"));
	(void)json_object_set_new(args, "cwd", json_string(*workspace ? workspace : "/"));
	const int r = cli_call(serve->cli, "check", json_incref(args), &result, error);
	json_decref(result);
	return r;
}

static json_t *make_args(const struct cli *cli, struct coop_error *error)
{
	const struct settings *s = cli->settings;
	json_t *args = json_object();
	const char *bad;
	if (cli_options_fields(cli->options, s, args, &bad) < 0)
		cli_error(error, "invalid_input", "--%s: not valid UTF-8", bad);
	else if (cli_sandbox_args(cli, &s->sandbox, args, error) == 0)
		return args;
	json_decref(args);
	return NULL;
}

static int set_up(const struct settings *s, struct cli_serve *serve, struct coop_error *error)
{
	struct cli_serve_found *found = serve->found;
	serve->gateway.listeners = &serve->listeners;
	serve->gateway.names = &s->names;
	serve->gateway.origins = &s->origins;
	serve->gateway.proxies = &s->proxies;
	serve->gateway.public_url = s->public_url;
	serve->gateway.ping_ms = s->ping.set ? s->ping.value : DEFAULT_PING_MS;
	serve->gateway.control_plane = s->control_plane;
	serve->gateway.no_workspace = s->no_workspace;
	serve->gateway.bound = s->no_workspace || s->sandbox.profile || s->sandbox.workspace;
	serve->worker_count = s->workers.set ? (size_t)s->workers.value : 1;
	serve->prepare = prepare;
	found->args = make_args(serve->cli, error);
	int r = found->args ? find_programs(serve, found, error) : -EINVAL;
	if (r == 0)
		r = read_tls(s, &serve->gateway, error);
	if (r == 0)
		r = open_listeners(s, serve, found, error);
	if (r == 0)
		find_url(s, serve, found);
	for (size_t i = 0;
	     r == 0 && s->names.count == 0 && !s->public_url && i < serve->listeners.count; i++)
		if (serve->listeners.list[i].wildcard)
			coop_log(COOP_LOG_WARN,
				 "%s: only requests for localhost are answered; --name says what "
				 "else clients call this host",
				 serve->listeners.list[i].address);
	return r;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	struct cli_serve_found found = {.args = NULL};
	struct cli_serve *serve = calloc(1, sizeof(*serve));
	struct coop_error error;
	int code = check(cli, settings);
	if (code != CLI_OK || !serve) {
		free(serve);
		return serve ? code : CLI_FAILED;
	}
	/* It acts as the user, whose keeper this is, whatever token lies about. */
	(void)unsetenv("COOP_TOKEN");
	serve->cli = cli;
	serve->found = &found;
	int r = set_up(settings, serve, &error);
	if (r == 0)
		r = cli_serve_run(serve, &error);
	cli_serve_listeners_close(&serve->listeners);
	if (serve->gateway.key.data)
		explicit_bzero(serve->gateway.key.data, serve->gateway.key.size);
	free(serve->gateway.cert.data);
	free(serve->gateway.key.data);
	json_decref(found.args);
	json_decref(found.unix_path);
	free(serve);
	return r < 0 ? cli_fail(cli, NULL, &error) : CLI_OK;
}

const struct cli_verb cli_verb_serve = {
	.name = "serve",
	.synopsis = "[--listen ADDRESS:PORT]… [--unix PATH] [OPTION…]",
	.summary = "Serve HTTP and WebSocket in the foreground, until Ctrl-C",
	.text = "Says on stdout where it serves and which file holds the token that clients send "
		"(Authorization: Bearer TOKEN), and logs on\n"
		"stderr. It uses the keeper that runs; without one it starts its own, which ends "
		"with it. The gateway, which speaks with\n"
		"clients, is a process of its own without any rights, and is started again if it "
		"dies; connections wait meanwhile.\n"
		"For example:\n"
		"  coop serve\n"
		"  curl -H \"Authorization: Bearer $(cat TOKEN-FILE)\" "
		"http://127.0.0.1:7717/runtime/v1/process",
	.operation = &coop_operation_check,
	.options = options,
	.settings_size = sizeof(struct settings),
	.no_keeper = true,
	.run = run,
};
