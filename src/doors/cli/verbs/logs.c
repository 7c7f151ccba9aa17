#include "doors/cli/verbs/logs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coop.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

struct settings {
	bool follow, no_drain, timestamps, text;
	const char *stream;
	struct cli_number from, tail;
};

struct logs {
	struct cli *cli;
	const struct settings *settings;
	struct cli_encoder encoder;
	bool inside_line[CLI_STREAMS];
	/* stdout and stderr are flushed in turn, so that their order holds on a terminal */
	int written_to;
	bool ended; /* the follow has been answered */
	int status;
	struct coop_error error;
	json_t *last; /* its answer */
};

static void put(struct logs *logs, int fd, const void *data, size_t size)
{
	if (logs->written_to != fd)
		(void)fflush(logs->written_to == STDERR_FILENO ? stderr : stdout);
	logs->written_to = fd;
	(void)fwrite(data, 1, size, fd == STDERR_FILENO ? stderr : stdout);
}

static void emit_line(void *user, const char *line, size_t size)
{
	put(user, STDOUT_FILENO, line, size);
}

/* Each line gets the time of the chunk in which it begins. */
static void put_with_times(struct logs *logs, const struct coop_chunk *chunk, int fd,
			   const char *at)
{
	const char *data = chunk->data, *end = data + chunk->size;
	while (data < end) {
		if (!logs->inside_line[chunk->stream]) {
			char prefix[COOP_CLOCK_TEXT + 2];
			(void)snprintf(prefix, sizeof(prefix), "%-24s ", at ? at : "-");
			put(logs, fd, prefix, strlen(prefix));
		}
		const char *newline = memchr(data, '\n', (size_t)(end - data));
		const char *next = newline ? newline + 1 : end;
		put(logs, fd, data, (size_t)(next - data));
		logs->inside_line[chunk->stream] = !newline;
		data = next;
	}
}

/* A cli_logs_take: on its way out. */
static void print(void *user, const struct coop_chunk *chunk, const char *at)
{
	struct logs *logs = user;
	const int fd =
		chunk->stream == COOP_STDERR && !logs->cli->json ? STDERR_FILENO : STDOUT_FILENO;
	if (logs->cli->json)
		cli_encoder_feed(&logs->encoder, chunk, logs->settings->timestamps ? at : NULL);
	else if (logs->settings->timestamps)
		put_with_times(logs, chunk, fd, at);
	else
		put(logs, fd, chunk->data, chunk->size);
}

static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	char now[COOP_CLOCK_TEXT];
	coop_clock_format(coop_clock_wall_ms(), now);
	print(user, chunk, now);
}

static void on_event(void *user, uint64_t request, const char *json)
{
	const struct logs *logs = user;
	json_t *event = json_loads(json, 0, NULL);
	if (strcmp(cli_text(event, "event"), "gap") == 0) {
		const int64_t from = cli_number(event, "from"), to = cli_number(event, "to");
		cli_say("%lld bytes of %s were lost", (long long)(to - from),
			cli_text(event, "stream"));
		json_t *line = json_pack("{s:s, s:s, s:I, s:I}", "type", "gap", "stream",
					 cli_text(event, "stream"), "from", from, "to", to);
		if (logs->cli->json)
			cli_print_json_line(line);
		json_decref(line);
	}
	json_decref(event);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct logs *logs = user;
	logs->ended = true;
	logs->status = status;
	if (status < 0)
		logs->error = *error;
	else
		logs->last = json_loads(json, 0, NULL);
}

/* What the history brought makes room for a command that waits for a reader. */
static int release_history(struct logs *logs, const struct cli_logs_history *h,
			   struct coop_error *error)
{
	int r = 0;
	for (unsigned i = 0; i < CLI_STREAMS && r >= 0; i++) {
		json_t *result = NULL;
		if (h->streams[i])
			r = cli_call(logs->cli, "read",
				     json_pack("{s:s, s:s, s:I, s:i, s:b}", "id", h->id, "stream",
					       cli_stream_name((enum coop_stream)i), "cursor",
					       (json_int_t)h->position[i], "max", 0, "drain", 1),
				     &result, error);
		json_decref(result);
	}
	return r;
}

