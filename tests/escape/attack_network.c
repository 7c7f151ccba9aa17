/* The network, and local sockets of the host. */
#include "attack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECT_MS 1500

/* Without waiting for a far host: whatever has not been refused by then is under way. */
static struct attack_outcome connect_to(int type, const struct sockaddr *address, socklen_t size)
{
	int fd = socket(address->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
	socklen_t length = sizeof(error);
	if (fd < 0)
		return attack_refused(errno);
	if (connect(fd, address, size) != 0) {
		error = errno;
		struct pollfd wait = {.fd = fd, .events = POLLOUT};
		if (error == EINPROGRESS && poll(&wait, 1, CONNECT_MS) == 1)
			(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
		else if (error == EINPROGRESS)
			error = 0;
	} else if (type == SOCK_DGRAM) {
		/* That nobody listens is told a moment later. */
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		if (send(fd, "x", 1, 0) < 0)
			error = errno;
		else if (poll(&wait, 1, 50) == 1)
			(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
	}
	(void)close(fd);
	return error ? attack_refused(error) : attack_succeeded();
}

static struct attack_outcome connect_inet(int type, const char *host, int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	(void)inet_pton(AF_INET, host, &address.sin_addr);
	return connect_to(type, (struct sockaddr *)&address, sizeof(address));
}

static struct attack_outcome connect_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return connect_to(SOCK_STREAM, (struct sockaddr *)&address, sizeof(address));
}

static struct attack_outcome connect_abstract(const struct attack_context *context)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *name = attack_param(context, "HOST_ABSTRACT");
	(void)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	return connect_to(SOCK_STREAM, (struct sockaddr *)&address, size);
}

static struct attack_outcome socket_in_run(const struct attack_context *context)
{
	return connect_unix(attack_param(context, "HOST_SOCKET_RUN"));
}

static struct attack_outcome socket_in_home(const struct attack_context *context)
{
	return connect_unix(attack_param(context, "HOST_SOCKET_HOME"));
}

static struct attack_outcome socket_in_var(const struct attack_context *context)
{
	return connect_unix(attack_param(context, "HOST_SOCKET_VAR"));
}

static struct attack_outcome fresh_socket(const struct attack_context *context)
{
	return connect_unix(attack_param(context, "HOST_SOCKET_FRESH"));
}

/* To connect is not enough: the keeper speaks first, or closes without a word. */
static struct attack_outcome keepers_socket(const struct attack_context *context)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char first;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
		       attack_param(context, "KEEPER_SOCKET"));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return attack_refused(errno);
	struct pollfd waiting = {.fd = fd, .events = POLLIN};
	ssize_t got = poll(&waiting, 1, 3000) > 0 ? recv(fd, &first, 1, 0) : 1;
	(void)close(fd);
	return got > 0 ? attack_succeeded() : attack_looked("turned away");
}

static struct attack_outcome keepers_state(const struct attack_context *context)
{
	return attack_open(attack_path(context, "KEEPER_STATE", "/audit.log"), O_RDONLY);
}

/* Local sockets of the own tree must work. */
static struct attack_outcome own_sockets(const struct attack_context *context)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	(void)context;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/coop-attack.sock");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), pair[2];
	if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		return attack_refused(errno);
	(void)unlink(address.sun_path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1) != 0)
		return attack_refused(errno);
	struct attack_outcome outcome = connect_unix(address.sun_path);
	(void)unlink(address.sun_path);
	return outcome;
}

static void add_name(char *names, size_t size, const struct nlmsghdr *message)
{
	const struct ifinfomsg *info = NLMSG_DATA(message);
	long left = (long)IFLA_PAYLOAD(message);
	for (const struct rtattr *a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type != IFLA_IFNAME)
			continue;
		size_t used = strlen(names);
		(void)snprintf(names + used, size - used, "%s%s", used ? " " : "",
			       (const char *)RTA_DATA(a));
	}
}

