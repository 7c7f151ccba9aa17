#include "doors/cli/serve/serve_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "doors/cli/cli.h"
#include "doors/cli/parse.h"

#define BACKLOG 4096
#define FIRST_GIVEN 3 /* where systemd puts them */

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
	struct sockaddr_un local;
};

static int refuse(struct coop_error *error, const char *option, const char *text, const char *why)
{
	cli_error(error, "invalid_input", "%s %.200s: %s", option, text, why);
	return -EINVAL;
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->four.sin_addr.s_addr) >> 24 == 127;
	if (address->any.sa_family != AF_INET6)
		return true;
	const struct in6_addr *six = &address->six.sin6_addr;
	return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

static bool is_wildcard(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return address->four.sin_addr.s_addr == htonl(INADDR_ANY);
	return address->any.sa_family == AF_INET6 &&
	       IN6_IS_ADDR_UNSPECIFIED(&address->six.sin6_addr);
}

/* Splits at the last colon; an address of IPv6 stands in brackets. */
static int parse_address(const char *text, union address *ret, socklen_t *ret_size)
{
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port;
	const char *colon = strrchr(text, ':');
	const size_t length = colon ? (size_t)(colon - text) : 0;
	if (!length || length >= sizeof(host) || cli_parse_count(colon + 1, &port) < 0 ||
	    port > UINT16_MAX)
		return -EINVAL;
	memcpy(host, text, length);
	host[length] = '\0';
	*ret = (union address){.any.sa_family = AF_UNSPEC};
	if (host[0] == '[' && host[length - 1] == ']') {
		host[length - 1] = '\0';
		ret->six.sin6_family = AF_INET6;
		ret->six.sin6_port = htons((uint16_t)port);
		*ret_size = sizeof(ret->six);
		return inet_pton(AF_INET6, host + 1, &ret->six.sin6_addr) == 1 ? 0 : -EINVAL;
	}
	ret->four.sin_family = AF_INET;
	ret->four.sin_port = htons((uint16_t)port);
	*ret_size = sizeof(ret->four);
	const char *digits = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
	return inet_pton(AF_INET, digits, &ret->four.sin_addr) == 1 ? 0 : -EINVAL;
}

/* Of a bound socket; port 0 has become another one. */
static int describe(int fd, struct cli_serve_listener *ret)
{
	union address address = {0};
	socklen_t size = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "";
	if (getsockname(fd, &address.any, &size) < 0)
		return -errno;
	const int family = address.any.sa_family;
	*ret = (struct cli_serve_listener){.fd = fd,
					   .tcp = family != AF_UNIX,
					   .loopback = is_loopback(&address),
					   .wildcard = is_wildcard(&address)};
	if (family == AF_INET) {
		(void)inet_ntop(AF_INET, &address.four.sin_addr, host, sizeof(host));
		(void)snprintf(ret->address, sizeof(ret->address), "%s:%u", host,
			       ntohs(address.four.sin_port));
	} else if (family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &address.six.sin6_addr, host, sizeof(host));
		(void)snprintf(ret->address, sizeof(ret->address), "[%s]:%u", host,
			       ntohs(address.six.sin6_port));
	} else if (family == AF_UNIX) {
		(void)snprintf(ret->address, sizeof(ret->address), "%.*s",
			       (int)sizeof(ret->address) - 1, address.local.sun_path);
	} else {
		return -EAFNOSUPPORT;
	}
	return 0;
}

