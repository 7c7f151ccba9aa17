/* coop-gateway: HTTP and WebSockets in front of the keeper. Started by `coop serve`, which gives it
 * everything it has: listening sockets, a certificate, and a way to ask for connections to the
 * keeper. */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/io/log.h"
#include "base/mem.h"
#include "base/text/netname.h"
#include "doors/http/main/confine.h"
#include "doors/http/main/gateway.h"
#include "doors/http/main/routes.h"
#include "doors/mcp/fixtures.h"

#define CONNECTIONS_MAX 65536u
#define KEPT_BYTES (4 << 20)

struct arguments {
	struct coop_gateway_options options;
	unsigned name_count, origin_count;
	char public_host[COOP_AUTHORITY_SIZE];
};

static int print_routes(void)
{
	const struct coop_http_route *row;

	for (size_t i = 0; (row = coop_routes_at(i)); i++)
		(void)printf("%s %s%s%s\n", row->method, row->pattern,
			     row->flags & COOP_ROUTE_BELOW ? "*" : "",
			     row->flags & COOP_ROUTE_UPGRADE ? " (upgrade)" : "");
	return 0;
}

static int usage(void)
{
	(void)fprintf(stderr, "coop-gateway is started by coop serve; see coop-serve(1)\n");
	return 2;
}

static bool to_fd(const char *text, int *ret)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || (*end && *end != ',') || value < 3 || value > 65535)
		return false;
	*ret = (int)value;
	return true;
}

static bool add_listen(struct coop_gateway_options *options, const char *text)
{
	const char *comma = strchr(text, ',');

	if (options->listen_count == COOP_GATEWAY_LISTENERS_MAX ||
	    (comma && strcmp(comma, ",tls") != 0))
		return false;
	options->listen[options->listen_count].tls = comma != NULL;
	return to_fd(text, &options->listen[options->listen_count++].fd);
}

static bool add_name(const char **names, unsigned *count, const char *name)
{
	if (*count == COOP_PLACE_NAMES_MAX - 1)
		return false;
	names[(*count)++] = name;
	return true;
}

/* The name in it is one of ours. */
static bool take_public_url(const char *url, struct arguments *arguments)
{
	struct coop_http_place *place = &arguments->options.place;

	if (coop_origin_parse(url, place->public_url) < 0)
		return false;
	const char *host = strstr(place->public_url, "://") + 3;
	const char *port = strchr(*host == '[' ? strchr(host, ']') : host, ':');
	(void)snprintf(arguments->public_host, sizeof arguments->public_host, "%.*s",
		       (int)(port ? (size_t)(port - host) : strlen(host)), host);
	return add_name(place->names, &arguments->name_count, arguments->public_host);
}

static bool add_proxy(struct coop_proxies *proxies, const char *text)
{
	if (strcmp(text, "unix") == 0) {
		proxies->local = true;
		return true;
	}
	return proxies->count < COOP_PROXIES_MAX &&
	       coop_network_parse(text, &proxies->networks[proxies->count++]) == 0;
}

static bool to_number(const char *text, unsigned *ret)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end || value > UINT32_MAX)
		return false;
	*ret = (unsigned)value;
	return true;
}

static bool take_option(int option, const char *value, struct arguments *arguments)
{
	struct coop_gateway_options *options = &arguments->options;
	struct coop_door_ceiling *ceiling = &options->users.ceiling;

	switch (option) {
	case 'b':
		return to_fd(value, &options->broker);
	case 'l':
		return add_listen(options, value);
	case 'c':
		return to_fd(value, &options->certificate);
	case 'k':
		return to_fd(value, &options->key);
	case 'n':
		return add_name(options->place.names, &arguments->name_count, value);
	case 'o':
		return add_name(options->place.origins, &arguments->origin_count, value);
	case 'p':
		ceiling->profile = value;
		return true;
	case 'w':
		ceiling->workspace = value;
		return true;
	case 'u':
		options->place.url = value;
		return true;
	case 'N':
		ceiling->no_workspace = true;
		return true;
	case 'B':
		options->users.bound = true;
		return true;
	case 'U':
		return take_public_url(value, arguments);
	case 'T':
		return add_proxy(&options->place.proxies, value);
	case 'P':
		return to_number(value, &options->ping_ms);
	case 'R':
		return to_number(value, &options->restarts);
	case 'C':
		options->control_plane = true;
		return true;
	case 'F':
		options->mcp_fixtures = true;
		return true;
	default:
		return false;
	}
}

