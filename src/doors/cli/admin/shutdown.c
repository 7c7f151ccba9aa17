#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "coop.h"
#include "doors/cli/cli.h"
#include "doors/cli/options.h"
#include "doors/cli/receipt.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

struct settings {
	struct cli_number grace;
};

static const struct cli_option options[] = {
	CLI_ARG("grace_ms", offsetof(struct settings, grace),
		"time between SIGTERM and SIGKILL for what still runs (5s, at most 30s)"),
	{0},
};

/* The answer comes just before the keeper leaves. Its end is what was asked for, so that is waited
 * for too. */
static void wait_for_end(int pidfd)
{
	struct pollfd pollfd = {.fd = pidfd, .events = POLLIN};
	if (pidfd >= 0)
		(void)poll(&pollfd, 1, 5000);
}

static int shut_down(struct cli *cli, const void *settings)
{
	struct coop_error error;
	json_t *args = json_object(), *result;
	const char *bad;
	(void)cli_options_fields(cli->options, settings, args, &bad);
	COOP_AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, coop_keeper_pid(cli->coop), 0);
	if (cli_call(cli, "shutdown", args, &result, &error) < 0)
		return cli_fail(cli, NULL, &error);
	wait_for_end(pidfd);

	const long long ended = (long long)cli_number(result, "ended");
	if (cli->json)
		cli_print_json(result);
	else
		(void)printf("the keeper has ended, with %lld %s\n", ended,
			     ended == 1 ? "process" : "processes");
	const bool gone = cli_none_alive(NULL, result);
	json_decref(result);
	return gone ? CLI_OK : cli_failure(cli->verb);
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	struct coop_error error;
	int r = cli_open(cli, CLI_ONLY_RUNNING, &error);
	if (r == -ECONNREFUSED)
		return cli_nothing_to_do(
			cli,
			json_pack("{s:i, s:i, s:b}", "ended", 0, "survivors", 0, "was_running", 0),
			"no keeper is running");
	return r < 0 ? cli_fail(cli, NULL, &error) : shut_down(cli, settings);
}

const struct cli_verb cli_verb_shutdown = {
	.name = "shutdown",
	.synopsis = "[--grace DURATION]",
	.summary = "End the keeper and every process that it keeps",
	.operation = &coop_operation_shutdown,
	.options = options,
	.settings_size = sizeof(struct settings),
	.run = run,
};
