#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/terminal/feeder.h"
#include "doors/cli/terminal/keys.h"
#include "doors/cli/terminal/relay.h"
#include "doors/cli/terminal/terminal.h"
#include "doors/cli/verbs.h"

#define TAIL_USUAL 4096

struct settings {
	bool no_stdin;
	struct cli_number tail;
};

/* Somebody who only looks leaves with Ctrl-C; everybody else sends it to the process. */
static void on_signal(struct cli_relay *relay, int number)
{
	if (number == SIGWINCH)
		cli_relay_resize(relay);
	else if ((number == SIGINT || number == SIGQUIT) && !relay->keys.only_look)
		cli_relay_signal(relay, number);
	else
		relay->over = true;
}

/* A full-screen program redraws when its size changes. So it gets a size that it does not have, and
 * then the right one. */
static void redraw(struct cli_relay *relay)
{
	const struct coop_handler nobody = {0};
	struct coop_error error;
	unsigned cols, rows;
	if (!relay->pty || !isatty(STDOUT_FILENO) || !cli_terminal_size(&cols, &rows))
		return;
	(void)cli_submit(relay->cli, "resize",
			 json_pack("{s:s, s:i, s:i}", "id", relay->id, "cols", (int)cols, "rows",
				   rows > 1 ? (int)rows - 1 : 2),
			 NULL, 0, &nobody, NULL, &error);
	cli_relay_resize(relay);
}

/* Whoever makes room for a command that waits for a reader takes all that it has printed. */
static uint64_t usual_tail(const json_t *record)
{
	const char *name;
	json_t *stream;
	uint64_t tail = TAIL_USUAL;
	json_object_foreach(json_object_get(record, "streams"), name, stream)
	{
		const uint64_t ring = (uint64_t)cli_number(stream, "ring_bytes");
		if (cli_record_wants_reader(record) && cli_stream_full(stream) && ring > tail)
			tail = ring;
	}
	return tail;
}

static void start_follow(struct cli_relay *relay, const struct settings *s, const json_t *record)
{
	const uint64_t tail = s->tail.set ? s->tail.value : usual_tail(record);
	const bool reader = cli_record_wants_reader(record);
	if (reader)
		cli_relay_acknowledge(relay, record);
	cli_relay_follow(relay, record, json_pack("{s:I}", "tail", (json_int_t)tail));
	if (reader)
		cli_relay_make_room(relay, record, tail);
}

/* A terminal is watched for Ctrl-] even if nothing of what is typed is sent. */
static void start_input(struct cli_relay *relay, const json_t *record)
{
	const bool terminal = isatty(STDIN_FILENO);
	const bool open = relay->pty || json_is_true(json_object_get(record, "stdin_open"));
	relay->feeder.mute = relay->keys.only_look || !open;
	if (relay->feeder.mute && !terminal)
		return;
	(void)cli_feeder_start(&relay->feeder, relay->cli, relay->id, true);
	char text[CLI_ID_MAX + 16];
	(void)snprintf(text, sizeof(text), "attached to %s: ", relay->id);
	if (relay->feeder.active && terminal)
		cli_keys_start(relay, text);
}

static void start(struct cli_relay *relay, const struct settings *s, const json_t *record)
{
	start_follow(relay, s, record);
	if (cli_record_finished(record) || relay->finished)
		return;
	relay->keys.only_look = s->no_stdin || !cli_stdin_useful();
	start_input(relay, record);
	redraw(relay);
}

static int outcome(struct cli_relay *relay)
{
	const int broken = relay->out.error ? relay->out.error : relay->err.error;
	if (broken == EPIPE)
		return CLI_SIGNAL_BASE + SIGPIPE;
	if (broken) {
		cli_say("cannot write the output: %s", strerror(broken));
		return cli_failure(relay->cli->verb);
	}
	if (relay->failed)
		return cli_fail(relay->cli, NULL, &relay->error);
	if (relay->abandoned)
		return cli_relay_say_abandoned(relay);
	if (!relay->finished) {
		cli_relay_end_line();
		cli_say("left %s running", relay->id);
		return CLI_OK;
	}
	return cli_record_exit_code(relay->record);
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGWINCH};
	struct cli_relay relay = {0};
	struct coop_error error;
	json_t *status = NULL;
	cli->lines = true;
	int r = cli_open(cli, CLI_ONLY_RUNNING, &error);
	if (r >= 0)
		r = cli_call(cli, "status", cli_id_args(operands[0]), &status, &error);
	if (r < 0)
		return cli_fail(cli, operands[0], &error);

	sigset_t signals;
	(void)sigemptyset(&signals);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)sigaddset(&signals, numbers[i]);
	r = cli_relay_init(&relay, cli, &signals);
	relay.on_signal = on_signal;
	const json_t *record = json_object_get(status, "process");
	if (r < 0) {
		cli_error(&error, "internal", "no file descriptor for signals: %s", strerror(-r));
		cli_relay_fail(&relay, &error);
	} else {
		start(&relay, settings, record);
	}
	cli_relay_run(&relay);
	cli_terminal_restore(&relay.terminal);
	int code = outcome(&relay);
	if (cli->json && relay.record) {
		cli_relay_emit(&relay, json_pack("{s:s, s:i, s:O}", "type", "exit", "exit_code",
						 code, "process", relay.record));
		cli_relay_run(&relay);
	}
	cli_relay_free(&relay);
	json_decref(status);
	return code;
}

static const struct cli_option options[] = {
	{"no-stdin", 'n', CLI_FLAG, offsetof(struct settings, no_stdin), NULL, NULL,
	 "only look, send nothing; Ctrl-C then leaves"},
	CLI_ARG("tail", offsetof(struct settings, tail),
		"show so much of the latest output first (4K; all, if it waits for a reader)"),
	{0},
};

const struct cli_verb cli_verb_attach = {
	.name = "attach",
	.synopsis = "ID",
	.summary = "Connect this terminal to a running process",
	.text = "Ctrl-] d leaves it running, Ctrl-] k kills it with all that it started, Ctrl-] "
		"twice sends one Ctrl-]; before\n"
		"any other key it is sent with that. Ctrl-C goes to the process; with -n it "
		"leaves.\n"
		"If the process ends, its exit code is returned as by coop run. One with "
		"--overflow backpressure goes on as its\n"
		"output is shown here; see coop help logs.",
	.operation = &coop_operation_follow,
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = 1,
	.failure = CLI_OWN_FAILURE,
	.run = run,
};
