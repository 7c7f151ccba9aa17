#include "keeper/tree/port_table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/sock_diag.h"

#define LISTENING \
	10 /* TCP_LISTEN: the C library's header for it and the kernel's do not go together */
#define LINES_MAX 65536u /* of a table that are read */
#define OWN_TABLE "/proc/self/net/tcp"

static void add(struct coop_port_table *listeners, uint64_t inode, int family, const void *address)
{
	if (listeners->count == COOP_PORT_TABLE_MAX)
		return;
	struct coop_port_row *one = &listeners->rows[listeners->count];
	if (!inet_ntop(family, address, one->address, sizeof one->address))
		return;
	one->inode = inode;
	listeners->count++;
}

struct visit {
	int network; /* fd of the namespace */
	int result;
};

/* A socket stays in the network that it was made in, wherever its descriptor goes. */
static void *open_there(void *user)
{
	struct visit *visit = user;

	visit->result = setns(visit->network, CLONE_NEWNET) < 0 ? -errno : coop_sock_diag_open();
	return NULL;
}

/* A socket belongs to the network that its maker was in. A thread of its own goes there and ends,
 * so that nobody has to come back. */
static int open_in(pid_t pid)
{
	struct visit visit;
	char path[64];
	pthread_t thread;
	sigset_t all, before;

	(void)snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
	COOP_AUTO_FD int network = open(path, O_RDONLY | O_CLOEXEC);
	if (network < 0)
		return -errno;
	visit = (struct visit){.network = network};
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the loop */
	int r = pthread_create(&thread, NULL, open_there, &visit);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		return -r;
	(void)pthread_join(thread, NULL);
	return visit.result;
}

static int take(void *user, const void *told, size_t size)
{
	const struct inet_diag_msg *said = told;

	if (size >= sizeof *said)
		add(user, said->idiag_inode, said->idiag_family, said->id.idiag_src);
	return 0;
}

/* The kernel goes through its listeners alone. Its tables in /proc show all sockets, and finding
 * that there are no more takes it milliseconds where much memory made the table of connections
 * large. 0 or -errno. */
static int ask(int fd, uint8_t family, uint16_t port, struct coop_port_table *ret)
{
	const struct inet_diag_req_v2 question = {
		.sdiag_family = family,
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_states = 1u << LISTENING,
		.id = {.idiag_sport = htons(port)},
	};

	return coop_sock_diag_ask(fd, &question, sizeof question, take, ret);
}

/* Both families: a server may listen on one of them alone. */
static int ask_kernel(pid_t pid, uint16_t port, struct coop_port_table *ret)
{
	int opened = pid ? open_in(pid) : coop_sock_diag_open();
	COOP_AUTO_FD int fd = opened;

	if (opened < 0)
		return opened;
	int r = ask(fd, AF_INET, port, ret);
	return r < 0 ? r : ask(fd, AF_INET6, port, ret);
}

/* The words of a table are the address as it lies in memory, each printed as a number of this
 * machine's. */
static void add_line(struct coop_port_table *listeners, uint64_t inode, const char *digits)
{
	uint32_t words[4] = {0};
	size_t count = strlen(digits) / 8;

	for (size_t i = 0; i < count && i < 4; i++)
		(void)sscanf(digits + 8 * i, "%8x", &words[i]);
	add(listeners, inode, count == 1 ? AF_INET : AF_INET6, words);
}

/* Listeners stand before all other sockets: the rest, which may be long, is not read. */
static bool read_table(const char *path, uint16_t wanted, struct coop_port_table *ret)
{
	char line[512], digits[33];
	unsigned port, state;
	unsigned long long inode;
	FILE *table = fopen(path, "re");

	if (!table)
		return false;
	bool any = fgets(line, sizeof line, table) != NULL; /* the heading */
	for (unsigned i = 0; any && i < LINES_MAX && fgets(line, sizeof line, table); i++) {
		if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %llu", digits,
			   &port, &state, &inode) != 4 ||
		    state != LISTENING)
			break;
		if (port == wanted)
			add_line(ret, inode, digits);
	}
	(void)fclose(table);
	return true;
}

static int read_tables(pid_t pid, uint16_t port, struct coop_port_table *ret)
{
	char where[16] = "self", path[64];

	if (pid)
		(void)snprintf(where, sizeof where, "%d", pid);
	(void)snprintf(path, sizeof path, "/proc/%s/net/tcp", where);
	bool there = read_table(path, port, ret);
	(void)snprintf(path, sizeof path, "/proc/%s/net/tcp6", where);
	there = read_table(path, port, ret) || there; /* a kernel may have no IPv6 */
	return there || access(OWN_TABLE, R_OK) == 0 ? 0 : -ENOTSUP;
}

int coop_port_table_read(pid_t pid, uint16_t port, struct coop_port_table *ret)
{
	ret->count = 0;
	if (ask_kernel(pid, port, ret) == 0)
		return 0;
	/* It may not be asked there: another's network, for a keeper that is not root. Or it does
	 * not know the question. */
	ret->count = 0;
	return read_tables(pid, port, ret);
}
