/* coop run in the foreground: one command on this program's stdin, stdout and stderr. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "client/scan.h"
#include "coop.h"
#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/terminal/feeder.h"
#include "doors/cli/terminal/keys.h"
#include "doors/cli/terminal/relay.h"
#include "doors/cli/terminal/terminal.h"
#include "doors/cli/verbs/run.h"

/* A second Ctrl-C within this time kills. */
#define TWICE_NS (2000ull * 1000000)
/* How long a command may take to end after its output was closed. */
#define CLOSED_NS (1000ull * 1000000)
/* How long a keeper may take for a signal, and for a kill with all that belongs to it. */
#define PATIENCE_MS 2000
#define KILL_MS 10000

struct front {
	struct cli_relay relay;
	struct coop_handler follow; /* what the relay does with a follow */
	const struct cli_run *run;
	uint64_t interrupted; /* when Ctrl-C came last; 0: never */
	unsigned unanswered;  /* interrupts since the keeper's last answer to one */
	int quit;             /* this signal ended coop run itself; 0: none */
	bool refused;         /* it was never started */
	bool ephemeral;
};

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static void on_interrupted(void *user, uint64_t request, int status, const char *json,
			   const struct coop_error *error)
{
	struct front *front = user;
	front->unanswered = 0;
}

/* An interrupt goes to the command. The second within 2 s means it. The third after that, or after
 * two that the keeper has not even answered, is for coop run itself. */
static void interrupt(struct front *front)
{
	struct cli_relay *relay = &front->relay;
	const struct coop_handler handler = {.done = on_interrupted, .user = front};
	const uint64_t now = coop_clock_now();
	struct coop_error error;
	if (relay->killing || front->unanswered >= 2)
		cli_relay_abandon(relay);
	else if (front->interrupted && now - front->interrupted < TWICE_NS)
		cli_relay_kill(relay);
	else
		(void)cli_submit(relay->cli, "signal",
				 json_pack("{s:s, s:s}", "id", relay->id, "signal", "SIGINT"), NULL,
				 0, &handler, NULL, &error);
	front->unanswered++;
	front->interrupted = now;
}

/* Ctrl-Z stops both. The command is in a session of its own, where the kernel discards SIGTSTP; so
 * it gets SIGSTOP. */
static void suspend(struct front *front)
{
	/* Whatever comes of it: the one who typed it wants the terminal back. */
	(void)cli_relay_call(&front->relay, "signal", json_pack("{s:s}", "signal", "SIGSTOP"),
			     PATIENCE_MS);
	(void)raise(SIGSTOP);
	(void)cli_relay_call(&front->relay, "signal", json_pack("{s:s}", "signal", "SIGCONT"),
			     PATIENCE_MS);
}

static void on_signal(struct cli_relay *relay, int number)
{
	struct front *front = relay->user;
	/* Before the command is known, and after its end, a signal can only mean coop run
	 * itself. */
	if (!*relay->id || relay->finished) {
		if (number == SIGWINCH || number == SIGTSTP)
			return;
		front->quit = number;
		relay->over = true;
		return;
	}
	switch (number) {
	case SIGWINCH:
		cli_relay_resize(relay);
		break;
	case SIGTSTP:
		if (!relay->pty)
			suspend(front);
		break;
	case SIGINT:
		interrupt(front);
		break;
	default:
		cli_relay_signal(relay, number);
	}
}

static void start_input(struct front *front)
{
	struct cli_relay *relay = &front->relay;
	if (cli_run_forwards_stdin(front->run)) {
		/* Should there be no memory for it, the command sees no input; it can still be
		 * ended. */
		(void)cli_feeder_start(&relay->feeder, relay->cli, relay->id, true);
		if (!relay->pty || !isatty(STDIN_FILENO) || !relay->feeder.active)
			return;
		/* In a raw terminal Ctrl-C is the command's, so there is another way out. */
		cli_keys_start(relay, "");
	} else if (relay->pty) {
		/* A terminal's stdin is always open. Nothing will be typed here, so its end is
		 * told. */
		const struct coop_handler nobody = {0};
		struct coop_error error;
		(void)cli_submit(relay->cli, "close_stdin", cli_id_args(relay->id), NULL, 0,
				 &nobody, NULL, &error);
	}
}

static void on_started(struct front *front, const json_t *record)
{
	struct cli_relay *relay = &front->relay;
	const char *overflow = front->run->overflow;
	front->ephemeral = strcmp(cli_text(record, "lease"), "ephemeral") == 0;
	cli_relay_begin(relay, record);
	if (overflow ? strcmp(overflow, "backpressure") == 0 : front->ephemeral)
		cli_relay_acknowledge(relay, record);
	start_input(front);
	if (relay->cli->json)
		cli_relay_emit(relay,
			       json_pack("{s:s, s:O}", "type", "started", "process", record));
}

static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct front *front = user;
	front->follow.data(front->follow.user, request, chunk);
}

static void on_event(void *user, uint64_t request, const char *json)
{
	struct front *front = user;
	if (*front->relay.id) {
		front->follow.event(front->follow.user, request, json);
		return;
	}
	json_t *event = json_loads(json, 0, NULL);
	on_started(front, json_object_get(event, "process"));
	json_decref(event);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct front *front = user;
	if (status < 0 || *front->relay.id) {
		front->refused = !*front->relay.id;
		front->follow.done(front->follow.user, request, status, json, error);
		return;
	}
	/* A keeper may answer with the start alone: then it is asked for the rest. */
	json_t *result = json_loads(json, 0, NULL), *record = json_object_get(result, "process");
	on_started(front, record);
	cli_relay_follow(&front->relay, record, json_object());
	json_decref(result);
}

