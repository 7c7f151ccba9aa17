#include "base/io/log_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/log.h"

#define STACK_BYTES (64u << 10)
#define PART_BYTES 4096u

int coop_log_relay_open(struct coop_log_relay *relay)
{
	int ends[2];

	*relay = (struct coop_log_relay){.read_end = -1, .write_end = -1};
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	relay->read_end = ends[0];
	relay->write_end = ends[1];
	/* The reader waits for lines, the writer waits for nobody. */
	if (fcntl(relay->write_end, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

void coop_log_relay_log(struct coop_log_relay *relay)
{
	COOP_AUTO_FD int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	close_end(&relay->read_end);
	if (before >= 0 && dup2(relay->write_end, STDERR_FILENO) >= 0)
		coop_log_spare(COOP_TAKE_FD(before));
	close_end(&relay->write_end);
}

static void write_all(const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(STDERR_FILENO, bytes, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* what stderr does not take is lost: nobody can be told */
		bytes += n;
		size -= (size_t)n;
	}
}

static void *carry(void *user)
{
	const struct coop_log_relay *relay = user;
	char part[PART_BYTES];
	ssize_t n;

	while ((n = read(relay->read_end, part, sizeof part)) > 0 || (n < 0 && errno == EINTR)) {
		if (n > 0)
			write_all(part, (size_t)n);
	}
	return NULL;
}

void coop_log_relay_carry(struct coop_log_relay *relay)
{
	pthread_attr_t how;
	sigset_t all, before;

	close_end(&relay->write_end);
	if (pthread_attr_init(&how) != 0)
		return;
	(void)pthread_attr_setstacksize(&how, STACK_BYTES);
	/* Signals are not the thread's; SIGPIPE, too, just makes its write fail. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	relay->carried = pthread_create(&relay->thread, &how, carry, relay) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&how);
}

void coop_log_relay_end(struct coop_log_relay *relay)
{
	struct timespec deadline;

	if (relay->read_end < 0)
		return;
	if (!relay->carried) {
		(void)fcntl(relay->read_end, F_SETFL, O_NONBLOCK);
		(void)carry(relay);
		return;
	}
	(void)clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += COOP_LOG_RELAY_END_MS / 1000;
	(void)pthread_timedjoin_np(relay->thread, NULL, &deadline);
}
