#include "doors/cli/terminal/relay.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/signame.h"
#include "client/scan.h"
#include "coop.h"
#include "doors/cli/clean.h"
#include "doors/cli/record.h"

static void emit_line(void *user, const char *line, size_t size)
{
	struct cli_relay *relay = user;
	cli_sink_write(&relay->out, line, size);
}

int cli_relay_init(struct cli_relay *relay, struct cli *cli, const sigset_t *signals)
{
	*relay = (struct cli_relay){.cli = cli, .signal_fd = -1};
	relay->encoder.emit = emit_line;
	relay->encoder.user = relay;
	cli_sink_init(&relay->out, STDOUT_FILENO);
	cli_sink_init(&relay->err, STDERR_FILENO);
	/* Writing to a closed pipe is an error to be handled here, with a terminal and a command to
	 * look after. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigprocmask(SIG_BLOCK, signals, &relay->mask_before);
	relay->signal_fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return relay->signal_fd < 0 ? -errno : 0;
}

void cli_relay_free(struct cli_relay *relay)
{
	cli_terminal_restore(&relay->terminal);
	cli_feeder_free(&relay->feeder);
	cli_sink_free(&relay->out);
	cli_sink_free(&relay->err);
	json_decref(relay->record);
	if (relay->signal_fd >= 0)
		(void)close(relay->signal_fd);
	(void)sigprocmask(SIG_SETMASK, &relay->mask_before, NULL);
}

void cli_relay_fail(struct cli_relay *relay, const struct coop_error *error)
{
	relay->finished = relay->failed = true;
	relay->error = *error;
}

void cli_relay_emit(struct cli_relay *relay, json_t *value)
{
	char *line = cli_clean_dump(value, JSON_COMPACT);
	json_decref(value);
	if (!line)
		return;
	cli_sink_write(&relay->out, line, strlen(line));
	cli_sink_write(&relay->out, "\n", 1);
	free(line);
}

void cli_relay_acknowledge(struct cli_relay *relay, const json_t *record)
{
	const char *name;
	json_t *stream;
	relay->acknowledges = true;
	json_object_foreach(json_object_get(record, "streams"), name, stream)
	{
		const enum coop_stream which = cli_stream_parse(name);
		relay->ring[which] = (uint64_t)cli_number(stream, "ring_bytes");
		relay->acknowledged[which] = (uint64_t)cli_number(stream, "start");
	}
}

/* Output before `position` may go. */
static void release(struct cli_relay *relay, enum coop_stream stream, uint64_t position)
{
	const struct coop_handler nobody = {0};
	struct coop_error error;
	relay->acknowledged[stream] = position;
	/* Should it fail, so does the follow. */
	(void)cli_submit(relay->cli, "read",
			 json_pack("{s:s, s:s, s:I, s:i, s:b}", "id", relay->id, "stream",
				   cli_stream_name(stream), "cursor", (json_int_t)position, "max",
				   0, "drain", 1),
			 NULL, 0, &nobody, NULL, &error);
}

static void acknowledge(struct cli_relay *relay, const struct coop_chunk *chunk)
{
	const uint64_t end = chunk->offset + chunk->size, quarter = relay->ring[chunk->stream] / 4;
	if (quarter && end >= relay->acknowledged[chunk->stream] + 2 * quarter)
		release(relay, chunk->stream, end - quarter);
}

void cli_relay_make_room(struct cli_relay *relay, const json_t *record, uint64_t tail)
{
	const char *name;
	json_t *stream;
	json_object_foreach(json_object_get(record, "streams"), name, stream)
	{
		const enum coop_stream which = cli_stream_parse(name);
		const uint64_t end = (uint64_t)cli_number(stream, "end");
		const uint64_t keep = tail > relay->ring[which] / 4 ? tail : relay->ring[which] / 4;
		if (cli_stream_full(stream) && end - relay->acknowledged[which] > keep)
			release(relay, which, end - keep);
	}
}

static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct cli_relay *relay = user;
	if (relay->cli->json)
		cli_encoder_feed(&relay->encoder, chunk, NULL);
	else
		cli_sink_write(chunk->stream == COOP_STDERR ? &relay->err : &relay->out,
			       chunk->data, chunk->size);
	acknowledge(relay, chunk);
}

static void on_event(void *user, uint64_t request, const char *json)
{
	struct cli_relay *relay = user;
	/* The only other event is "attached", with a record that is known already. */
	if (!coop_scan_says(json, "event", "gap"))
		return;
	json_t *event = json_loads(json, 0, NULL);
	const enum coop_stream stream = cli_stream_parse(cli_text(event, "stream"));
	const int64_t from = cli_number(event, "from"), to = cli_number(event, "to");
	relay->lost[stream] += to > from ? (uint64_t)(to - from) : 0;
	if (relay->cli->json)
		cli_relay_emit(relay, json_pack("{s:s, s:s, s:I, s:I}", "type", "gap", "stream",
						cli_stream_name(stream), "from", from, "to", to));
	json_decref(event);
}

static void follow(struct cli_relay *relay, json_t *args);

