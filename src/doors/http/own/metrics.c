#include "doors/http/own/metrics.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/buf.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/net.h"
#include "doors/http/own/metrics_text.h"
#include "doors/http/own/ops.h"
#include "doors/http/runtime/ask.h"
#include "doors/http/users/user.h"

#define TYPE "text/plain; version=0.0.4; charset=utf-8"
/* So many closed numbers in a row, and there are no open ones above: the kernel gives the
 * lowest. */
#define CLOSED_RUN 1024

static double number_at(const json_t *object, const char *name, const char *inner)
{
	const json_t *value = json_object_get(object, name);

	return json_number_value(inner ? json_object_get(value, inner) : value);
}

/* Seconds since 1970 of a moment in UTC as the keeper writes it; 0 if it is none. */
static double seconds_of(const char *moment)
{
	struct tm tm = {0};
	const char *rest = moment ? strptime(moment, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

	if (!rest)
		return 0;
	return (double)timegm(&tm) + (*rest == '.' ? strtod(rest, NULL) : 0);
}

/* Each protection is in one of three states: the one that it is in is 1. */
static void write_protections(struct coop_metrics_text *x, const json_t *protections)
{
	static const char *const states[] = {"enforced", "partial", "none"};
	const char *name = "coop_sandbox_protection", *key;
	json_t *value;

	coop_metrics_head(x, name, "gauge",
			  "How far a protection of the sandbox holds on this host.");
	json_object_foreach((json_t *)(uintptr_t)protections, key, value)
	{
		const char *state = json_string_value(value);
		for (size_t i = 0; state && i < sizeof states / sizeof states[0]; i++)
			coop_metrics_sample2(x, name, "protection", key, "state", states[i],
					     !strcmp(state, states[i]));
	}
}

static void write_processes(struct coop_metrics_text *x, const json_t *m)
{
	coop_metrics_members(x, "coop_processes", "gauge", "Processes that the keeper has now.",
			     "state", json_object_get(m, "processes"));
	coop_metrics_counter(x, "coop_process_starts_total", "Processes started.",
			     number_at(m, "starts", NULL));
	coop_metrics_counter(x, "coop_process_start_failures_total",
			     "Starts that were refused or failed.",
			     number_at(m, "start_failures", NULL));
	coop_metrics_members(x, "coop_process_ends_total", "counter", "Processes ended.", "cause",
			     json_object_get(m, "ends"));
	coop_metrics_histogram(x, "coop_spawn_duration_seconds",
			       "From the request to the execution of the program.",
			       json_object_get(m, "spawn_seconds"));
	coop_metrics_histogram(x, "coop_exit_report_duration_seconds",
			       "From the end of a process to its being told.",
			       json_object_get(m, "exit_seconds"));
}

static void write_keeper(struct coop_metrics_text *x, const json_t *m)
{
	coop_metrics_gauge(x, "coop_keeper_start_time_seconds",
			   "When the keeper started, since 1970.",
			   seconds_of(json_string_value(json_object_get(m, "started_at"))));
	write_processes(x, m);
	coop_metrics_counter(x, "coop_output_captured_bytes_total", "Output read from processes.",
			     number_at(m, "bytes", "captured"));
	coop_metrics_counter(x, "coop_output_dropped_bytes_total",
			     "Output that left the buffers unread.",
			     number_at(m, "bytes", "dropped"));
	coop_metrics_counter(x, "coop_output_sent_bytes_total", "Output given to clients.",
			     number_at(m, "bytes", "sent"));
	coop_metrics_gauge(x, "coop_keeper_subscribers",
			   "Requests that follow output or events of the keeper.",
			   number_at(m, "subscribers", NULL));
	coop_metrics_counter(x, "coop_keeper_gaps_total", "Gaps told to those.",
			     number_at(m, "gaps", NULL));
	write_protections(x, json_object_get(m, "protections"));
	coop_metrics_gauge(x, "coop_keeper_resident_memory_bytes", "Memory of the keeper itself.",
			   number_at(m, "memory", "rss_bytes"));
	coop_metrics_gauge(x, "coop_keeper_buffer_bytes", "Of that, buffers for output.",
			   number_at(m, "memory", "buffer_bytes"));
	coop_metrics_gauge(x, "coop_keeper_open_fds", "File descriptors of the keeper.",
			   number_at(m, "fds", "open"));
	coop_metrics_gauge(x, "coop_keeper_max_fds", "How many it may have.",
			   number_at(m, "fds", "limit"));
	coop_metrics_gauge(x, "coop_keeper_connections", "Connections to the keeper.",
			   number_at(m, "connections", NULL));
	coop_metrics_gauge(x, "coop_keeper_waiting_connections",
			   "Of those, connections that have not logged in.",
			   number_at(m, "connections_waiting", NULL));
	coop_metrics_counter(x, "coop_keeper_refused_connections_total",
			     "Connections and logins that there was no room for.",
			     number_at(m, "connections_refused", NULL));
	coop_metrics_counter(x, "coop_keeper_cut_connections_total",
			     "Connections that were ended for want of a login.",
			     number_at(m, "connections_cut", NULL));
}

static void write_counts(struct coop_metrics_text *x, const struct coop_http_counts *counts)
{
	const struct {
		const char *name, *help;
		double number;
		bool gauge;
	} rows[] = {
		{"coop_gateway_requests_total", "Requests.", (double)counts->requests, false},
		{"coop_gateway_refusals_total", "Requests that were refused.",
		 (double)counts->refused, false},
		{"coop_gateway_upgrades_total", "WebSockets that were opened.",
		 (double)counts->upgrades, false},
		{"coop_gateway_sent_bytes_total", "Bytes sent to clients, of all kinds.",
		 (double)counts->bytes_sent, false},
		{"coop_gateway_output_bytes_total",
		 "Output of processes sent, before its encoding, for each subscriber.",
		 (double)counts->output_bytes, false},
		{"coop_gateway_gaps_total", "Gaps told to subscribers.", (double)counts->gaps,
		 false},
		{"coop_gateway_auth_failures_total", "Tokens that were not valid.",
		 (double)counts->auth_failures, false},
		{"coop_gateway_crowded_out_total",
		 "Connections without a token that had to make room for others.",
		 (double)counts->crowded_out, false},
		{"coop_gateway_connections", "Connections of clients.", counts->connections, true},
		{"coop_gateway_websockets", "Of those, WebSockets.", counts->websockets, true},
		{"coop_gateway_subscribers", "Readers of output or events.", counts->subscribers,
		 true},
		{"coop_gateway_feeds", "Processes whose output is being read.", counts->feeds,
		 true},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].gauge)
			coop_metrics_gauge(x, rows[i].name, rows[i].help, rows[i].number);
		else
			coop_metrics_counter(x, rows[i].name, rows[i].help, rows[i].number);
	}
}