/* A descriptor, or a negative errno. */
static int open_tcp(const union address *address, socklen_t size)
{
	const int on = 1, family = address->any.sa_family;
	COOP_AUTO_FD int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Without V6ONLY [::] would take the port of 0.0.0.0 as well. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    (family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
	    bind(fd, &address->any, size) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return COOP_TAKE_FD(fd);
}

static int refuse_open(struct coop_error *error, const char *option, const char *text)
{
	return refuse(error, option, text,
		      "other machines reach it, and everything would travel in the clear: give "
		      "--tls-cert and --tls-key, or --insecure-listen where something else "
		      "protects it");
}

static bool is_full(const struct cli_serve_listeners *listeners)
{
	return listeners->count == CLI_SERVE_LISTENERS_MAX;
}

bool cli_serve_listen_valid(const char *text)
{
	union address address;
	socklen_t size;
	return parse_address(text, &address, &size) == 0;
}

int cli_serve_listen_tcp(struct cli_serve_listeners *listeners, const char *text, bool insecure,
			 struct coop_error *error)
{
	union address address;
	socklen_t size;
	if (is_full(listeners))
		return refuse(error, "--listen", text, "there are too many of them (at most 16)");
	if (parse_address(text, &address, &size) < 0)
		return refuse(error, "--listen", text,
			      "it is no ADDRESS:PORT as in 127.0.0.1:7717, [::1]:7717 or "
			      "localhost:0");
	if (!insecure && !is_loopback(&address))
		return refuse_open(error, "--listen", text);
	const int fd = open_tcp(&address, size);
	if (fd < 0)
		return refuse(error, "--listen", text, strerror(-fd));
	const int r = describe(fd, &listeners->list[listeners->count]);
	if (r < 0) {
		(void)close(fd);
		return refuse(error, "--listen", text, strerror(-r));
	}
	listeners->count++;
	return 0;
}

/* A socket that nobody answers on was left behind. 0 if the path is free now. */
static int clear_path(const struct sockaddr_un *address, const char **ret_why)
{
	struct stat st;
	COOP_AUTO_FD int fd = -1;
	if (lstat(address->sun_path, &st) < 0)
		return 0; /* whatever is wrong, binding will tell */
	*ret_why = "it is there and is no socket";
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	*ret_why = "somebody serves there already";
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	    errno != ECONNREFUSED)
		return -EADDRINUSE;
	*ret_why = "what was left there cannot be removed";
	return unlink(address->sun_path) < 0 ? -errno : 0;
}

/* A descriptor, or a negative errno. */
static int open_unix(const struct sockaddr_un *address)
{
	COOP_AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const mode_t mask = umask(0177);
	const bool good = fd >= 0 &&
			  bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 &&
			  listen(fd, BACKLOG) == 0;
	const int r = good ? COOP_TAKE_FD(fd) : -errno;
	(void)umask(mask);
	return r;
}

int cli_serve_listen_unix(struct cli_serve_listeners *listeners, const char *path,
			  struct coop_error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st = {0};
	const char *why = NULL;
	if (is_full(listeners))
		return refuse(error, "--unix", path, "there are too many listeners (at most 16)");
	if (strlen(path) >= sizeof(address.sun_path))
		return refuse(error, "--unix", path, "the path is too long (107 bytes at most)");
	memcpy(address.sun_path, path, strlen(path));
	if (clear_path(&address, &why) < 0)
		return refuse(error, "--unix", path, why);
	const int fd = open_unix(&address);
	if (fd < 0)
		return refuse(error, "--unix", path, strerror(-fd));
	(void)lstat(path, &st);
	listeners->made = path;
	listeners->device = st.st_dev;
	listeners->inode = st.st_ino;
	struct cli_serve_listener *listener = &listeners->list[listeners->count++];
	*listener = (struct cli_serve_listener){.fd = fd, .loopback = true};
	(void)snprintf(listener->address, sizeof(listener->address), "%s", path);
	return 0;
}

/* How many descriptors systemd gave to this very process. */
static size_t given_count(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	uint64_t number = 0, whose = 0;
	if (!pid || !count || cli_parse_count(pid, &whose) < 0 || whose != (uint64_t)getpid() ||
	    cli_parse_count(count, &number) < 0 || number > CLI_SERVE_LISTENERS_MAX)
		number = 0;
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return (size_t)number;
}

static bool listens(int fd)
{
	int type = 0, accepting = 0;
	socklen_t size = sizeof(type);
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &size) == 0 && accepting;
}

int cli_serve_listen_given(struct cli_serve_listeners *listeners, bool insecure,
			   struct coop_error *error)
{
	const size_t count = given_count();
	for (size_t i = 0; i < count; i++) {
		const int fd = FIRST_GIVEN + (int)i;
		struct cli_serve_listener *listener = &listeners->list[listeners->count];
		char text[16];
		(void)snprintf(text, sizeof(text), "%d", fd);
		if (!listens(fd) || describe(fd, listener) < 0)
			return refuse(error, "LISTEN_FDS: descriptor", text,
				      "it is no listening TCP or Unix socket");
		if (!insecure && !listener->loopback)
			return refuse_open(error, "LISTEN_FDS:", listener->address);
		const int flags = fcntl(fd, F_GETFL);
		if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
		    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return refuse(error, "LISTEN_FDS: descriptor", text, strerror(errno));
		listeners->count++;
	}
	return 0;
}

void cli_serve_listeners_close(struct cli_serve_listeners *listeners)
{
	struct stat st;
	/* Somebody may have put another one there meanwhile. */
	if (listeners->made && lstat(listeners->made, &st) == 0 && st.st_dev == listeners->device &&
	    st.st_ino == listeners->inode)
		(void)unlink(listeners->made);
	for (size_t i = 0; i < listeners->count; i++)
		(void)close(listeners->list[i].fd);
	listeners->count = 0;
	listeners->made = NULL;
}