/* A command that ended with a full ring may have left output in its pipe, for which there was no
 * room: the follow ended without. Nobody needs the ring's rest any more, so it makes room, and what
 * comes then is followed to its end. */
static bool follow_rest(struct cli_relay *relay, const json_t *record)
{
	json_t *from = json_object(), *stream;
	const char *name;
	bool open = false;
	json_object_foreach(json_object_get(record, "streams"), name, stream)
	{
		const json_int_t end = json_integer_value(json_object_get(stream, "end"));
		(void)json_object_set_new(from, name, json_integer(end));
		if (json_is_true(json_object_get(stream, "eof")))
			continue;
		open = true;
		release(relay, cli_stream_parse(name), (uint64_t)end);
	}
	relay->rest = true;
	if (open)
		follow(relay, json_pack("{s:O, s:b}", "from", from, "drain", 1));
	json_decref(from);
	return open;
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct cli_relay *relay = user;
	if (status < 0) {
		cli_relay_fail(relay, error);
		return;
	}
	json_t *result = json_loads(json, 0, NULL);
	const json_t *record = json_object_get(result, "process");
	if (!relay->acknowledges || relay->rest || !follow_rest(relay, record)) {
		relay->record = json_incref(json_object_get(result, "process"));
		relay->finished = true;
		if (relay->cli->json)
			cli_encoder_flush(&relay->encoder, relay->record);
	}
	json_decref(result);
}

struct coop_handler cli_relay_handler(struct cli_relay *relay)
{
	return (struct coop_handler){
		.data = on_data, .event = on_event, .done = on_done, .user = relay};
}

json_t *cli_relay_follow_args(void)
{
	/* Who looks at the folder next finds it as the command left it. */
	return json_pack("{s:b}", "tidy", 1);
}

static void follow(struct cli_relay *relay, json_t *args)
{
	const struct coop_handler handler = cli_relay_handler(relay);
	struct coop_error error;
	json_t *usual = cli_relay_follow_args();
	(void)json_object_set_new(args, "id", json_string(relay->id));
	(void)json_object_update(args, usual);
	json_decref(usual);
	if (cli_submit(relay->cli, "follow", args, NULL, 0, &handler, NULL, &error) < 0)
		cli_relay_fail(relay, &error);
}

void cli_relay_begin(struct cli_relay *relay, const json_t *record)
{
	(void)snprintf(relay->id, sizeof(relay->id), "%s", cli_text(record, "id"));
	relay->pty = strcmp(cli_text(record, "kind"), "pty") == 0;
}

void cli_relay_follow(struct cli_relay *relay, const json_t *record, json_t *args)
{
	cli_relay_begin(relay, record);
	follow(relay, args);
}

void cli_relay_signal(struct cli_relay *relay, int number)
{
	const struct coop_handler nobody = {0};
	struct coop_error error;
	char name[COOP_SIGNAME_TEXT];
	coop_signame_format(number, name);
	/* A process that has ended meanwhile is no error. */
	(void)cli_submit(relay->cli, "signal",
			 json_pack("{s:s, s:s}", "id", relay->id, "signal", name), NULL, 0, &nobody,
			 NULL, &error);
}

/* May come after it was given up. */
static void on_answer(void *user, uint64_t request, int status, const char *json,
		      const struct coop_error *error)
{
	struct cli_relay *relay = user;
	if (request != relay->called)
		return;
	relay->called = 0;
	relay->call_status = status;
}

int cli_relay_call(struct cli_relay *relay, const char *op, json_t *args, int timeout_ms)
{
	const struct coop_handler handler = {.done = on_answer, .user = relay};
	struct coop_error error;
	const uint64_t limit = coop_clock_now() + (uint64_t)timeout_ms * 1000000u;
	(void)json_object_set_new(args, "id", json_string(relay->id));
	int r = cli_submit(relay->cli, op, args, NULL, 0, &handler, &relay->called, &error);
	for (uint64_t now; r >= 0 && relay->called && (now = coop_clock_now()) < limit;)
		r = coop_run(relay->cli->coop, (int)((limit - now) / 1000000) + 1, &error);
	if (r >= 0)
		r = relay->called ? -ETIMEDOUT : relay->call_status;
	relay->called = 0;
	return r;
}

void cli_relay_kill(struct cli_relay *relay)
{
	const struct coop_handler nobody = {0};
	struct coop_error error;
	char note[CLI_ID_MAX + 64];
	if (relay->killing) {
		cli_relay_abandon(relay);
		return;
	}
	relay->killing = true;
	(void)snprintf(note, sizeof(note), "killing %s with all that it started", relay->id);
	cli_relay_note(relay, note);
	(void)cli_submit(relay->cli, "kill", cli_id_args(relay->id), NULL, 0, &nobody, NULL,
			 &error);
}

void cli_relay_abandon(struct cli_relay *relay)
{
	relay->abandoned = relay->over = true;
}

int cli_relay_say_abandoned(const struct cli_relay *relay)
{
	cli_relay_end_line();
	cli_say("the keeper does not answer: %s may still run", relay->id);
	return CLI_SIGNAL_BASE + SIGINT;
}

