#include "doors/cli/terminal/feeder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool cli_stdin_useful(void)
{
	struct stat st;
	if (fstat(STDIN_FILENO, &st) < 0)
		return false;
	return !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3);
}

int cli_feeder_start(struct cli_feeder *feeder, struct cli *cli, const char *id, bool close_at_end)
{
	feeder->piece = malloc(CLI_FEEDER_PIECE + 1);
	if (!feeder->piece)
		return -ENOMEM;
	feeder->cli = cli;
	feeder->id = id;
	feeder->close_at_end = close_at_end;
	feeder->active = true;
	return 0;
}

void cli_feeder_free(struct cli_feeder *feeder)
{
	free(feeder->piece);
	coop_buf_clear(&feeder->waiting);
	feeder->piece = NULL;
	feeder->active = false;
}

/* A command that has closed its stdin or ended takes no more: nothing to be said, `yes | head` says
 * nothing either. */
static bool is_silent(const char *code)
{
	static const char *const codes[] = {"closed", "not_running", "no_such_process", "cancelled",
					    "unreachable"};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(code, codes[i]) == 0)
			return true;
	return false;
}

static void send_next(struct cli_feeder *feeder);

static void done(void *user, uint64_t request, int status, const char *json,
		 const struct coop_error *error)
{
	struct cli_feeder *feeder = user;
	feeder->busy = false;
	if (status >= 0) {
		send_next(feeder);
		return;
	}
	feeder->mute = true;
	feeder->active = feeder->active && feeder->filter;
	feeder->close_due = false;
	coop_buf_clear(&feeder->waiting);
	if (!is_silent(error->code))
		cli_say("standard input was not forwarded: %s", error->message);
}

static void submit(struct cli_feeder *feeder, const char *op, const void *data, size_t size)
{
	const struct coop_handler handler = {.done = done, .user = feeder};
	struct coop_error error;
	json_t *args = cli_id_args(feeder->id);
	if (data)
		(void)json_object_set_new(args, "timeout_ms", json_integer(-1));
	feeder->busy = true;
	if (cli_submit(feeder->cli, op, args, data, size, &handler, NULL, &error) < 0)
		feeder->busy = feeder->active = false;
}

/* One thing at a time: what was typed meanwhile, then the end. */
static void send_next(struct cli_feeder *feeder)
{
	const size_t size = coop_buf_size(&feeder->waiting);
	if (feeder->busy)
		return;
	if (size) {
		submit(feeder, "write_stdin", coop_buf_front(&feeder->waiting), size);
		coop_buf_clear(&feeder->waiting);
	} else if (feeder->close_due) {
		feeder->close_due = false;
		submit(feeder, "close_stdin", NULL, 0);
	}
}

/* The end of a file, or Ctrl-D. In a terminal keys go on being looked at, unless that has gone
 * (then it is no terminal). A terminal that went away gives EIO: that is nobody's end of file. */
static void take_end(struct cli_feeder *feeder, bool end)
{
	feeder->close_due = end && feeder->close_at_end && !feeder->mute;
	feeder->active = end && feeder->filter && !feeder->mute && isatty(STDIN_FILENO);
	feeder->mute = true;
	if (feeder->active) {
		size_t none = 0;
		(void)feeder->filter(feeder->user, feeder->piece, &none);
	}
	send_next(feeder);
}

/* Keys for somebody who has not read for so long are dropped, as a terminal drops them. */
static void take_piece(struct cli_feeder *feeder, size_t size)
{
	if (size == 0 || feeder->mute)
		return;
	if (!feeder->busy)
		submit(feeder, "write_stdin", feeder->piece, size);
	else if (coop_buf_size(&feeder->waiting) + size <= CLI_FEEDER_PIECE)
		(void)coop_buf_append(&feeder->waiting, feeder->piece, size);
}

void cli_feeder_pump(struct cli_feeder *feeder)
{
	ssize_t n = read(STDIN_FILENO, feeder->piece, CLI_FEEDER_PIECE);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		take_end(feeder, n == 0);
		return;
	}
	size_t size = (size_t)n;
	if (feeder->filter && !feeder->filter(feeder->user, feeder->piece, &size)) {
		feeder->active = false;
		feeder->left = true;
	}
	take_piece(feeder, size);
}