static bool parse(int argc, char **argv, struct arguments *arguments)
{
	static const struct option names[] = {
		{"broker", required_argument, NULL, 'b'},
		{"listen", required_argument, NULL, 'l'},
		{"tls-cert", required_argument, NULL, 'c'},
		{"tls-key", required_argument, NULL, 'k'},
		{"name", required_argument, NULL, 'n'},
		{"origin", required_argument, NULL, 'o'},
		{"profile", required_argument, NULL, 'p'},
		{"workspace", required_argument, NULL, 'w'},
		{"url", required_argument, NULL, 'u'},
		{"no-workspace", no_argument, NULL, 'N'},
		{"bound", no_argument, NULL, 'B'},
		{"public-url", required_argument, NULL, 'U'},
		{"trust-proxy", required_argument, NULL, 'T'},
		{"ping-ms", required_argument, NULL, 'P'},
		{"restarts", required_argument, NULL, 'R'},
		{"control-plane", no_argument, NULL, 'C'},
		COOP_MCP_FIXTURES_OPTION{0},
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (!take_option(option, optarg, arguments))
			return false;
	}
	return optind == argc && arguments->options.broker > 0 &&
	       arguments->options.listen_count > 0;
}

/* A tenth of the descriptors stays for links to the keeper, a quarter of the connections for
 * others than the busiest agent, and an eighth for the owner. */
static void set_limits(struct coop_gateway_options *options)
{
	struct rlimit limit = {0};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
		(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	rlim_t most = limit.rlim_cur / 10 * 9;
	options->max_connections = most < CONNECTIONS_MAX ? (unsigned)most : CONNECTIONS_MAX;
	options->users.max_per_agent = options->max_connections / 4 * 3;
	options->users.max_of_agents = options->max_connections / 8 * 7;
}

static void on_signal(uv_signal_t *handle, int number)
{
	coop_gateway_stop(handle->data);
}

static void serve(uv_loop_t *loop, struct coop_gateway_options *options)
{
	char held[256];
	uv_signal_t term;
	struct coop_gateway *gateway = coop_gateway_new(loop, options);

	(void)signal(SIGPIPE, SIG_IGN);
	(void)uv_signal_init(loop, &term);
	term.data = gateway;
	if (!gateway || uv_signal_start(&term, on_signal, SIGTERM) < 0)
		_exit(1); /* nobody has been served: there is nothing to put in order */
	/* The loop's own descriptors are made now, while that is allowed. */
	(void)uv_run(loop, UV_RUN_NOWAIT);
	/* Told to go, or its parent has left, before anybody was served. */
	if (coop_gateway_stopping(gateway))
		_exit(0);
	int r = coop_confine(held, sizeof held);
	if (r < 0) {
		coop_log(COOP_LOG_ERROR, "cannot be confined: %s", strerror(-r));
		_exit(1);
	}
	coop_gateway_serve(gateway, held);
	uv_close((uv_handle_t *)&term, NULL);
	for (int i = 0; i < 8; i++) /* closes what was told to close */
		(void)uv_run(loop, UV_RUN_NOWAIT);
	coop_gateway_free(gateway);
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.options = {.broker = -1, .certificate = -1, .key = -1, .place.url = ""}};

	coop_mem_init();
	/* Blocks of output come and go all the time: giving their memory back at once would cost a
	 * page fault for every page of them. */
	(void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	(void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	if (argc == 2 && strcmp(argv[1], "--routes") == 0)
		return print_routes();
	if (!parse(argc, argv, &arguments))
		return usage();
	set_limits(&arguments.options);
	uv_loop_t *loop = uv_default_loop();
	if (!loop)
		return 1;
	serve(loop, &arguments.options);
	(void)uv_loop_close(loop);
	return 0;
}