/* Goes on where the history ended. */
static int follow(struct logs *logs, const struct cli_logs_history *h, struct coop_error *error)
{
	const struct coop_handler handler = {
		.data = on_data, .event = on_event, .done = on_done, .user = logs};
	const bool drain = cli_record_wants_reader(h->record) && !logs->settings->no_drain;
	if (drain && release_history(logs, h, error) < 0)
		return -EREMOTEIO;
	json_t *from = json_object(), *streams = json_array();
	for (unsigned i = 0; i < CLI_STREAMS; i++) {
		const char *name = cli_stream_name((enum coop_stream)i);
		if (!h->streams[i])
			continue;
		(void)json_array_append_new(streams, json_string(name));
		(void)json_object_set_new(from, name, json_integer((json_int_t)h->position[i]));
	}
	int r = cli_submit(logs->cli, "follow",
			   json_pack("{s:s, s:o, s:o, s:b}", "id", h->id, "streams", streams,
				     "from", from, "drain", drain),
			   NULL, 0, &handler, NULL, error);
	while (r >= 0 && !logs->ended) {
		(void)fflush(stdout);
		(void)fflush(stderr);
		if (ferror(stdout))
			return 0;
		r = coop_run(logs->cli->coop, -1, error);
	}
	if (logs->ended && logs->status < 0) {
		*error = logs->error;
		return logs->status;
	}
	return r < 0 && !logs->ended ? r : 0;
}

/* Why a process has no such stream. */
static const char *why_missing(const json_t *record, enum coop_stream stream)
{
	if (strcmp(cli_text(record, "kind"), "pty") == 0)
		return "all its output is in tty";
	if (stream == COOP_PTY)
		return "it has no terminal";
	return "stderr was merged into stdout";
}

/* Which streams, and from where. */
static int choose(const struct settings *s, struct cli_logs_history *h, struct coop_error *error)
{
	const json_t *streams = json_object_get(h->record, "streams");
	const bool all = !s->stream || strcmp(s->stream, "all") == 0;
	const char *name;
	json_t *stream;
	if (s->from.set && all && json_object_size(streams) > 1) {
		cli_error(error, "invalid_input",
			  "--from counts the bytes of one stream: say which with --stream");
		return -EINVAL;
	}
	if (!all && !json_object_get(streams, cli_stream_name(cli_stream_parse(s->stream)))) {
		cli_error(error, "invalid_input", "it has no stream %s: %s", s->stream,
			  why_missing(h->record, cli_stream_parse(s->stream)));
		return -EINVAL;
	}
	json_object_foreach((json_t *)streams, name, stream)
	{
		const enum coop_stream which = cli_stream_parse(name);
		h->streams[which] = all || cli_stream_parse(s->stream) == which;
		h->position[which] = s->from.set ? s->from.value : 0;
	}
	return 0;
}

static void say_lost(const struct cli_logs_history *h)
{
	for (unsigned i = 0; i < CLI_STREAMS; i++)
		if (h->lost[i])
			cli_say("the first %llu bytes of %s are no longer kept",
				(unsigned long long)h->lost[i],
				cli_stream_name((enum coop_stream)i));
}

