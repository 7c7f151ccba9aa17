#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "coop.h"
#include "doors/cli/clean.h"
#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

struct settings {
	const char *agent, *session;
	bool no_replay;
};

struct events {
	struct cli *cli;
	bool ended; /* the request has been answered: it was refused, or the connection is gone */
	struct coop_error error;
};

/* What is to be said about a process besides its name. */
static void format_detail(const json_t *event, const json_t *process, char *ret_text, size_t size)
{
	const char *name = cli_text(event, "event");
	ret_text[0] = '\0';
	if (strcmp(name, "started") == 0) {
		(void)snprintf(ret_text, size, "pid %lld", (long long)cli_number(process, "pid"));
	} else if (strcmp(name, "output_first") == 0) {
		(void)snprintf(ret_text, size, "%s", cli_text(event, "stream"));
	} else if (strcmp(name, "progress") == 0) {
		(void)snprintf(ret_text, size, "%lld new bytes, silent for %lld ms",
			       (long long)cli_number(event, "new_bytes"),
			       (long long)cli_number(event, "silence_ms"));
	} else if (strcmp(name, "exited") == 0) {
		char state[CLI_TEXT_MAX];
		size_t used;
		const char *stream;
		json_t *bytes;
		cli_record_state(process, state);
		(void)snprintf(ret_text, size, "%s", state);
		json_object_foreach(json_object_get(process, "bytes"), stream, bytes)
		{
			used = strlen(ret_text);
			if (json_integer_value(bytes) > 0)
				(void)snprintf(ret_text + used, size - used, ", %s %lld bytes",
					       stream, (long long)json_integer_value(bytes));
		}
	}
}

static void print_event(const json_t *event)
{
	const char *name = cli_text(event, "event"), *at = cli_text(event, "at");
	const json_t *process = json_object_get(event, "process");
	char detail[256];
	if (strcmp(name, "gap") == 0) {
		(void)printf("%-24s %-13s %lld events were lost; coop ps shows how it is now\n",
			     "-", name, (long long)cli_number(event, "lost"));
	} else if (!process) {
		(void)printf("%-24s %-13s %s: %s\n", at, name, cli_text(event, "agent_path"),
			     cli_text(event, "message"));
	} else {
		format_detail(event, process, detail, sizeof(detail));
		(void)printf("%-24s %-13s %-14s %s  %s%s%s\n", at, name, cli_text(process, "id"),
			     cli_text(process, "agent_path"), cli_text(process, "label"),
			     *detail ? ": " : "", detail);
	}
}

static void on_event(void *user, uint64_t request, const char *json)
{
	const struct events *events = user;
	json_t *event = json_loads(json, 0, NULL);
	/* The request's number means nothing outside of this connection. */
	(void)json_object_del(event, "id");
	const bool told = strcmp(cli_text(event, "event"), "subscribed") != 0;
	if (told && events->cli->json) {
		cli_print_json_line(event);
	} else if (told) {
		cli_clean_json(event);
		print_event(event);
	}
	json_decref(event);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct events *events = user;
	events->ended = true;
	if (status < 0)
		events->error = *error;
	else
		cli_error(&events->error, "protocol", "the keeper has no more events");
}

/* Waits and prints. 0: the one who reads has gone, or wants no more; negative: *error says why. */
static int watch(struct events *events, int interrupts, struct coop_error *error)
{
	while (!events->ended) {
		(void)fflush(stdout);
		if (ferror(stdout))
			return 0;
		/* A pipe whose reader has gone says so also while nothing is written. */
		struct pollfd fds[] = {
			{.fd = coop_fd(events->cli->coop),
			 .events = coop_poll_events(events->cli->coop)},
			{.fd = interrupts, .events = POLLIN},
			{.fd = STDOUT_FILENO, .events = 0},
		};
		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[1].revents || fds[2].revents & (POLLERR | POLLHUP))
			return 0;
		if (fds[0].revents && coop_dispatch(events->cli->coop, error) < 0 && !events->ended)
			return -EPIPE;
	}
	*error = events->error;
	return -EPIPE;
}

/* Ctrl-C and a closed pipe are the usual ways to end this, and no failures. */
static int block_interrupts(void)
{
	sigset_t set;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* What could not be written because nobody reads is forgotten; other failures are left for
 * cli_finish() to tell. */
static void end_output(void)
{
	if (fflush(stdout) != 0 && errno == EPIPE)
		(void)!freopen("/dev/null", "w", stdout);
}

static const struct cli_option options[] = {
	CLI_ARG("agent", offsetof(struct settings, agent),
		"only of this agent (all that you may see)"),
	CLI_ARG("session", offsetof(struct settings, session),
		"only of this session (default: those in none)"),
	{"no-replay", 0, CLI_FLAG, offsetof(struct settings, no_replay), NULL, NULL,
	 "do not begin with the ends of what has ended already"},
	{0},
};

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	struct events events = {.cli = cli};
	const struct coop_handler handler = {.event = on_event, .done = on_done, .user = &events};
	struct coop_error error;
	cli->lines = true;
	COOP_AUTO_FD int interrupts = block_interrupts();
	int r = cli_open(cli, CLI_START_KEEPER, &error);
	if (r >= 0) {
		json_t *args = cli_args(cli, NULL, NULL);
		if (args && s->no_replay)
			(void)json_object_set_new(args, "replay", json_false());
		r = cli_submit(cli, "follow_events", args, NULL, 0, &handler, NULL, &error);
	}
	if (r >= 0)
		r = watch(&events, interrupts, &error);
	end_output();
	return r < 0 ? cli_fail(cli, NULL, &error) : CLI_OK;
}

const struct cli_verb cli_verb_events = {
	.name = "events",
	.synopsis = "[--agent AGENT] [--session ID] [--no-replay]",
	.summary = "Watch what happens to processes, until Ctrl-C",
	.text = "A line for each event: started, output_first, progress, stopped, continued, "
		"exited, quota_refused, gap. What has ended already and is still\n"
		"remembered comes first. With --json each line is an object with \"event\".",
	.operation = &coop_operation_follow_events,
	.options = options,
	.settings_size = sizeof(struct settings),
	.run = run,
};
