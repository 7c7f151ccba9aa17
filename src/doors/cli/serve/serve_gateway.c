#include "doors/cli/serve/serve_gateway.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/fdpass.h"
#include "base/io/log.h"
#include "client/child.h"

#define FDS_MAX (CLI_SERVE_LISTENERS_MAX + 3)
#define NUMBER_MAX 16
/* Every option is two words; besides lists there are eleven at most. */
#define WORDS_MAX                                                           \
	(2 * (FDS_MAX + CLI_SERVE_LISTENERS_MAX + 2 * CLI_SERVE_NAMES_MAX + \
	      CLI_SERVE_PROXIES_MAX + 11))
#define END_PATIENCE_MS 2000
#define SECOND UINT64_C(1000000000)

/* Reports of sanitizers go where these say. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif

/* A command line in the making: descriptors get their numbers in the order in which they are
 * added. */
struct line {
	char *words[WORDS_MAX + 1];
	size_t word_count;
	int fds[FDS_MAX];
	char numbers[FDS_MAX][NUMBER_MAX];
	size_t fd_count;
	char ping[24], restarts[24];
	char hosts[CLI_SERVE_LISTENERS_MAX][INET6_ADDRSTRLEN + 2];
};

static void add(struct line *line, const char *option, const char *value)
{
	/* execve() takes words that it does not change as if it did. */
	line->words[line->word_count++] = (char *)(uintptr_t)option;
	if (value)
		line->words[line->word_count++] = (char *)(uintptr_t)value;
}

static void add_fd(struct line *line, const char *option, int fd, const char *more)
{
	const size_t i = line->fd_count++;
	line->fds[i] = fd;
	(void)snprintf(line->numbers[i], NUMBER_MAX, "%d%s", COOP_CHILD_FD + (int)i, more);
	add(line, option, line->numbers[i]);
}

static void add_text(struct line *line, const char *option, const char *value)
{
	if (value)
		add(line, option, value);
}

static void add_list(struct line *line, const char *option, const struct cli_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		add(line, option, list->items[i]);
}

/* Clients call a host by its address, too. One that stands for all of them is none that could be
 * called. */
static void add_address(struct line *line, const struct cli_serve_listener *listener, size_t i)
{
	const char *colon = strrchr(listener->address, ':');
	if (!listener->tcp || listener->loopback || listener->wildcard || !colon)
		return;
	(void)snprintf(line->hosts[i], sizeof(line->hosts[i]), "%.*s",
		       (int)(colon - listener->address), listener->address);
	add(line, "--name", line->hosts[i]);
}

static void make_line(struct line *line, const struct cli_serve_gateway *gateway, uint64_t restarts,
		      int broker, int cert, int key)
{
	*line = (struct line){.word_count = 0};
	add(line, "coop-gateway", NULL);
	add_fd(line, "--broker", broker, "");
	for (size_t i = 0; i < gateway->listeners->count; i++) {
		const struct cli_serve_listener *listener = &gateway->listeners->list[i];
		add_fd(line, "--listen", listener->fd, listener->tcp && cert >= 0 ? ",tls" : "");
		add_address(line, listener, i);
	}
	if (cert >= 0) {
		add_fd(line, "--tls-cert", cert, "");
		add_fd(line, "--tls-key", key, "");
	}
	add_list(line, "--name", gateway->names);
	add_list(line, "--origin", gateway->origins);
	add_list(line, "--trust-proxy", gateway->proxies);
	add_text(line, "--public-url", gateway->public_url);
	(void)snprintf(line->ping, sizeof(line->ping), "%" PRIu64, gateway->ping_ms);
	add(line, "--ping-ms", line->ping);
	(void)snprintf(line->restarts, sizeof(line->restarts), "%" PRIu64, restarts);
	add(line, "--restarts", line->restarts);
	if (gateway->control_plane)
		add(line, "--control-plane", NULL);
	add_text(line, "--profile", gateway->profile);
	add_text(line, "--workspace", gateway->workspace);
	if (gateway->no_workspace)
		add(line, "--no-workspace", NULL);
	if (gateway->bound)
		add(line, "--bound", NULL);
	add_text(line, "--url", gateway->url);
}

/* Nothing of our own environment but what is harmless. */
static void make_env(char *ret_env[], char *texts[], size_t count)
{
	static const char *const names[] = {
		"PATH",
		"LANG",
#ifdef SANITIZED
		"ASAN_OPTIONS",
		"UBSAN_OPTIONS",
#endif
	};
	size_t used = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && i < count; i++) {
		const char *value = getenv(names[i]);
		if (value && asprintf(&texts[used], "%s=%s", names[i], value) > 0) {
			ret_env[used] = texts[used];
			used++;
		}
	}
	ret_env[used] = NULL;
}

/* A file of its own for each gateway: a shared one would have one position for all of them. -1:
 * there are no bytes. */
static int make_file(const struct cli_serve_bytes *bytes, int *ret_fd)
{
	*ret_fd = -1;
	if (!bytes->data)
		return 0;
	COOP_AUTO_FD int fd = memfd_create("coop-gateway", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, bytes->data, bytes->size) != (ssize_t)bytes->size ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return -EIO;
	*ret_fd = COOP_TAKE_FD(fd);
	return 0;
}

void cli_serve_worker_init(struct cli_serve_worker *worker)
{
	*worker = (struct cli_serve_worker){.child.pidfd = -1, .broker = -1, .answer_fd = -1};
}

