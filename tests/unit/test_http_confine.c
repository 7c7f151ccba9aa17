/* The gateway's confinement, in children: what it needs works, what it must not do fails or kills
 * it. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "doors/http/main/confine.h"
#include "doors/http/main/confine_calls.h"

/* In a child: leaves the function if something is not as expected. */
#define EXPECT(condition)                                                           \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, \
				strerror(errno));                                   \
			return 1;                                                   \
		}                                                                   \
	} while (0)

/* Made before, as the gateway's are. */
static int listener, client;

static int open_sockets(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 5) < 0 ||
	       getsockname(listener, (struct sockaddr *)&address, &size) < 0 ||
	       connect(client, (struct sockaddr *)&address, size) < 0;
}

static int confine(void)
{
	char text[COOP_CONFINE_TEXT];
	EXPECT(coop_confine(text, sizeof text) == 0);
	EXPECT(strstr(text, "seccomp"));
	return 0;
}

/* What a confined child's deed came to: its exit code, or minus the signal that killed it. */
static int in_child(bool user, int (*deed)(void))
{
	int status;
	assert_int_equal(open_sockets(), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (user && (setgid(65533) < 0 || setuid(65533) < 0))
			_exit(98);
		_exit(confine() ? 99 : deed());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(listener);
	(void)close(client);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* As whoever runs the tests and, where that is root, as somebody else too. */
static void assert_deed(int expected, int (*deed)(void))
{
	assert_int_equal(in_child(false, deed), expected);
	if (geteuid() == 0)
		assert_int_equal(in_child(true, deed), expected);
}

static int serve_a_client(void)
{
	char byte = 0;
	struct epoll_event event = {.events = EPOLLIN};
	int loop = epoll_create1(EPOLL_CLOEXEC);
	EXPECT(loop >= 0 && epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event) == 0);
	EXPECT(epoll_wait(loop, &event, 1, 5000) == 1);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	EXPECT(fd >= 0);
	EXPECT(send(client, "x", 1, MSG_NOSIGNAL) == 1 && recv(fd, &byte, 1, 0) == 1);
	EXPECT(close(fd) == 0 && close(loop) == 0);
	return 0;
}

static int use_libraries(void)
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	json_t *value = json_pack("{s:i}", "a", 1);
	EXPECT(value);
	json_decref(value);
	EXPECT(EVP_Digest("x", 1, bytes, NULL, EVP_sha256(), NULL) == 1);
	EXPECT(RAND_bytes(bytes, sizeof bytes) == 1);
	char *much = malloc(64u << 20);
	EXPECT(much);
	memset(much, 1, 64u << 20);
	free(much);
	return 0;
}

static void *do_nothing(void *unused)
{
	return unused;
}

/* None of these is worth a death: a library that tries goes on without. */
static int get_nothing(void)
{
	pthread_t thread;
	EXPECT(open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0);
	EXPECT(open("/", O_RDONLY | O_CLOEXEC) < 0);
	EXPECT(socket(AF_UNIX, SOCK_STREAM, 0) < 0);
	EXPECT(socket(AF_INET, SOCK_STREAM, 0) < 0);
	EXPECT(kill(getppid(), 0) < 0);
	EXPECT(fork() < 0);
	EXPECT(pthread_create(&thread, NULL, do_nothing, NULL) != 0);
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	       MAP_FAILED);
	EXPECT(memfd_create("x", 0) < 0);
	EXPECT(unlink("/x") < 0 && mkdir("/x", 0700) < 0);
	return 0;
}

static int execute(void)
{
	return execl("/bin/true", "true", NULL);
}

static int connect_somewhere(void)
{
	const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/x"};
	return connect(client, (const struct sockaddr *)&address, sizeof address);
}

static int bind_somewhere(void)
{
	const struct sockaddr_in address = {.sin_family = AF_INET};
	return bind(client, (const struct sockaddr *)&address, sizeof address);
}

static int trace_parent(void)
{
	return (int)ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static int make_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static void test_it_can_serve(void **state)
{
	(void)state;
	assert_deed(0, serve_a_client);
	assert_deed(0, use_libraries);
}

static void test_it_gets_nothing_else(void **state)
{
	(void)state;
	if (COOP_CONFINE_SANITIZED)
		return;
	assert_deed(0, get_nothing);
}

static void test_what_only_an_intruder_does_kills_it(void **state)
{
	int (*const deeds[])(void) = {connect_somewhere, bind_somewhere, make_namespace, execute,
				      trace_parent};
	const size_t count = sizeof deeds / sizeof *deeds - (COOP_CONFINE_SANITIZED ? 2 : 0);
	(void)state;
	for (size_t i = 0; i < count; i++)
		assert_deed(-SIGSYS, deeds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_can_serve),
		cmocka_unit_test(test_it_gets_nothing_else),
		cmocka_unit_test(test_what_only_an_intruder_does_kills_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
