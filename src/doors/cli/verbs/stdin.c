#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "coop.h"
#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

/* One piece at a time, the next when the kernel has taken the last: a command that does not read
 * makes its writer wait. */
#define PIECE (64u << 10)

struct settings {
	bool close, secret;
	struct cli_number timeout;
};

static json_t *write_args(const char *id, const struct settings *s)
{
	json_t *args = cli_id_args(id);
	if (!args)
		return NULL;
	(void)json_object_set_new(args, "timeout_ms",
				  json_integer(s->timeout.set ? (json_int_t)s->timeout.value : -1));
	if (s->secret)
		(void)json_object_set_new(args, "secret", json_true());
	return args;
}

/* 0, or negative with *error filled. */
static int write_piece(struct cli *cli, const char *id, const struct settings *s, const void *data,
		       size_t size, uint64_t *total, struct coop_error *error)
{
	json_t *args = write_args(id, s);
	COOP_AUTO_FREE char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
	json_decref(args);
	if (!text) {
		cli_error(error, "invalid_input", "the id is not valid UTF-8");
		return -EILSEQ;
	}
	struct coop_reply *reply;
	int r = coop_call(cli->coop, "write_stdin", text, data, size, &reply, error);
	if (r < 0)
		return r;
	json_t *result = json_loads(coop_reply_json(reply), 0, NULL);
	coop_reply_free(reply);
	*total += (uint64_t)cli_number(result, "bytes_written");
	if (!json_is_true(json_object_get(result, "success"))) {
		cli_error(error, "timed_out",
			  "the command did not read in time: %llu bytes were written",
			  (unsigned long long)*total);
		r = -ETIMEDOUT;
	}
	json_decref(result);
	return r;
}

static int copy(struct cli *cli, const char *id, const struct settings *s, uint64_t *total,
		struct coop_error *error)
{
	COOP_AUTO_FREE char *piece = malloc(PIECE);
	if (!piece) {
		cli_error(error, "internal", "out of memory");
		return -ENOMEM;
	}
	for (;;) {
		ssize_t n = read(STDIN_FILENO, piece, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		/* A closed stdin has nothing to send; `coop stdin ID --close <&-` is a way to write
		 * it. */
		if (n < 0 && errno != EBADF) {
			cli_error(error, "internal", "cannot read standard input: %s",
				  strerror(errno));
			return -EIO;
		}
		if (n <= 0)
			return 0;
		int r = write_piece(cli, id, s, piece, (size_t)n, total, error);
		if (r < 0)
			return r;
	}
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	struct coop_error error;
	uint64_t total = 0;
	json_t *status = NULL, *closed = NULL;
	int r = cli_open(cli, CLI_ONLY_RUNNING, &error);
	/* Before the first byte is taken from somebody: is there such a process at all? */
	if (r >= 0)
		r = cli_call(cli, "status", cli_id_args(operands[0]), &status, &error);
	json_decref(status);
	if (r >= 0)
		r = copy(cli, operands[0], s, &total, &error);
	if (r >= 0 && s->close)
		r = cli_call(cli, "close_stdin", cli_id_args(operands[0]), &closed, &error);
	if (r < 0)
		return cli_fail(cli, operands[0], &error);
	if (cli->json) {
		json_t *value = json_pack("{s:I, s:b}", "bytes_written", (json_int_t)total,
					  "closed", s->close);
		cli_print_json(value);
		json_decref(value);
	}
	json_decref(closed);
	return CLI_OK;
}

static const struct cli_option options[] = {
	{"close", 0, CLI_FLAG, offsetof(struct settings, close), NULL, NULL,
	 "close the command's stdin afterwards (a terminal gets its end-of-file character)"},
	{"secret", 0, CLI_FLAG, offsetof(struct settings, secret), NULL, NULL,
	 "what is sent is a secret"},
	CLI_ARG("timeout_ms", offsetof(struct settings, timeout),
		"give up if the command does not read for so long (default: wait)"),
	{0},
};

const struct cli_verb cli_verb_stdin = {
	.name = "stdin",
	.synopsis = "ID [--close]",
	.summary = "Send standard input to a process",
	.text = "Copies until its own standard input ends. The process must have been started with "
		"-i or -t.",
	.operation = &coop_operation_write_stdin,
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
