/* Requests to the keeper, as JSON values. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/paths.h"
#include "client/scan.h"
#include "coop.h"
#include "doors/cli/clean.h"
#include "doors/cli/cli.h"
#include "doors/cli/options.h"
#include "doors/cli/token_file.h"

/* What is wrong with the token, with where it came from: the library does not know. */
static void explain_token(const struct cli *cli, struct coop_error *error)
{
	char text[sizeof(error->message)];
	const char *said = error->message;
	if (strcmp(error->code, "permission_denied") == 0)
		said = "no such token: it is wrong, has expired or was revoked";
	else if (strncmp(said, "token: ", 7) == 0)
		said += 7;
	int n = snprintf(text, sizeof(text), "%s%.200s: %.250s",
			 cli->token_file ? "--token-file " : "COOP_TOKEN",
			 cli->token_file ? cli->token_file : "", said);
	if (n > 0)
		memcpy(error->message, text, sizeof(text));
}

/* Has an earlier keeper left word of what it ran? */
static bool recorded(void)
{
	char folder[COOP_PATHS_MAX], path[COOP_PATHS_MAX + 16];
	if (coop_paths_state(folder, sizeof(folder)) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "%s/records.db", folder);
	return access(path, F_OK) == 0;
}

/* What it means that none is running. Who comes with a token must not be told that all is well: it
 * may be wrong. */
static int no_keeper(const struct cli *cli, struct coop_error *error)
{
	const char *token = getenv("COOP_TOKEN");
	if (cli->token_file || (token && *token)) {
		cli_error(error, "unreachable",
			  "no keeper is running, so that the token of %s cannot be checked (coop "
			  "run starts one)",
			  cli->token_file ? "--token-file" : "COOP_TOKEN");
		return -ENOTCONN;
	}
	cli_error(error, "unreachable", "no keeper is running, so there are no processes (%s)",
		  recorded() ? "coop history lists earlier ones" : "coop run starts both");
	return -ECONNREFUSED;
}

int cli_open(struct cli *cli, enum cli_start start, struct coop_error *error)
{
	char token[CLI_TOKEN_SIZE];
	if (start == CLI_START_IF_RECORDED)
		start = recorded() ? CLI_START_KEEPER : CLI_ONLY_RUNNING;
	struct coop_options options = {.no_start = start == CLI_ONLY_RUNNING};
	int r = 0;
	if (cli->token_file) {
		r = cli_token_read(cli->token_file, token, error);
		options.token = token;
	}
	if (r == 0)
		r = coop_open(&options, &cli->coop, error);
	/* -EACCES is also what a socket says that may not be opened. */
	if (r < 0 && (strcmp(error->code, "permission_denied") == 0 ||
		      coop_scan_says(error->details, "field", "token")))
		explain_token(cli, error);
	return r == -ECONNREFUSED && start == CLI_ONLY_RUNNING ? no_keeper(cli, error) : r;
}

void cli_close(struct cli *cli)
{
	coop_close(cli->coop);
	cli->coop = NULL;
}

int cli_nothing_to_do(const struct cli *cli, json_t *result, const char *line)
{
	if (cli->json)
		cli_print_json(result);
	else
		(void)puts(line);
	json_decref(result);
	return CLI_OK;
}

json_t *cli_id_args(const char *id)
{
	return json_pack("{s:s}", "id", id);
}

json_t *cli_args(const struct cli *cli, const char *name, const char *text)
{
	json_t *args = json_object();
	const char *bad;
	if (cli_options_fields(cli->options, cli->settings, args, &bad) < 0 ||
	    (name && json_object_set_new(args, name, json_string(text)) < 0)) {
		json_decref(args);
		return NULL;
	}
	return args;
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
	return cli_call_data(cli, op, args, NULL, 0, ret, error);
}

int cli_call_data(struct cli *cli, const char *op, json_t *args, const void *data, size_t size,
		  json_t **ret, struct coop_error *error)
{
	COOP_AUTO_FREE char *text = take_args(args, error);
	if (!text)
		return -EILSEQ;
	struct coop_reply *reply;
	int r = coop_call(cli->coop, op, text, data, size, &reply, error);
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

/* A result that is nothing but a record, or a list of them, is given as that. Takes over the
 * result. */
static json_t *unwrap(json_t *result)
{
	json_t *only = json_object_iter_value(json_object_iter(result));
	if (json_object_size(result) != 1 || (!json_is_object(only) && !json_is_array(only)))
		return result;
	json_incref(only);
	json_decref(result);
	return only;
}

/* A result that is shown in words: tags, folders and command lines are what somebody else chose. */
static void clean_for_people(const struct cli *cli, json_t *result)
{
	if (!cli->json)
		cli_clean_json(result);
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
		const struct cli quiet = {.verb = cli->verb, .options = cli->options};
		cli_error_translate(cli, &error);
		*code = cli_fail(&quiet, id, &error);
		return cli_error_json(&error);
	}
	clean_for_people(cli, result);
	if (show && !show(cli, id, result))
		*code = cli_failure(cli->verb);
	return unwrap(result);
}

int cli_each(struct cli *cli, const char *op, json_t *args, size_t count, char **ids,
	     cli_show *show)
{
	struct coop_error error;
	if (!cli->coop && cli_open(cli, CLI_ONLY_RUNNING, &error) < 0) {
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
		return cli_fail(cli, cli->about, &error);
	clean_for_people(cli, result);
	bool good = !show || show(cli, NULL, result);
	result = unwrap(result);
	if (cli->json)
		cli_print_json(result);
	json_decref(result);
	return good ? CLI_OK : cli_failure(cli->verb);
}

int cli_run_operation(struct cli *cli, size_t count, char **operands)
{
	const struct cli_verb *verb = cli->verb;
	const char *op = verb->operation->name;
	if (!verb->operand && count)
		return cli_each(cli, op, cli_args(cli, NULL, NULL), count, operands, verb->show);
	cli->about = operands[0];
	return cli_once(cli, verb->start, op,
			cli_args(cli, count ? verb->operand : NULL, operands[0]), verb->show);
}