int cli_serve_worker_start(struct cli_serve_worker *worker, const struct cli_serve_gateway *gateway)
{
	int ends[2] = {-1, -1};
	char *texts[4] = {NULL}, *env[5];
	struct line line;
	COOP_AUTO_FD int cert = -1;
	COOP_AUTO_FD int key = -1;
	int r = make_file(&gateway->cert, &cert);
	if (r == 0)
		r = make_file(&gateway->key, &key);
	if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		r = -errno;
	if (r < 0)
		return r;
	COOP_AUTO_FD int ours = ends[0];
	COOP_AUTO_FD int theirs = ends[1];
	make_line(&line, gateway, worker->restarts, theirs, cert, key);
	make_env(env, texts, 4);
	r = cli_serve_child_start(&(struct cli_serve_program){.path = gateway->program,
							      .argv = line.words,
							      .env = env,
							      .fds = line.fds,
							      .fd_count = line.fd_count,
							      .folder = "/",
							      .many_files = true},
				  &worker->child);
	for (size_t i = 0; i < 4; i++)
		free(texts[i]);
	if (r < 0)
		return r;
	worker->broker = COOP_TAKE_FD(ours);
	worker->ready = false;
	worker->again_at = worker->stands_until = 0;
	return 0;
}

size_t cli_serve_worker_poll(const struct cli_serve_worker *worker, struct pollfd *ret)
{
	size_t count = 0;
	if (worker->broker >= 0)
		ret[count++] = (struct pollfd){.fd = worker->broker,
					       .events = worker->answering ? POLLOUT : POLLIN};
	if (worker->child.pid)
		ret[count++] = (struct pollfd){.fd = worker->child.pidfd, .events = POLLIN};
	return count;
}

static void drop_answer(struct cli_serve_worker *worker)
{
	if (worker->answer_fd >= 0)
		(void)close(COOP_TAKE_FD(worker->answer_fd));
	worker->answering = false;
}

static void close_broker(struct cli_serve_worker *worker)
{
	drop_answer(worker);
	if (worker->broker >= 0)
		(void)close(COOP_TAKE_FD(worker->broker));
}

/* Sends the answer that waits. -EAGAIN: it goes on waiting. */
static int send_answer(struct cli_serve_worker *worker)
{
	const int r = coop_fdpass_send(worker->broker, &worker->answer, 1, &worker->answer_fd,
				       worker->answer_fd >= 0 ? 1 : 0);
	if (r != -EAGAIN)
		drop_answer(worker);
	return r;
}

/* A message of the gateway: "keeper" or "ready WORDS". Others mean nothing, and there is nothing to
 * be said to them. */
static void take_message(struct cli_serve_worker *worker, const struct cli_serve_keeper *keeper,
			 const char *text)
{
	static const char ready[] = "ready";
	if (strcmp(text, "keeper") == 0) {
		const int fd = cli_serve_keeper_connect(keeper);
		worker->answering = true;
		worker->answer_fd = fd >= 0 ? fd : -1;
		worker->answer = fd >= 0 ? 0 : (unsigned char)-fd;
	} else if (strncmp(text, ready, strlen(ready)) == 0) {
		const char *words = text + strlen(ready);
		worker->ready = true;
		(void)snprintf(worker->held, sizeof(worker->held), "%s",
			       words + strspn(words, " "));
	}
}

static void serve_broker(struct cli_serve_worker *worker, const struct cli_serve_keeper *keeper)
{
	char text[256];
	while (worker->broker >= 0) {
		if (worker->answering) {
			const int r = send_answer(worker);
			if (r == -EAGAIN)
				return;
			if (r < 0)
				break;
		}
		const ssize_t n = recv(worker->broker, text, sizeof(text) - 1, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			break;
		text[n] = '\0';
		take_message(worker, keeper, text);
	}
	close_broker(worker);
}

bool cli_serve_worker_step(struct cli_serve_worker *worker, const struct cli_serve_keeper *keeper,
			   int *ret_status)
{
	serve_broker(worker, keeper);
	if (!worker->child.pid || coop_child_wait(&worker->child, 0, ret_status) < 0)
		return false;
	close_broker(worker);
	return true;
}

void cli_serve_worker_signal(const struct cli_serve_worker *worker, int number)
{
	if (worker->child.pid)
		(void)pidfd_send_signal(worker->child.pidfd, number, NULL, 0);
}

/* The kernel tells its parent of each stop and each continuation once. */
static void follow_stops(struct cli_serve_worker *worker, uint64_t now)
{
	siginfo_t info = {.si_pid = 0};
	while (waitid(P_PIDFD, (id_t)worker->child.pidfd, &info, WSTOPPED | WCONTINUED | WNOHANG) ==
		       0 &&
	       info.si_pid) {
		worker->stands_until =
			info.si_code == CLD_CONTINUED ? 0 : now + CLI_SERVE_STANDS_MAX_S * SECOND;
		info.si_pid = 0;
	}
}

void cli_serve_worker_check(struct cli_serve_worker *worker, uint64_t now)
{
	if (!worker->child.pid)
		return;
	follow_stops(worker, now);
	if (!worker->stands_until || now < worker->stands_until)
		return;
	worker->stands_until = 0;
	coop_log(COOP_LOG_WARN, "a gateway stands still since %d s: it is ended pid=%d",
		 CLI_SERVE_STANDS_MAX_S, (int)worker->child.pid);
	cli_serve_worker_signal(worker, SIGKILL);
}

void cli_serve_worker_end(struct cli_serve_worker *worker)
{
	cli_serve_worker_signal(worker, SIGKILL);
	coop_child_end(&worker->child, END_PATIENCE_MS);
	close_broker(worker);
}
