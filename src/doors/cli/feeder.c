#include "feeder.h"

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
	feeder->piece = NULL;
	feeder->active = false;
}

/* A command that has closed its stdin or ended takes no more: nothing to be said, `yes | head` says nothing either. */
static bool is_silent(const char *code)
{
	static const char *const codes[] = {"closed", "not_running", "no_such_process", "cancelled",
					    "unreachable"};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(code, codes[i]) == 0)
			return true;
	return false;
}

static void done(void *user, uint64_t request, int status, const char *json,
		 const struct coop_error *error)
{
	struct cli_feeder *feeder = user;
	feeder->busy = false;
	if (status >= 0)
		return;
	feeder->active = false;
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

void cli_feeder_pump(struct cli_feeder *feeder)
{
	ssize_t n = read(STDIN_FILENO, feeder->piece, CLI_FEEDER_PIECE);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	/* A terminal that went away gives EIO. That is nobody's end of file. */
	if (n <= 0) {
		feeder->active = false;
		if (feeder->close_at_end && n == 0)
			submit(feeder, "close_stdin", NULL, 0);
		return;
	}
	size_t size = (size_t)n;
	if (feeder->filter && !feeder->filter(feeder->user, feeder->piece, &size)) {
		feeder->active = false;
		feeder->left = true;
	}
	if (size)
		submit(feeder, "write_stdin", feeder->piece, size);
}
