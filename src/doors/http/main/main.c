/* coop-gateway: HTTP and WebSockets in front of the keeper. Started by `coop serve`, which gives it
 * everything it has: listening sockets, a certificate, and a way to ask for connections to the
 * keeper. */
#include <errno.h>
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
#include "doors/http/main/route.h"
#include "doors/http/net/failures.h"
#include "doors/http/net/listener.h"
#include "doors/http/net/tls.h"
#include "doors/http/users/broker.h"
#include "doors/http/users/user_private.h"
#include "doors/mcp/fixtures.h"

#define CONNECTIONS_MAX 65536u
#define KEPT_BYTES (4 << 20)

struct arguments {
	int broker, certificate, key;
	struct {
		int fd;
		bool tls;
	} listen[COOP_GATEWAY_LISTENERS_MAX];
	unsigned listen_count, name_count, origin_count;
	char public_host[COOP_AUTHORITY_SIZE];
};

static int print_routes(void)
{
	const struct coop_http_route *row;

	for (size_t i = 0; (row = coop_route_at(i)); i++)
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

static bool add_listen(struct arguments *arguments, const char *text)
{
	const char *comma = strchr(text, ',');

	if (arguments->listen_count == COOP_GATEWAY_LISTENERS_MAX ||
	    (comma && strcmp(comma, ",tls") != 0))
		return false;
	arguments->listen[arguments->listen_count].tls = comma != NULL;
	return to_fd(text, &arguments->listen[arguments->listen_count++].fd);
}

static bool add_name(const char **names, unsigned *count, const char *name)
{
	if (*count == COOP_GATEWAY_NAMES_MAX - 1)
		return false;
	names[(*count)++] = name;
	return true;
}

/* The name in it is one of ours. */
static bool take_public_url(const char *url, struct arguments *arguments,
			    struct coop_gateway_options *options)
{
	if (coop_origin_parse(url, options->public_url) < 0)
		return false;
	const char *host = strstr(options->public_url, "://") + 3;
	const char *port = strchr(*host == '[' ? strchr(host, ']') : host, ':');
	(void)snprintf(arguments->public_host, sizeof arguments->public_host, "%.*s",
		       (int)(port ? (size_t)(port - host) : strlen(host)), host);
	return add_name(options->names, &arguments->name_count, arguments->public_host);
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

static bool take_option(int option, const char *value, struct arguments *arguments,
			struct coop_gateway_options *options)
{
	switch (option) {
	case 'b':
		return to_fd(value, &arguments->broker);
	case 'l':
		return add_listen(arguments, value);
	case 'c':
		return to_fd(value, &arguments->certificate);
	case 'k':
		return to_fd(value, &arguments->key);
	case 'n':
		return add_name(options->names, &arguments->name_count, value);
	case 'o':
		return add_name(options->origins, &arguments->origin_count, value);
	case 'p':
		options->profile = value;
		return true;
	case 'w':
		options->workspace = value;
		return true;
	case 'u':
		options->url = value;
		return true;
	case 'N':
		options->no_workspace = true;
		return true;
	case 'B':
		options->bound = true;
		return true;
	case 'U':
		return take_public_url(value, arguments, options);
	case 'T':
		return add_proxy(&options->proxies, value);
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

static bool parse(int argc, char **argv, struct arguments *arguments,
		  struct coop_gateway_options *options)
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
		if (!take_option(option, optarg, arguments, options))
			return false;
	}
	return optind == argc && arguments->broker > 0 && arguments->listen_count > 0;
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
	options->max_per_agent = options->max_connections / 4 * 3;
	options->max_of_agents = options->max_connections / 8 * 7;
}

static void on_signal(uv_signal_t *handle, int number)
{
	(void)number;
	coop_gateway_stop(handle->data);
}

static bool load_tls(struct coop_gateway *gateway, const struct arguments *arguments)
{
	char why[256];

	if (arguments->certificate <= 0)
		return true;
	gateway->tls = coop_tls_load(arguments->certificate, arguments->key, why, sizeof why);
	(void)close(arguments->certificate);
	(void)close(arguments->key);
	if (!gateway->tls)
		coop_log(COOP_LOG_ERROR, "TLS: %s", why);
	return gateway->tls != NULL;
}

/* Everything that needs memory or descriptors from outside, before it confines itself. */
static bool set_up(struct coop_gateway *gateway, const struct arguments *arguments)
{
	gateway->users = coop_users_new(gateway);
	gateway->failures = coop_mem_zalloc(sizeof *gateway->failures);
	gateway->broker = coop_broker_new(gateway, arguments->broker, coop_gateway_stop);
	if (!gateway->users || !gateway->failures || !gateway->broker ||
	    !load_tls(gateway, arguments))
		return false;
	for (unsigned i = 0; i < arguments->listen_count; i++) {
		struct coop_http_listener *listener = coop_http_listener_new(
			gateway, arguments->listen[i].fd, arguments->listen[i].tls);
		if (!listener || (arguments->listen[i].tls && !gateway->tls)) {
			coop_log(COOP_LOG_ERROR, "descriptor %d cannot be listened to",
				 arguments->listen[i].fd);
			return false;
		}
		gateway->listeners[gateway->listener_count++] = listener;
	}
	return true;
}

static void serve(struct coop_gateway *gateway, const struct arguments *arguments)
{
	char held[256];
	uv_signal_t term;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)uv_signal_init(gateway->loop, &term);
	term.data = gateway;
	if (!set_up(gateway, arguments) || uv_signal_start(&term, on_signal, SIGTERM) < 0)
		_exit(1); /* nobody has been served: there is nothing to put in order */
	/* The loop's own descriptors are made now, while that is allowed. */
	(void)uv_run(gateway->loop, UV_RUN_NOWAIT);
	/* Told to go, or its parent has left, before anybody was served. */
	if (gateway->stopping)
		_exit(0);
	int r = coop_confine(held, sizeof held);
	if (r < 0) {
		coop_log(COOP_LOG_ERROR, "cannot be confined: %s", strerror(-r));
		_exit(1);
	}
	for (unsigned i = 0; i < gateway->listener_count; i++)
		coop_http_listener_start(gateway->listeners[i]);
	coop_broker_ready(gateway->broker, held);
	(void)uv_run(gateway->loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&term, NULL);
	for (int i = 0; i < 8; i++) /* closes what was told to close */
		(void)uv_run(gateway->loop, UV_RUN_NOWAIT);
	coop_users_free(gateway->users);
	coop_tls_unload(gateway->tls);
	free(gateway->failures);
}

int main(int argc, char **argv)
{
	struct arguments arguments = {.broker = -1, .certificate = -1, .key = -1};
	struct coop_gateway gateway = {0};

	coop_mem_init();
	/* Blocks of output come and go all the time: giving their memory back at once would cost a
	 * page fault for every page of them. */
	(void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	(void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	if (argc == 2 && strcmp(argv[1], "--routes") == 0)
		return print_routes();
	if (!parse(argc, argv, &arguments, &gateway.options))
		return usage();
	if (!gateway.options.url)
		gateway.options.url = "";
	set_limits(&gateway.options);
	gateway.loop = uv_default_loop();
	if (!gateway.loop)
		return 1;
	serve(&gateway, &arguments);
	(void)uv_loop_close(gateway.loop);
	return 0;
}
