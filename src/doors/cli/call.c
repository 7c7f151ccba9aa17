/* Requests to the keeper, as JSON values. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli.h"

int cli_open(struct cli *cli, enum cli_start start, struct coop_error *error)
{
	const struct coop_options options = {.no_start = start == CLI_ONLY_RUNNING};
	int r = coop_open(&options, &cli->coop, error);
	if (r == -ECONNREFUSED && start == CLI_ONLY_RUNNING)
		cli_error(error, "unreachable",
			  "no keeper is running, so there are no processes (coop run starts both)");
	return r;
}

void cli_close(struct cli *cli)
{
	coop_close(cli->coop);
	cli->coop = NULL;
}

json_t *cli_id_args(const char *id)
{
	return json_pack("{s:s}", "id", id);
}

/* The request's arguments as text, for the caller to free. */
static char *take_args(json_t *args, struct coop_error *error)
{
	char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
	json_decref(args);
	if (!text)
		cli_error(error, "invalid_input", "an argument is not valid UTF-8");
	return text;
}

int cli_call(struct cli *cli, const char *op, json_t *args, json_t **ret, struct coop_error *error)
{
	COOP_AUTO_FREE char *text = take_args(args, error);
	if (!text)
		return -EILSEQ;
	struct coop_reply *reply;
	int r = coop_call(cli->coop, op, text, NULL, 0, &reply, error);
	if (r < 0)
		return r;
	json_t *result = json_loads(coop_reply_json(reply), 0, NULL);
	coop_reply_free(reply);
	if (!result) {
		cli_error(error, "protocol", "the keeper's answer to %s cannot be read", op);
		return -EPROTO;
	}
	*ret = result;
	return 0;
}

int cli_submit(struct cli *cli, const char *op, json_t *args, const void *data, size_t size,
	       const struct coop_handler *handler, uint64_t *ret_request, struct coop_error *error)
{
	COOP_AUTO_FREE char *text = take_args(args, error);
	if (!text)
		return -EILSEQ;
	uint64_t request;
	int r = coop_submit(cli->coop, op, text, data, size, handler, &request, error);
	if (r >= 0 && ret_request)
		*ret_request = request;
	return r;
}

/* One id of cli_each(): its result, or its error for JSON. */
static json_t *call_one(struct cli *cli, const char *op, const json_t *common, char *id,
			cli_show *show, int *code)
{
	struct coop_error error;
	json_t *args = json_deep_copy(common), *name = json_string(id), *result = NULL;
	if (!name || json_object_set_new(args, "id", name) < 0) {
		json_decref(args);
		args = NULL;
	}
	if (cli_call(cli, op, args, &result, &error) < 0) {
		/* The error is a part of the one value that is printed at the end. */
		const struct cli quiet = {.verb = cli->verb};
		cli_error_translate(cli, &error);
		*code = cli_fail(&quiet, id, &error);
		return cli_error_json(&error);
	}
	if (show && !show(cli, id, result))
		*code = cli->verb->failure;
	/* A result that is nothing but a record is given as the record. */
	json_t *process = json_object_get(result, "process");
	if (process && json_object_size(result) == 1) {
		json_incref(process);
		json_decref(result);
		return process;
	}
	return result;
}

int cli_each(struct cli *cli, const char *op, json_t *args, size_t count, char **ids,
	     cli_show *show)
{
	struct coop_error error;
	if (cli_open(cli, CLI_ONLY_RUNNING, &error) < 0) {
		json_decref(args);
		return cli_fail(cli, count == 1 ? ids[0] : NULL, &error);
	}
	int code = CLI_OK;
	json_t *all = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(all, call_one(cli, op, args, ids[i], show, &code));
	if (cli->json)
		cli_print_json(count == 1 ? json_array_get(all, 0) : all);
	json_decref(all);
	json_decref(args);
	return code;
}

int cli_once(struct cli *cli, enum cli_start start, const char *op, json_t *args, cli_show *show)
{
	struct coop_error error;
	json_t *result;
	int r = cli->coop ? 0 : cli_open(cli, start, &error);
	if (r < 0)
		json_decref(args);
	else
		r = cli_call(cli, op, args, &result, &error);
	if (r < 0)
		return cli_fail(cli, NULL, &error);
	if (cli->json)
		cli_print_json(result);
	bool good = !show || show(cli, NULL, result);
	json_decref(result);
	return good ? CLI_OK : cli->verb->failure;
}
