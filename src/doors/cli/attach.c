#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "record.h"
#include "relay.h"
#include "verbs.h"

/* Ctrl-] leaves. No shell uses it; for those who need it (vim's tags), twice sends it once, and a key that follows at once sends
 * both. So it takes effect when nothing followed for a moment, or with a d at once. */
#define LEAVE_KEY 0x1d
#define MOMENT_NS (500ull * 1000000)

struct settings {
	bool no_stdin;
	struct cli_number tail;
};

struct attach {
	struct cli_relay relay;
	bool key_seen; /* Ctrl-] was the last key */
};

/* What a key after Ctrl-] means: gives how many bytes to send (into out), or -1 to leave. */
static int second_key(char key, char out[2])
{
	if (key == 'd')
		return -1;
	out[0] = LEAVE_KEY;
	out[1] = key;
	return key == LEAVE_KEY ? 1 : 2;
}

/* Where lines are typed, the key after Ctrl-] is to be seen without Enter. */
static void set_mode(struct attach *attach)
{
	if (!attach->relay.pty && isatty(STDIN_FILENO))
		cli_terminal_set(&attach->relay.terminal,
				 attach->key_seen ? CLI_TERMINAL_KEYS : CLI_TERMINAL_LINES);
}

/* The feeder's filter, for a terminal. At most one byte is added: a Ctrl-] that was held back before and turned out to be
 * meant. */
static bool watch_keys(void *user, char *bytes, size_t *size)
{
	struct attach *attach = user;
	char sent[CLI_FEEDER_PIECE + 1];
	size_t count = 0;
	bool stay = true;
	for (size_t i = 0; i < *size && stay; i++) {
		char out[2] = {bytes[i]};
		int n = 1;
		if (attach->key_seen)
			n = second_key(bytes[i], out);
		else if (bytes[i] == LEAVE_KEY)
			n = 0;
		attach->key_seen = n == 0;
		stay = n >= 0;
		for (int k = 0; k < n; k++)
			sent[count++] = out[k];
	}
	memcpy(bytes, sent, count);
	*size = count;
	attach->relay.alarm_at = attach->key_seen ? coop_clock_now() + MOMENT_NS : 0;
	set_mode(attach);
	return stay;
}

static void on_alarm(struct cli_relay *relay)
{
	relay->over = true;
}

/* Somebody who only looks leaves with Ctrl-C; somebody who types sends it to the process. */
static void on_signal(struct cli_relay *relay, int number)
{
	if (number == SIGWINCH)
		cli_relay_resize(relay);
	else if ((number == SIGINT || number == SIGQUIT) && relay->feeder.piece)
		cli_relay_signal(relay, number);
	else
		relay->over = true;
}

/* A full-screen program redraws when its size changes. So it gets a size that it does not have, and then the right one. */
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

static void start(struct attach *attach, const struct settings *s, const json_t *record)
{
	struct cli_relay *relay = &attach->relay;
	const uint64_t tail = s->tail.set ? s->tail.value : 4096;
	cli_relay_follow(relay, record, json_pack("{s:I}", "tail", (json_int_t)tail));
	if (cli_record_finished(record) || relay->finished)
		return;
	const bool terminal = isatty(STDIN_FILENO);
	if (!s->no_stdin && cli_stdin_useful() &&
	    (relay->pty || json_is_true(json_object_get(record, "stdin_open")))) {
		relay->feeder.filter = terminal ? watch_keys : NULL;
		relay->feeder.user = attach;
		(void)cli_feeder_start(&relay->feeder, relay->cli, relay->id, true);
	}
	if (relay->feeder.active && terminal) {
		cli_say("attached to %s: Ctrl-] leaves it running", relay->id);
		cli_terminal_set(&relay->terminal,
				 relay->pty ? CLI_TERMINAL_RAW : CLI_TERMINAL_LINES);
	}
	redraw(relay);
}

static int outcome(struct cli_relay *relay)
{
	const int broken = relay->out.error ? relay->out.error : relay->err.error;
	if (broken == EPIPE)
		return CLI_SIGNAL_BASE + SIGPIPE;
	if (broken) {
		cli_say("cannot write the output: %s", strerror(broken));
		return relay->cli->verb->failure;
	}
	if (relay->failed)
		return cli_fail(relay->cli, NULL, &relay->error);
	if (!relay->finished) {
		/* The cursor stands somewhere in the command's last line. */
		if (isatty(STDERR_FILENO))
			(void)!write(STDERR_FILENO, "\r\n", 2);
		cli_say("left %s running", relay->id);
		return CLI_OK;
	}
	return cli_record_exit_code(relay->record);
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGWINCH};
	struct attach attach = {0};
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
	r = cli_relay_init(&attach.relay, cli, &signals);
	attach.relay.on_signal = on_signal;
	attach.relay.on_alarm = on_alarm;
	const json_t *record = json_object_get(status, "process");
	if (r < 0) {
		cli_error(&error, "internal", "no file descriptor for signals: %s", strerror(-r));
		cli_relay_fail(&attach.relay, &error);
	} else {
		start(&attach, settings, record);
	}
	cli_relay_run(&attach.relay);
	cli_terminal_restore(&attach.relay.terminal);
	int code = outcome(&attach.relay);
	if (cli->json && attach.relay.record) {
		cli_relay_emit(&attach.relay,
			       json_pack("{s:s, s:i, s:O}", "type", "exit", "exit_code", code,
					 "process", attach.relay.record));
		cli_relay_run(&attach.relay);
	}
	cli_relay_free(&attach.relay);
	json_decref(status);
	return code;
}

static const struct cli_option options[] = {
	{"no-stdin", 'n', CLI_FLAG, offsetof(struct settings, no_stdin), NULL, NULL,
	 "only look, send nothing"},
	{"tail", 0, CLI_SIZE, offsetof(struct settings, tail), NULL, "SIZE",
	 "show so much of the latest output first (4K)"},
	{0},
};

const struct cli_verb cli_verb_attach = {
	.name = "attach",
	.synopsis = "ID",
	.summary = "Connect this terminal to a running process",
	.text = "Ctrl-] leaves it running (at once with d); twice sends one Ctrl-]. Ctrl-C goes to "
		"the "
		"process.\n"
		"If the process ends, its exit code is returned as by coop run.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = 1,
	.failure = CLI_OWN_FAILURE,
	.usage = CLI_USAGE,
	.run = run,
};