static int show(struct logs *logs, struct cli_logs_history *h, struct coop_error *error)
{
	const struct settings *s = logs->settings;
	struct cli_logs_tail *tail = s->tail.set ? cli_logs_tail_new(s->tail.value) : NULL;
	h->take = tail ? cli_logs_tail_take : print;
	h->user = tail ? (void *)tail : (void *)logs;
	int r = cli_logs_read(h, error);
	if (tail)
		cli_logs_tail_end(tail, print, logs);
	else
		say_lost(h);
	if (r >= 0 && s->follow)
		r = follow(logs, h, error);
	if (logs->cli->json)
		cli_encoder_flush(&logs->encoder,
				  logs->last ? json_object_get(logs->last, "process") : h->record);
	(void)fflush(stderr);
	return r;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	struct logs logs = {.cli = cli, .settings = settings, .written_to = STDOUT_FILENO};
	struct coop_error error;
	json_t *status = NULL;
	cli->lines = true;
	if (logs.settings->text && !cli->json)
		return cli_misuse(cli, "--text goes with --json");
	if (logs.settings->no_drain && !logs.settings->follow)
		return cli_misuse(cli, "--no-drain goes with -f");
	logs.encoder =
		(struct cli_encoder){.text = logs.settings->text, .emit = emit_line, .user = &logs};
	int r = cli_open(cli, CLI_START_IF_RECORDED, &error);
	if (r >= 0)
		r = cli_call(cli, "status", cli_id_args(operands[0]), &status, &error);
	const json_t *record = json_object_get(status, "process");
	struct cli_logs_history history = {.cli = cli,
					   .id = cli_text(record, "id"),
					   .record = record,
					   .times = logs.settings->timestamps};
	if (r >= 0 && json_is_true(json_object_get(record, "receipt"))) {
		cli_error(&error, "no_such_process", "the output of %s is no longer kept",
			  history.id);
		r = -ENOENT;
	}
	if (r >= 0)
		r = choose(logs.settings, &history, &error);
	if (r >= 0)
		r = show(&logs, &history, &error);
	if (r >= 0 && cli->json && logs.last) {
		json_t *process = json_object_get(logs.last, "process");
		json_t *line = json_pack("{s:s, s:i, s:O}", "type", "exit", "exit_code",
					 cli_record_exit_code(process), "process", process);
		cli_print_json_line(line);
		json_decref(line);
	}
	int code = r < 0 ? cli_fail(cli, operands[0], &error) : CLI_OK;
	json_decref(logs.last);
	json_decref(status);
	return code;
}

static const struct cli_option options[] = {
	{"follow", 'f', CLI_FLAG, offsetof(struct settings, follow), NULL, NULL,
	 "go on until the process has ended"},
	{"stream", 0, CLI_CHOICE, offsetof(struct settings, stream), NULL,
	 "stdout|stderr|tty|pty|all", "only this stream (all)"},
	{"from", 0, CLI_SIZE, offsetof(struct settings, from), "cursor", "OFFSET",
	 "begin at this byte of the stream"},
	{"tail", 'n', CLI_COUNT, offsetof(struct settings, tail), NULL, "N",
	 "only the last N lines"},
	{"timestamps", 't', CLI_FLAG, offsetof(struct settings, timestamps), NULL, NULL,
	 "put the time at which it came before each line"},
	{"no-drain", 0, CLI_FLAG, offsetof(struct settings, no_drain), NULL, NULL,
	 "with -f: only watch, and do not make room for a command that waits for a reader"},
	{"text", 0, CLI_FLAG, offsetof(struct settings, text), NULL, NULL,
	 "with --json: output as text, with U+FFFD for what is not UTF-8, never as base64"},
	{0},
};

const struct cli_verb cli_verb_logs = {
	.name = "logs",
	.synopsis = "ID [-f] [--stream S] [--from OFFSET] [--tail N] [--timestamps] [--text]",
	.summary = "Show what a process has printed",
	.text = "Its stdout comes on stdout and its stderr on stderr, in the order of arrival; a "
		"terminal's output on stdout.\n"
		"With --json: lines {\"type\": \"output\", \"stream\", \"offset\", \"text\" or "
		"\"base64\", \"utf8_valid\"}, with -f at last an\n"
		"\"exit\". Text is never cut inside a character; what is not UTF-8 is base64. With "
		"--text "
		"it is U+FFFD instead, with\n"
		"\"utf8_valid\": false; half a character at the end of what still runs is held "
		"back, and "
		"\"next\" says where to read on\n"
		"(--from). Offsets always count the original bytes.\n"
		"A command with --overflow backpressure waits when its buffer is full. logs -f and "
		"attach take its output: what they\n"
		"have shown is released, and it goes on; logs without -f only looks. Not so of a "
		"coop run in the foreground, which\n"
		"takes the output itself.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