/* The gateway cannot look into /proc: it asks for each number in turn. */
static unsigned open_fds(int limit)
{
	unsigned count = 0;

	for (int fd = 0, closed = 0; fd < limit && closed < CLOSED_RUN; fd++) {
		bool open = fcntl(fd, F_GETFD) >= 0;
		count += open;
		closed = open ? 0 : closed + 1;
	}
	return count;
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void write_resources(struct coop_metrics_text *x)
{
	struct rusage usage = {0};
	struct rlimit limit = {.rlim_cur = 1024};
	struct mallinfo2 heap = mallinfo2();

	(void)getrusage(RUSAGE_SELF, &usage);
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	coop_metrics_counter(x, "coop_gateway_cpu_seconds_total", "Processor time of the gateway.",
			     seconds(usage.ru_utime) + seconds(usage.ru_stime));
	coop_metrics_gauge(x, "coop_gateway_max_resident_memory_bytes",
			   "The most memory that the gateway had at a time.",
			   (double)usage.ru_maxrss * 1024);
	coop_metrics_gauge(x, "coop_gateway_heap_bytes", "Memory that the gateway has in use.",
			   (double)heap.uordblks + (double)heap.hblkhd);
	int most = limit.rlim_cur > 1u << 20 ? 1 << 20 : (int)limit.rlim_cur;
	coop_metrics_gauge(x, "coop_gateway_open_fds", "File descriptors of the gateway.",
			   open_fds(most));
	coop_metrics_gauge(x, "coop_gateway_max_fds", "How many it may have.",
			   (double)limit.rlim_cur);
}

/* `metrics` is the keeper's object, or NULL if it did not answer. */
static void answer(struct coop_http_exchange *exchange, const json_t *metrics)
{
	struct coop_buf text = {0};
	struct coop_metrics_text x = {.out = &text};

	coop_metrics_gauge(&x, "coop_keeper_up", "Whether the keeper answers.", metrics != NULL);
	if (metrics)
		write_keeper(&x, metrics);
	write_counts(&x, &exchange->net->counts);
	coop_metrics_counter(
		&x, "coop_gateway_restarts_total",
		"Gateways in this one's place that ended, or stood still and were ended.",
		exchange->net->counts.restarts);
	write_resources(&x);
	if (x.failed)
		coop_http_refuse(exchange, 500, "internal", "no memory is left for this");
	else
		coop_http_answer(exchange, 200, TYPE, coop_buf_front(&text), coop_buf_size(&text));
	coop_buf_clear(&text);
}

static bool is_absence(const struct coop_error *error)
{
	return !strcmp(error->code, "unreachable") || !strcmp(error->code, "unavailable");
}

static void on_metrics(struct coop_ask *asked, const json_t *result)
{
	answer(asked->exchange, result);
}

static void on_failed(struct coop_ask *asked, const struct coop_error *error)
{
	if (is_absence(error))
		answer(asked->exchange, NULL);
	else
		coop_ops_refuse(asked->exchange, error);
}

static void ask(struct coop_http_exchange *exchange)
{
	/* The keeper says so, too, but it may not be there to say it. */
	if (!coop_user_is_own(exchange->user)) {
		coop_http_refuse(exchange, 403, "forbidden",
				 "metrics are for tokens of the agent main");
		return;
	}
	struct coop_ask *asked = coop_ask_new(exchange, sizeof *asked);
	if (!asked)
		return;
	asked->failed = on_failed;
	coop_ask(asked, "metrics", json_object(), on_metrics);
}

const struct coop_http_route coop_routes_metrics[] = {
	{"GET", "/metrics", 0, COOP_BODY_NONE, 0, ask},
	{0},
};
