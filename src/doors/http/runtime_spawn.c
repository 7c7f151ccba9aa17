/* From the start message to a process, or to the reason why there is none. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "doors/http/gateway.h"
#include "doors/http/refusal.h"
#include "doors/http/runtime_socket_private.h"
#include "doors/http/runtime_start.h"
#include "doors/http/ws.h"

/* Relative paths begin at the workspace, as those of files do. */
static int enter_workspace(json_t *args, const char *workspace)
{
	const char *cwd = json_string_value(json_object_get(args, "cwd"));

	if (!cwd || *cwd == '/' || !*cwd)
		return 0;
	return json_object_set_new(args, "cwd", json_sprintf("%s/%s", workspace, cwd));
}

/* What the gateway was told about sandboxes. The workspace is for the user's own processes: other agents have theirs. */
static int add_sandbox(const struct coop_socket *socket, json_t *args)
{
	const struct coop_gateway_options *options = &socket->gateway->options;
	const char *workspace = coop_user_is_own(socket->user) ? options->workspace : NULL;

	if (workspace && enter_workspace(args, workspace) < 0)
		return -1;
	if (!options->profile && !workspace)
		return 0;
	return json_object_set_new(
		args, "sandbox",
		json_pack("{s:s*,s:s*}", "profile", options->profile, "workspace", workspace));
}

/* A record like the keeper's for what it has not kept one of. */
static json_t *make_record(const struct coop_socket *socket, int exit_code)
{
	const json_t *alias = json_object_get(socket->start, "alias");
	const char *id = json_string_value(alias);
	const char *cwd = json_string_value(json_object_get(socket->start, "cwd"));
	char now[COOP_CLOCK_TEXT];

	coop_clock_format(coop_clock_wall_ms(), now);
	return json_pack("{s:s,s:s,s:O?,s:s,s:O?,s:s,s:s,s:s,s:s,s:{s:i},s:{s:i,s:i,s:i}}", "id",
			 id ? id : "unstarted", "state", "exited", "argv",
			 json_object_get(socket->start, "argv"), "cwd",
			 cwd && *cwd == '/' ? cwd : "/", "tag",
			 json_object_get(socket->start, "tag"), "kind",
			 json_object_get(socket->start, "kind") ? "pty" : "pipe", "started_at", now,
			 "ended_at", now, "end_cause", "spawn_failed", "exit", "code", exit_code,
			 "events", "first", 0, "next", 1, "exit", 0);
}

/* Shows the failure with a record, the keeper's or none. */
static void show_failure(struct coop_socket *socket, const json_t *record)
{
	const struct coop_process_view *failure = &socket->failure;
	struct coop_process_view view;
	json_t *made = NULL;

	if (!coop_process_view_read(&view, record) || !view.ended) {
		made = make_record(socket, failure->exit_code);
		if (!coop_process_view_read(&view, made)) {
			coop_socket_refuse(socket, "internal", "out of memory", COOP_WS_INTERNAL);
			json_decref(made);
			return;
		}
	}
	view.status = "failed";
	view.exit_code = failure->exit_code;
	coop_process_view_explain(&view, failure->error);
	coop_socket_failed(socket, &view);
	json_decref(made);
}

static void on_record(void *user, uint64_t request, int status, const char *json,
		      const struct coop_error *error)
{
	struct coop_socket *socket = user;
	json_t *result = status == 0 ? json_loads(json, 0, NULL) : NULL;

	(void)request;
	(void)error;
	socket->call = NULL;
	coop_socket_hold(socket);
	show_failure(socket, json_object_get(result, "process"));
	coop_socket_let_go(socket);
	json_decref(result);
}

/* Whether a refusal is about the command itself. Clients then see a process that has ended, as TypeScript loses the text of an error that comes
 * before `started`. */
static bool shows_as_exit(const struct coop_error *error, const json_t *details)
{
	const char *field = json_string_value(json_object_get(details, "field"));

	if (!strcmp(error->code, "spawn_failed") || !strcmp(error->code, "sandbox_unavailable") ||
	    coop_refusal_of(error).status == 403)
		return true;
	return !strcmp(error->code, "invalid_input") && field &&
	       (!strcmp(field, "cwd") || !strcmp(field, "user"));
}

static void tell_failure(struct coop_socket *socket, const struct coop_error *error,
			 const json_t *details)
{
	const char *step = json_string_value(json_object_get(details, "step"));
	const char *number = json_string_value(json_object_get(details, "errno"));
	const char *id = json_string_value(json_object_get(details, "id"));
	struct coop_handler handler = {.done = on_record, .user = socket};
	bool missing = step && number && !strcmp(step, "exec") && !strcmp(number, "ENOENT");

	socket->failure.exit_code = missing ? 127 : 126;
	coop_process_view_explain(&socket->failure, error->message);
	if (id)
		socket->call = coop_user_call(socket->user, "status", json_pack("{s:s}", "id", id),
					      NULL, 0, &handler);
	if (!socket->call)
		show_failure(socket, NULL);
}

static void tell_error(struct coop_socket *socket, const struct coop_error *error)
{
	struct coop_http_refusal refusal = coop_refusal_of(error);
	char message[sizeof error->message];
	unsigned close_code = COOP_WS_INTERNAL;

	memcpy(message, error->message, sizeof message);
	coop_refusal_text(message);
	if (refusal.status == 429 || refusal.status == 503)
		close_code = COOP_WS_TRY_LATER;
	else if (refusal.status < 500)
		close_code = COOP_WS_POLICY;
	coop_socket_refuse(socket, refusal.status == 413 ? "invalid_argument" : refusal.code,
			   message, close_code);
}

static void on_spawned(void *user, uint64_t request, int status, const char *json,
		       const struct coop_error *error)
{
	struct coop_socket *socket = user;
	struct coop_process_view view;

	(void)request;
	socket->call = NULL;
	coop_socket_hold(socket);
	if (status == 0) {
		json_t *result = json_loads(json, 0, NULL);
		if (coop_process_view_read(&view, json_object_get(result, "process")))
			coop_socket_started(socket, &view, 0, json_object_get(result, "hold"));
		else
			coop_socket_refuse(socket, "internal", "out of memory", COOP_WS_INTERNAL);
		json_decref(result);
	} else {
		json_t *details = json_loads(error->details, 0, NULL);
		if (shows_as_exit(error, details))
			tell_failure(socket, error, details);
		else
			tell_error(socket, error);
		json_decref(details);
	}
	coop_socket_let_go(socket);
}

void coop_socket_spawn(struct coop_socket *socket, const json_t *message)
{
	struct coop_handler handler = {.done = on_spawned, .user = socket};
	char wrong[COOP_START_ERROR_MAX];

	socket->start = coop_start_read(message, wrong);
	if (!socket->start && *wrong) {
		coop_refusal_text(wrong);
		coop_socket_refuse(socket, "invalid_argument", wrong, COOP_WS_POLICY);
		return;
	}
	if (socket->start && add_sandbox(socket, socket->start) == 0) {
		socket->state = COOP_SOCKET_STARTING;
		socket->call = coop_user_call(socket->user, "spawn", json_incref(socket->start),
					      NULL, 0, &handler);
	}
	if (!socket->call)
		coop_socket_refuse(socket, "internal", "out of memory", COOP_WS_INTERNAL);
}