void cli_relay_note(const struct cli_relay *relay, const char *text)
{
	if (relay->terminal.changed)
		cli_relay_end_line();
	cli_say("%s", text);
	if (relay->terminal.changed)
		cli_relay_to_left();
}

void cli_relay_to_left(void)
{
	if (isatty(STDERR_FILENO))
		(void)!write(STDERR_FILENO, "\r", 1);
}

void cli_relay_end_line(void)
{
	if (isatty(STDERR_FILENO))
		(void)!write(STDERR_FILENO, "\r\n", 2);
}

void cli_relay_resize(struct cli_relay *relay)
{
	const struct coop_handler nobody = {0};
	struct coop_error error;
	unsigned cols, rows;
	if (!relay->pty || !cli_terminal_size(&cols, &rows))
		return;
	(void)cli_submit(
		relay->cli, "resize",
		json_pack("{s:s, s:i, s:i}", "id", relay->id, "cols", (int)cols, "rows", (int)rows),
		NULL, 0, &nobody, NULL, &error);
}

static void take_signals(struct cli_relay *relay)
{
	struct signalfd_siginfo info;
	while (!relay->over && read(relay->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		relay->on_signal(relay, (int)info.ssi_signo);
}

static bool is_done(const struct cli_relay *relay)
{
	if (relay->over || relay->out.error || relay->err.error)
		return true;
	if (relay->feeder.left && cli_feeder_settled(&relay->feeder))
		return true;
	return relay->finished && !cli_sink_waiting(&relay->out) && !cli_sink_waiting(&relay->err);
}

enum { WATCH_KEEPER, WATCH_SIGNALS, WATCH_IN, WATCH_OUT, WATCH_ERR, WATCH_COUNT };

static void prepare_poll(const struct cli_relay *relay, struct pollfd fds[WATCH_COUNT])
{
	short wanted = coop_poll_events(relay->cli->coop);
	/* A slow reader lets the keeper wait, or drop and count: its choice, by the process's
	 * overflow policy. */
	if (cli_sink_full(&relay->out) || cli_sink_full(&relay->err))
		wanted &= ~POLLIN;
	fds[WATCH_KEEPER] =
		(struct pollfd){.fd = wanted ? coop_fd(relay->cli->coop) : -1, .events = wanted};
	fds[WATCH_SIGNALS] = (struct pollfd){.fd = relay->signal_fd, .events = POLLIN};
	fds[WATCH_IN] = (struct pollfd){
		.fd = cli_feeder_wants(&relay->feeder) && !relay->finished ? STDIN_FILENO : -1,
		.events = POLLIN};
	fds[WATCH_OUT] = (struct pollfd){
		.fd = cli_sink_waiting(&relay->out) ? relay->out.own_fd : -1, .events = POLLOUT};
	fds[WATCH_ERR] = (struct pollfd){
		.fd = cli_sink_waiting(&relay->err) ? relay->err.own_fd : -1, .events = POLLOUT};
}

/* Milliseconds until the alarm, rounded up; -1: there is none. */
static int alarm_in(const struct cli_relay *relay)
{
	if (!relay->alarm_at)
		return -1;
	const uint64_t now = coop_clock_now();
	return now >= relay->alarm_at ? 0 : (int)((relay->alarm_at - now) / 1000000) + 1;
}

/* The signals come first: one of them may have ended all the rest. */
static void take_events(struct cli_relay *relay, const struct pollfd fds[WATCH_COUNT])
{
	struct coop_error error;
	if (fds[WATCH_SIGNALS].revents)
		take_signals(relay);
	if (fds[WATCH_OUT].revents)
		cli_sink_flush(&relay->out);
	if (fds[WATCH_ERR].revents)
		cli_sink_flush(&relay->err);
	if (fds[WATCH_IN].revents && cli_feeder_wants(&relay->feeder) && !relay->over)
		cli_feeder_pump(&relay->feeder);
	/* The follow hears of a lost connection as its end; if there is none yet, somebody else
	 * must. */
	if (fds[WATCH_KEEPER].revents && coop_dispatch(relay->cli->coop, &error) < 0 &&
	    !relay->finished)
		cli_relay_fail(relay, &error);
}

void cli_relay_run(struct cli_relay *relay)
{
	struct pollfd fds[WATCH_COUNT];
	while (!is_done(relay)) {
		prepare_poll(relay, fds);
		if (poll(fds, WATCH_COUNT, alarm_in(relay)) < 0)
			continue;
		take_events(relay, fds);
		if (alarm_in(relay) == 0) {
			relay->alarm_at = 0;
			relay->on_alarm(relay);
		}
	}
}

void cli_relay_say_lost(const struct cli_relay *relay)
{
	for (unsigned i = 0; i < CLI_STREAMS; i++)
		if (relay->lost[i])
			cli_say("%llu bytes of %s were lost (use --overflow backpressure)",
				(unsigned long long)relay->lost[i],
				cli_stream_name((enum coop_stream)i));
}
