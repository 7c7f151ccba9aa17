/* Who listens: the kernel's answer and its tables tell the same. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Both ways are looked at, though only one of them is taken where the other works. */
#include "keeper/tree/port_table.c" // NOLINT(bugprone-suspicious-include)

/* A socket that listens on the address, on a port that is free or (port > 0) on that one; its
 * inode. */
static int serve(const char *address, uint16_t *port, uint64_t *ret_inode)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(*port)};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(*port)};
	bool is_six = strchr(address, ':') != NULL;
	struct sockaddr *place = is_six ? (void *)&six : (void *)&four;
	socklen_t size = is_six ? sizeof six : sizeof four;
	char path[64], name[64] = "";
	unsigned long long inode;
	int fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0)
		return -1;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
	if (is_six)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	(void)inet_pton(is_six ? AF_INET6 : AF_INET, address,
			is_six ? (void *)&six.sin6_addr : (void *)&four.sin_addr);
	if (bind(fd, place, size) < 0 || listen(fd, 4) < 0) {
		(void)close(fd);
		return -1;
	}
	assert_int_equal(getsockname(fd, place, &size), 0);
	*port = ntohs(is_six ? six.sin6_port : four.sin_port);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	assert_true(readlink(path, name, sizeof name - 1) > 0);
	assert_int_equal(sscanf(name, "socket:[%llu]", &inode), 1);
	*ret_inode = inode;
	return fd;
}

static void assert_has(const struct coop_port_table *table, uint64_t inode, const char *address)
{
	for (size_t i = 0; i < table->count; i++) {
		if (table->rows[i].inode != inode)
			continue;
		assert_string_equal(table->rows[i].address, address);
		return;
	}
	fail_msg("%s is not there among %zu", address, table->count);
}

typedef int (*way)(pid_t pid, uint16_t port, struct coop_port_table *ret);

static const way ways[] = {ask_kernel, read_tables, coop_port_table_read};

static void test_both_ways_tell_the_same(void **state)
{
	static const char *const addresses[] = {"127.0.0.1", "0.0.0.0", "127.1.2.3", "::1", "::"};
	int fds[5];
	uint64_t inodes[5];
	uint16_t port = 0;
	static struct coop_port_table table;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		fds[i] = serve(addresses[i], &port, &inodes[i]);
	assert_true(fds[0] >= 0);
	for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
		table.count = 0;
		assert_int_equal(ways[w](0, port, &table), 0);
		for (size_t i = 0; i < 5; i++) {
			if (fds[i] >= 0)
				assert_has(&table, inodes[i], addresses[i]);
		}
		table.count = 0;
		assert_int_equal(ways[w](0, (uint16_t)(port ^ 1), &table), 0);
		for (size_t i = 0; i < table.count; i++)
			assert_true(table.rows[i].inode != inodes[0]);
	}
	for (size_t i = 0; i < 5; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
	table.count = 0;
	assert_int_equal(coop_port_table_read(0, port, &table), 0);
	assert_int_equal(table.count, 0);
}

static void test_many_share_a_port(void **state)
{
	static struct coop_port_table table;
	int fds[COOP_PORT_TABLE_MAX + 8];
	uint64_t inode;
	uint16_t port = 0;

	(void)state;
	for (size_t i = 0; i < COOP_PORT_TABLE_MAX + 8; i++) {
		fds[i] = serve("127.0.0.1", &port, &inode);
		assert_true(fds[i] >= 0);
	}
	for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
		table.count = 0;
		assert_int_equal(ways[w](0, port, &table), 0);
		assert_int_equal(table.count, COOP_PORT_TABLE_MAX);
	}
	for (size_t i = 0; i < COOP_PORT_TABLE_MAX + 8; i++)
		(void)close(fds[i]);
}

static void test_another_process(void **state)
{
	static struct coop_port_table table;
	uint64_t inode;
	uint16_t port = 0;
	int fd = serve("127.0.0.1", &port, &inode);

	(void)state;
	assert_true(fd >= 0);
	/* By its number: the network is the same, by whichever way it is reached. */
	assert_int_equal(coop_port_table_read(getpid(), port, &table), 0);
	assert_has(&table, inode, "127.0.0.1");
	/* One that is not there has none. */
	assert_int_equal(coop_port_table_read(INT32_MAX, port, &table), 0);
	assert_int_equal(table.count, 0);
	(void)close(fd);
}

static void test_a_connection_listens_to_nothing(void **state)
{
	static struct coop_port_table table;
	struct sockaddr_in place = {.sin_family = AF_INET};
	socklen_t size = sizeof place;
	uint64_t inode;
	uint16_t port = 0;
	int fd = serve("127.0.0.1", &port, &inode);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	place.sin_port = htons(port);
	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(client, (struct sockaddr *)&place, size), 0);
	assert_int_equal(getsockname(client, (struct sockaddr *)&place, &size), 0);
	int server = accept(fd, NULL, NULL);
	assert_true(server >= 0);
	(void)close(fd);
	for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
		table.count = 0;
		assert_int_equal(ways[w](0, port, &table), 0);
		assert_int_equal(table.count, 0);
		assert_int_equal(ways[w](0, ntohs(place.sin_port), &table), 0);
		assert_int_equal(table.count, 0);
	}
	(void)close(server);
	(void)close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways_tell_the_same),
		cmocka_unit_test(test_many_share_a_port),
		cmocka_unit_test(test_another_process),
		cmocka_unit_test(test_a_connection_listens_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