static struct attack_outcome list_links(const struct attack_context *context)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg info;
	} ask = {.head = {.nlmsg_len = sizeof(ask),
			  .nlmsg_type = RTM_GETLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	char answer[32768], names[256] = "";
	(void)context;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) < 0)
		return attack_refused(errno);
	for (bool done = false; !done;) {
		ssize_t got = recv(fd, answer, sizeof(answer), 0);
		if (got <= 0)
			return attack_refused(got < 0 ? errno : EIO);
		size_t left = (size_t)got;
		for (struct nlmsghdr *m = (struct nlmsghdr *)answer; NLMSG_OK(m, left);
		     m = NLMSG_NEXT(m, left)) {
			done = done || m->nlmsg_type == NLMSG_DONE || m->nlmsg_type == NLMSG_ERROR;
			if (m->nlmsg_type == RTM_NEWLINK)
				add_name(names, sizeof(names), m);
		}
	}
	return attack_looked("%s", names);
}

static struct attack_outcome raw_icmp(const struct attack_context *context)
{
	(void)context;
	return attack_from(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

static struct attack_outcome packet_socket(const struct attack_context *context)
{
	(void)context;
	return attack_from(socket(AF_PACKET, SOCK_RAW, 0));
}

static struct attack_outcome vsock(const struct attack_context *context)
{
	(void)context;
	return attack_from(socket(AF_VSOCK, SOCK_STREAM, 0));
}

static struct attack_outcome kernel_crypto(const struct attack_context *context)
{
	(void)context;
	return attack_from(socket(AF_ALG, SOCK_SEQPACKET, 0));
}

/* Every family but the four that are for use: known or not. */
static struct attack_outcome other_families(const struct attack_context *context)
{
	struct attack_outcome outcome = attack_refused(ENOENT);
	(void)context;
	for (int family = 3; family < 50; family++) {
		if (family == AF_INET6 || family == AF_NETLINK)
			continue;
		struct attack_outcome one = attack_from(socket(family, SOCK_DGRAM, 0));
		if (one.kind == ATTACK_OK)
			(void)snprintf(one.value, sizeof(one.value), "family %d", family);
		outcome = attack_worse(outcome, one);
	}
	return outcome;
}

static struct attack_outcome far_udp(const struct attack_context *context)
{
	(void)context;
	return connect_inet(SOCK_DGRAM, "8.8.8.8", 53);
}

static struct attack_outcome far_tcp(const struct attack_context *context)
{
	(void)context;
	return connect_inet(SOCK_STREAM, "1.1.1.1", 443);
}

static struct attack_outcome hosts_port(const struct attack_context *context)
{
	return connect_inet(SOCK_STREAM, "127.0.0.1",
			    (int)strtol(attack_param(context, "HOST_PORT"), NULL, 10));
}

static struct attack_outcome hosts_port_udp(const struct attack_context *context)
{
	return connect_inet(SOCK_DGRAM, "127.0.0.1",
			    (int)strtol(attack_param(context, "HOST_UDP_PORT"), NULL, 10));
}

static struct attack_outcome metadata(const struct attack_context *context)
{
	(void)context;
	return connect_inet(SOCK_STREAM, "169.254.169.254", 80);
}

/* S-134 and its counterpart: words PORT. */
static struct attack_outcome connect_port(const struct attack_context *context)
{
	int port = context->arg_count > 0 ? (int)strtol(context->args[0], NULL, 10) : 0;
	return connect_inet(SOCK_STREAM, "127.0.0.1", port);
}

/* Says its port and answers for ever. */
static struct attack_outcome serve(const struct attack_context *context)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)context;
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(fd, 16) != 0 || getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return attack_refused(errno);
	dprintf(STDOUT_FILENO, "%u\n", ntohs(address.sin_port));
	(void)alarm(0);
	for (;;) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (client >= 0)
			(void)close(client);
	}
}

const struct attack attack_network[] = {
	{"S-026", connect_abstract},
	{"S-027.run", socket_in_run},
	{"S-027.home", socket_in_home},
	{"S-027.var", socket_in_var},
	{"S-027.fresh", fresh_socket},
	{"own-sockets", own_sockets},
	{"S-058", list_links},
	{"S-059", raw_icmp},
	{"S-060", packet_socket},
	{"S-061", vsock},
	{"S-062", kernel_crypto},
	{"S-062.others", other_families},
	{"S-063", far_udp},
	{"S-066", far_tcp},
	{"S-064", hosts_port},
	{"S-064.udp", hosts_port_udp},
	{"S-065", metadata},
	{"S-117", keepers_socket},
	{"S-117.state", keepers_state},
	{"S-134", connect_port, .alone = true},
	{"serve", serve, .alone = true},
	{0},
};
