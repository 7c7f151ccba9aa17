#include <stdio.h>
#include <stdlib.h>

#include "coop.h"
#include "doors/cli/cli.h"
#include "doors/cli/options.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

struct settings {
	struct cli_number timeout;
};

/* One process that is waited for. All are asked for at once: the time limit counts for them
 * together. */
struct waiter {
	struct cli *cli;
	const char *id;
	json_t *answer; /* the result or {"error"}; NULL: not yet */
	int code;
};

static const struct cli_option options[] = {
	CLI_ARG("timeout_ms", offsetof(struct settings, timeout),
		"wait no longer than this; the process goes on (exit code 124)"),
	{0},
};

static int show(struct waiter *waiter, const json_t *result)
{
	const json_t *record = json_object_get(result, "process");
	if (json_is_true(json_object_get(result, "timed_out"))) {
		cli_say("%s is still running", waiter->id);
		return CLI_TIMED_OUT;
	}
	if (!waiter->cli->json) {
		char state[CLI_TEXT_MAX];
		cli_record_state(record, state);
		(void)printf("%s: %s\n", cli_text(record, "id"), state);
		cli_record_say_facts(record);
		cli_record_say_left_behind(record);
	}
	return cli_record_exit_code(record);
}

static void refused(struct waiter *waiter, const struct coop_error *error)
{
	/* The error is a part of the one value that is printed at the end. */
	const struct cli quiet = {.verb = waiter->cli->verb, .options = waiter->cli->options};
	struct coop_error translated = *error;
	cli_error_translate(waiter->cli, &translated);
	waiter->answer = cli_error_json(&translated);
	waiter->code = cli_fail(&quiet, waiter->id, &translated);
}

static void done(void *user, uint64_t request, int status, const char *json,
		 const struct coop_error *error)
{
	struct waiter *waiter = user;
	if (status < 0) {
		refused(waiter, error);
		return;
	}
	waiter->answer = json_loads(json, 0, NULL);
	waiter->code = show(waiter, waiter->answer);
}

static void submit(struct waiter *waiter, const struct settings *s)
{
	const struct coop_handler handler = {.done = done, .user = waiter};
	struct coop_error error;
	const char *bad;
	json_t *args = cli_id_args(waiter->id);
	if (args)
		(void)cli_options_fields(waiter->cli->options, s, args, &bad);
	(void)json_object_set_new(args, "tidy", json_true());
	if (cli_submit(waiter->cli, "wait", args, NULL, 0, &handler, NULL, &error) < 0)
		refused(waiter, &error);
}

static void print_answers(const struct waiter *waiters, size_t count)
{
	json_t *all = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append(all, waiters[i].answer);
	cli_print_json(count == 1 ? waiters[0].answer : all);
	json_decref(all);
}

static int wait_all(struct cli *cli, const struct settings *s, struct waiter *waiters, size_t count,
		    char **ids)
{
	struct coop_error error;
	int code = CLI_OK;
	for (size_t i = 0; i < count; i++) {
		waiters[i] = (struct waiter){.cli = cli, .id = ids[i]};
		submit(&waiters[i], s);
	}
	/* An end of the connection is told to every open request, so that there is nothing to be
	 * done about it here. */
	while (coop_pending(cli->coop) > 0 && coop_run(cli->coop, -1, &error) >= 0)
		;
	for (size_t i = 0; i < count && code == CLI_OK; i++)
		code = waiters[i].code;
	if (cli->json)
		print_answers(waiters, count);
	for (size_t i = 0; i < count; i++)
		json_decref(waiters[i].answer);
	return code;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	struct coop_error error;
	if (cli_open(cli, CLI_START_IF_RECORDED, &error) < 0)
		return cli_fail(cli, count == 1 ? operands[0] : NULL, &error);
	struct waiter *waiters = calloc(count, sizeof(*waiters));
	if (!waiters)
		return cli_failure(cli->verb);
	int code = wait_all(cli, settings, waiters, count, operands);
	free(waiters);
	return code;
}

const struct cli_verb cli_verb_wait = {
	.name = "wait",
	.synopsis = "ID… [--timeout DURATION]",
	.summary = "Wait until processes have ended, and give their exit code",
	.text = "The exit code is that of coop run: the command's own, 128+n for signal n, 124 if "
		"its time was up or if the\n"
		"wait's was, 125 if coop itself failed or the process was lost. Of several ids it "
		"is the first, in the "
		"order given, that is not 0.",
	.operation = &coop_operation_wait,
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.failure = CLI_OWN_FAILURE,
	.run = run,
};
