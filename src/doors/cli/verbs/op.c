#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text/base64.h"
#include "coop.h"
#include "doors/cli/cli.h"
#include "doors/cli/terminal/encoder.h"
#include "doors/cli/verbs.h"

struct settings {
	const char *data;
	bool raw;
};

/* All of a file, "-" for stdin. 0, or a negative errno. */
static int read_all(const char *path, struct coop_buf *buf)
{
	const bool own = strcmp(path, "-") == 0;
	int fd = own ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;
	while (r == 0) {
		uint8_t *room = coop_buf_reserve(buf, 64u << 10);
		ssize_t n = room ? read(fd, room, 64u << 10) : -1;
		if (n > 0)
			coop_buf_commit(buf, (size_t)n);
		else if (n == 0)
			break;
		else if (errno != EINTR)
			r = room ? -errno : -ENOMEM;
	}
	if (!own && fd >= 0)
		(void)close(fd);
	return r;
}

/* The reply's bytes, stream by stream. With --raw they are the output itself, otherwise a member of
 * the JSON. */
static void add_data(json_t *result, const struct coop_reply *reply, bool raw)
{
	json_t *all = json_object();
	for (unsigned i = 1; i < CLI_STREAMS; i++) {
		size_t size;
		const void *data = coop_reply_data(reply, (enum coop_stream)i, &size);
		if (size == 0)
			continue;
		if (raw) {
			(void)fwrite(data, 1, size, stdout);
			continue;
		}
		char *text = malloc(coop_base64_length(size) + 1);
		if (!text)
			continue;
		coop_base64_encode(data, size, text);
		(void)json_object_set_new(all, cli_stream_name((enum coop_stream)i),
					  json_stringn(text, coop_base64_length(size)));
		free(text);
	}
	if (json_object_size(all))
		(void)json_object_set(result, "data_base64", all);
	json_decref(all);
}

static int call(struct cli *cli, const struct settings *s, const char *op, const char *args,
		const struct coop_buf *data)
{
	struct coop_error error;
	struct coop_reply *reply;
	int r = cli_open(cli, CLI_START_KEEPER, &error);
	if (r >= 0)
		r = coop_call(cli->coop, op, args, data->data ? coop_buf_front(data) : NULL,
			      coop_buf_size(data), &reply, &error);
	if (r < 0) {
		/* The reply is what was asked for, and an error is one. */
		cli->json = true;
		return cli_fail(cli, NULL, &error);
	}
	json_t *result = json_loads(coop_reply_json(reply), 0, NULL);
	add_data(result, reply, s->raw);
	if (!s->raw)
		cli_print_json(result);
	json_decref(result);
	coop_reply_free(reply);
	return CLI_OK;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	struct coop_buf args = {0}, data = {0};
	struct coop_error error;
	const char *text = count > 1 ? operands[1] : NULL;
	int r = 0;
	if (text && strcmp(text, "-") == 0) {
		r = read_all("-", &args);
		if (r == 0)
			r = coop_buf_append(&args, "", 1);
		text = r == 0 ? (const char *)coop_buf_front(&args) : NULL;
	}
	if (r == 0 && s->data)
		r = read_all(s->data, &data);
	int code;
	if (r < 0) {
		cli_error(&error, "invalid_input", "cannot read %s: %s",
			  s->data ? s->data : "standard input", strerror(-r));
		code = cli_fail(cli, NULL, &error);
	} else {
		code = call(cli, s, operands[0], text, &data);
	}
	coop_buf_clear(&args);
	coop_buf_clear(&data);
	return code;
}

static const struct cli_option options[] = {
	{"data", 0, CLI_TEXT, offsetof(struct settings, data), NULL, "FILE",
	 "the request's bytes (files, stdin), - for standard input"},
	{"raw", 0, CLI_FLAG, offsetof(struct settings, raw), NULL, NULL,
	 "print the reply's bytes, not its JSON"},
	{0},
};

const struct cli_verb cli_verb_op = {
	.name = "op",
	.synopsis = "NAME [JSON]",
	.summary = "Carry out one operation of the keeper and print the reply",
	.text = "JSON holds the arguments; - reads them from standard input. coop op describe "
		"lists all operations.\n"
		"Bytes of the reply are added as \"data_base64\": {\"stdout\": …}.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = 2,
	.run = run,
};
