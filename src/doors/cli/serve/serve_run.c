#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io/log.h"
#include "doors/cli/cli.h"
#include "doors/cli/serve/serve.h"
#include "doors/cli/serve/serve_child.h"
#include "doors/cli/serve/serve_gateway.h"
#include "doors/cli/serve/serve_keeper.h"
#include "doors/cli/serve/serve_token.h"

#define SECOND UINT64_C(1000000000)
/* A gateway drains for 5 s at most; then it is killed. */
#define DRAIN (6 * SECOND)
#define READY_PATIENCE (30 * SECOND)
#define POLLS_MAX \
	(1 + CLI_SERVE_KEEPER_POLLS + CLI_SERVE_WORKERS_MAX * (size_t)CLI_SERVE_WORKER_POLLS)

int cli_serve_signals(void)
{
	/* A gateway that stops, or goes on, is told of by SIGCHLD, unless that was ignored. */
	static const int numbers[] = {SIGTERM, SIGINT, SIGQUIT, SIGCHLD};
	struct sigaction hangup;
	sigset_t set;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)sigaddset(&set, numbers[i]);
	/* nohup(1): a signal that is blocked comes also if it is ignored. */
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	const int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int start_worker(struct cli_serve *serve, struct cli_serve_worker *worker,
			struct coop_error *error)
{
	const int r = cli_serve_worker_start(worker, &serve->gateway);
	if (r < 0)
		cli_error(error, "unavailable", "cannot start %s: %s", serve->gateway.program,
			  strerror(-r));
	return r;
}

/* After each connection to a keeper: a new one may not know the token. */
static int greet_keeper(struct cli_serve *serve, struct coop_error *error)
{
	serve->keeper.fresh = false;
	int r = cli_serve_token(serve->cli, serve->keeper.state_dir, serve->token_file,
				sizeof(serve->token_file), error);
	if (r == 0 && !serve->prepared)
		r = serve->prepare(serve, error);
	for (size_t i = 0; r == 0 && !serve->prepared && i < serve->worker_count; i++)
		r = start_worker(serve, &serve->workers[i], error);
	if (r == 0 && !serve->prepared)
		serve->ready_by = coop_clock_now() + READY_PATIENCE;
	serve->prepared = serve->prepared || r == 0;
	return r;
}

/* What goes wrong before it serves ends it; later it is only said, and tried again. */
static int check(const struct cli_serve *serve, int status, const struct coop_error *error)
{
	if (status >= 0 || (!serve->told && !serve->closing))
		return status;
	coop_log(COOP_LOG_ERROR, "%s", error->message);
	return 0;
}

static int step_keeper(struct cli_serve *serve, uint64_t now, struct coop_error *error)
{
	int r = check(serve, cli_serve_keeper_step(&serve->keeper, now, error), error);
	if (r == 0 && serve->keeper.fresh)
		r = check(serve, greet_keeper(serve, error), error);
	return r;
}

static int worker_ended(struct cli_serve *serve, struct cli_serve_worker *worker, int status,
			uint64_t now, struct coop_error *error)
{
	char text[CLI_SERVE_END_TEXT];
	cli_serve_child_end_text(status, text);
	if (serve->closing)
		return 0;
	if (!serve->told) {
		cli_error(error, "unavailable", "the gateway could not start (%s)", text);
		return -ECANCELED;
	}
	worker->again_at = cli_serve_deaths_add(&worker->deaths, now);
	worker->restarts++;
	coop_log(COOP_LOG_WARN, "a gateway ended with %s: it is started again%s", text,
		 worker->again_at > now ? " in a second" : "");
	return 0;
}

static int step_worker(struct cli_serve *serve, struct cli_serve_worker *worker, uint64_t now,
		       struct coop_error *error)
{
	int status, r = 0;
	cli_serve_worker_check(worker, now);
	if (cli_serve_worker_step(worker, &serve->keeper, &status))
		r = worker_ended(serve, worker, status, now, error);
	if (r == 0 && !serve->closing && worker->again_at && now >= worker->again_at) {
		worker->again_at = 0;
		r = check(serve, start_worker(serve, worker, error), error);
		if (!worker->child.pid)
			worker->again_at = now + SECOND;
		else
			coop_log(COOP_LOG_INFO, "gateway pid=%d started", (int)worker->child.pid);
	}
	return r;
}