/* Ends a command whose output nobody takes any more, as the kernel would have done: by SIGPIPE. One
 * that survives that would meet an error at its next write, which nobody can give it from here; it
 * is killed. */
static void end_command(struct front *front)
{
	struct cli_relay *relay = &front->relay;
	if (!*relay->id || relay->finished)
		return;
	struct coop_error error;
	const uint64_t limit = coop_clock_now() + CLOSED_NS;
	cli_relay_signal(relay, SIGPIPE);
	while (!relay->finished) {
		const uint64_t now = coop_clock_now();
		if (now >= limit ||
		    coop_run(relay->cli->coop, (int)((limit - now) / 1000000) + 1, &error) < 0)
			break;
	}
	if (!relay->finished)
		(void)cli_relay_call(relay, "kill", json_object(),
				     KILL_MS); /* if not, the lease ends it */
}

/* A local output failed. */
static int closed_output(struct front *front, int number, const char *name)
{
	end_command(front);
	if (number == EPIPE)
		return CLI_SIGNAL_BASE + SIGPIPE;
	cli_say("cannot write to %s: %s", name, strerror(number));
	return CLI_OWN_FAILURE;
}

/* The keeper ended the connection because of who we are: what that means for the command. */
static void explain_retired(struct front *front)
{
	struct cli_relay *relay = &front->relay;
	char why[160];
	(void)snprintf(why, sizeof(why), "%.150s", relay->error.message);
	const char *fate = "goes on without this coop run";
	if (coop_scan_says(relay->error.details, "reason", "agent_removed"))
		fate = "was ended with it";
	else if (front->ephemeral)
		fate = "ends with this coop run";
	cli_error(&relay->error, "permission_denied", "%s: %s %s", why, relay->id, fate);
}

static int failed(struct front *front)
{
	struct cli_relay *relay = &front->relay;
	if (front->refused) {
		(void)cli_fail(relay->cli, NULL, &relay->error);
		return cli_run_refused(&relay->error);
	}
	if (strcmp(relay->error.code, "permission_denied") == 0)
		explain_retired(front);
	else if (strcmp(relay->error.code, "unreachable") == 0)
		cli_error(&relay->error, "unreachable", "the keeper has gone, and %s with it",
			  relay->id);
	return cli_fail(relay->cli, NULL, &relay->error);
}

/* Ctrl-] d. From now on it lives without this connection; and where nothing else was asked for,
 * without anybody who takes its output. */
static int leave(struct front *front)
{
	const char *id = front->relay.id;
	int r = 0;
	if (front->ephemeral)
		r = cli_relay_call(&front->relay, "keep",
				   front->run->overflow
					   ? json_object()
					   : json_pack("{s:s}", "overflow", "drop_oldest"),
				   PATIENCE_MS);
	cli_relay_end_line();
	if (r < 0) {
		cli_say("cannot leave %s running: it ends with coop run", id);
		return CLI_OWN_FAILURE;
	}
	cli_say("left %s running (coop attach %s)", id, id);
	return CLI_OK;
}

static int outcome(struct front *front)
{
	struct cli_relay *relay = &front->relay;
	if (relay->out.error)
		return closed_output(front, relay->out.error, "standard output");
	if (relay->err.error)
		return closed_output(front, relay->err.error, "standard error");
	if (front->quit)
		return CLI_SIGNAL_BASE + front->quit;
	if (relay->abandoned)
		return cli_relay_say_abandoned(relay);
	if (relay->failed)
		return failed(front);
	if (!relay->finished)
		return leave(front);
	/* Its end may come before that of the connection. */
	if (strcmp(cli_text(relay->record, "end_cause"), "owner_retired") == 0)
		cli_say("the agent has been removed: %s was ended with it", relay->id);
	return cli_record_exit_code(relay->record);
}

static void list_signals(sigset_t *set, const struct cli_run *run)
{
	(void)sigemptyset(set);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		(void)sigaddset(set, forwarded[i]);
	(void)sigaddset(set, SIGTSTP);
	if (run->terminal)
		(void)sigaddset(set, SIGWINCH);
}

int cli_run_foreground(struct cli *cli, const struct cli_run *run, json_t *args,
		       struct coop_buf *data)
{
	struct front front = {.run = run};
	struct cli_relay *relay = &front.relay;
	struct coop_error error;
	sigset_t signals;

	list_signals(&signals, run);
	int r = cli_relay_init(relay, cli, &signals);
	relay->on_signal = on_signal;
	relay->user = &front;
	relay->encoder.text = run->text;
	if (r < 0) {
		cli_error(&error, "internal", "no file descriptor for signals: %s", strerror(-r));
		json_decref(args);
	} else {
		/* One request: the start is its first event, the end its answer. */
		const struct coop_handler handler = {
			.data = on_data, .event = on_event, .done = on_done, .user = &front};
		front.follow = cli_relay_handler(relay);
		(void)json_object_set_new(args, "follow", cli_relay_follow_args());
		r = cli_submit(cli, "spawn", args, coop_buf_front(data), coop_buf_size(data),
			       &handler, NULL, &error);
	}
	/* It has been queued, and a command may run for long. */
	coop_buf_clear(data);
	if (r < 0) {
		front.refused = true;
		cli_relay_fail(relay, &error);
	}
	cli_relay_run(relay);
	cli_terminal_restore(&relay->terminal);
	int code = outcome(&front);
	if (relay->record && !relay->out.error && !relay->err.error) {
		if (cli->json) {
			cli_relay_emit(relay,
				       json_pack("{s:s, s:i, s:O}", "type", "exit", "exit_code",
						 code, "process", relay->record));
			cli_relay_run(relay);
		}
		cli_relay_say_lost(relay);
		cli_record_say_facts(relay->record);
		cli_record_say_left_behind(relay->record);
	}
	cli_relay_free(relay);
	return code;
}