static bool all_ready(const struct cli_serve *serve)
{
	for (size_t i = 0; i < serve->worker_count; i++)
		if (!serve->workers[i].ready)
			return false;
	return serve->prepared;
}

/* Says once that it serves. */
static int tell(struct cli_serve *serve, uint64_t now, struct coop_error *error)
{
	if (serve->told || serve->closing)
		return 0;
	if (all_ready(serve)) {
		serve->told = true;
		cli_serve_tell(serve);
	} else if (serve->prepared && now >= serve->ready_by) {
		cli_error(error, "unavailable", "the gateway does not get ready");
		return -ETIMEDOUT;
	}
	return 0;
}

/* The first signal lets gateways finish what they are at; a second one does not. */
static void take_signals(struct cli_serve *serve, int signals, uint64_t now)
{
	struct signalfd_siginfo info;
	while (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue; /* it has woken us up: each step looks at the children */
		for (size_t i = 0; i < serve->worker_count; i++)
			cli_serve_worker_signal(&serve->workers[i],
						serve->closing ? SIGKILL : SIGTERM);
		if (!serve->closing)
			serve->deadline = now + DRAIN;
		serve->closing = true;
	}
}

static bool is_over(const struct cli_serve *serve, uint64_t now)
{
	bool alive = false;
	for (size_t i = 0; i < serve->worker_count; i++)
		alive = alive || serve->workers[i].child.pid;
	return serve->closing && (!alive || now >= serve->deadline);
}

static void earlier(uint64_t *time, uint64_t other)
{
	if (other && (!*time || other < *time))
		*time = other;
}

/* Waits until something happens or is due. */
static void wait_for_event(const struct cli_serve *serve, int signals)
{
	struct pollfd fds[POLLS_MAX] = {{.fd = signals, .events = POLLIN}};
	size_t count = 1;
	uint64_t due = serve->closing ? serve->deadline : serve->told ? 0 : serve->ready_by;
	count += cli_serve_keeper_poll(&serve->keeper, fds + count);
	earlier(&due, cli_serve_keeper_due(&serve->keeper));
	for (size_t i = 0; i < serve->worker_count; i++) {
		count += cli_serve_worker_poll(&serve->workers[i], fds + count);
		if (!serve->closing)
			earlier(&due, serve->workers[i].again_at);
		earlier(&due, serve->workers[i].stands_until);
	}
	const uint64_t now = coop_clock_now();
	const uint64_t left = due > now ? (due - now + 999999u) / 1000000u : 0;
	(void)poll(fds, (nfds_t)count, due ? (int)left : -1);
}

static int step(struct cli_serve *serve, int signals, struct coop_error *error)
{
	const uint64_t now = coop_clock_now();
	take_signals(serve, signals, now);
	/* Gateways that drain still need the keeper, but a new one is not started for them. */
	serve->keeper.closing = serve->closing;
	int r = step_keeper(serve, now, error);
	for (size_t i = 0; r == 0 && i < serve->worker_count; i++)
		r = step_worker(serve, &serve->workers[i], now, error);
	return r == 0 ? tell(serve, now, error) : r;
}

int cli_serve_run(struct cli_serve *serve, struct coop_error *error)
{
	cli_serve_keeper_init(&serve->keeper, serve->cli);
	for (size_t i = 0; i < serve->worker_count; i++)
		cli_serve_worker_init(&serve->workers[i]);
	COOP_AUTO_FD int signals = cli_serve_signals();
	if (signals < 0) {
		cli_error(error, "unavailable", "cannot wait for signals: %s", strerror(-signals));
		return signals;
	}
	int r = cli_serve_keeper_begin(&serve->keeper, error);
	if (r == 0 && serve->keeper.fresh)
		r = greet_keeper(serve, error);
	while (r == 0 && !is_over(serve, coop_clock_now())) {
		wait_for_event(serve, signals);
		r = step(serve, signals, error);
	}
	for (size_t i = 0; i < serve->worker_count; i++)
		cli_serve_worker_end(&serve->workers[i]);
	cli_serve_keeper_end(&serve->keeper);
	return r;
}
