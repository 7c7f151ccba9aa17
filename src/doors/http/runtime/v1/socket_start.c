/* From the start message to a process, or to the reason why there is none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "doors/http/net/ws.h"
#include "doors/http/runtime/v1/refusal.h"
#include "doors/http/runtime/v1/socket_state.h"
#include "doors/http/runtime/v1/start_message.h"
#include "doors/http/runtime/v1/view.h"
#include "doors/http/users/user.h"

/* As a shell's: not found, and not to be had for another reason. */
#define MISSING_CODE 127
#define REFUSED_CODE 126

/* Relative paths begin at the workspace, as those of files do. */
static int enter_workspace(json_t *args, const char *workspace)
{
	const char *cwd = json_string_value(json_object_get(args, "cwd"));

	if (!cwd || *cwd == '/' || !*cwd)
		return 0;
	return json_object_set_new(args, "cwd", json_sprintf("%s/%s", workspace, cwd));
}

static int add_sandbox(const struct coop_socket *socket, json_t *args)
{
	const struct coop_door_ceiling ceiling = coop_user_ceiling(socket->user);

	if (ceiling.workspace && enter_workspace(args, ceiling.workspace) < 0)
		return -1;
	if (!ceiling.profile && !ceiling.workspace)
		return 0;
	return json_object_set_new(args, "sandbox",
				   json_pack("{s:s*,s:s*}", "profile", ceiling.profile, "workspace",
					     ceiling.workspace));
}

/* A record like the keeper's for what it has not kept one of. Its id is nobody's: to kill what was
 * refused must not hit a process that has the id which was asked for. */
static json_t *make_record(const struct coop_socket *socket, int exit_code)
{
	const char *cwd = json_string_value(json_object_get(socket->start, "cwd"));
	char id[sizeof "refused-" + 16], now[COOP_CLOCK_TEXT];
	uint64_t random;

	if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
		return NULL;
	(void)snprintf(id, sizeof id, "refused-%016llx", (unsigned long long)random);
	coop_clock_format(coop_clock_wall_ms(), now);
	return json_pack("{s:s,s:s,s:O?,s:s,s:O?,s:s,s:s,s:s,s:s,s:{s:i},s:{s:i,s:i,s:i}}", "id",
			 id, "state", "exited", "argv", json_object_get(socket->start, "argv"),
			 "cwd", cwd && *cwd == '/' ? cwd : "/", "tag",
			 json_object_get(socket->start, "tag"), "kind",
			 json_object_get(socket->start, "kind") ? "pty" : "pipe", "started_at", now,
			 "ended_at", now, "end_cause", "spawn_failed", "exit", "code", exit_code,
			 "events", "first", 0, "next", 2, "exit", 1);
}

static void show_refusal(struct coop_socket *socket, int exit_code, const char *code,
			 const char *message)
{
	struct coop_process_view view;
	json_t *made = make_record(socket, exit_code);

	if (coop_process_view_read(&view, made)) {
		view.status = "failed";
		view.exit_code = exit_code;
		coop_process_view_explain(&view, message);
		coop_socket_failed(socket, &view, code);
	} else {
		coop_socket_no_memory(socket);
	}
	json_decref(made);
}

void coop_socket_refuse(struct coop_socket *socket, const char *code, const char *message)
{
	show_refusal(socket, REFUSED_CODE, code, message);
}

static void on_record(void *user, uint64_t request, int status, const char *json,
		      const struct coop_error *error)
{
	struct coop_socket *socket = user;
	json_t *result = status == 0 ? json_loads(json, 0, NULL) : NULL;
	struct coop_process_view view;

	(void)request;
	(void)error;
	socket->call = NULL;
	coop_socket_hold(socket);
	/* One that ended as it began: its reason is among its events, for whoever attaches as well.
	 * */
	if (coop_process_view_read(&view, json_object_get(result, "process")) && view.ended)
		coop_socket_started(socket, &view, 0, NULL);
	else
		show_refusal(socket, socket->failure.exit_code, NULL, socket->failure.error);
	coop_socket_let_go(socket);
	json_decref(result);
}

/* The keeper has refused the start, or it has failed. What it keeps a record of is shown with that.
 * */
static void tell_failure(struct coop_socket *socket, const struct coop_error *error)
{
	json_t *details = json_loads(error->details, 0, NULL);
	const char *step = json_string_value(json_object_get(details, "step"));
	const char *number = json_string_value(json_object_get(details, "errno"));
	const char *id = json_string_value(json_object_get(details, "id"));
	struct coop_handler handler = {.done = on_record, .user = socket};
	struct coop_http_refusal refusal = coop_refusal_of(error);
	bool missing = step && number && !strcmp(step, "exec") && !strcmp(number, "ENOENT");

	const char *alias = json_string_value(json_object_get(socket->start, "alias"));
	char taken[COOP_START_ID_MAX + 64];

	/* What clients call an id is an alias to the keeper. */
	(void)snprintf(taken, sizeof taken, "the id %s is that of a process that runs",
		       alias ? alias : "");
	socket->failure.exit_code = missing ? MISSING_CODE : REFUSED_CODE;
	coop_process_view_explain(&socket->failure,
				  strcmp(error->code, "exists") != 0 ? error->message : taken);
	if (id)
		socket->call = coop_user_call(socket->user, "status", json_pack("{s:s}", "id", id),
					      NULL, 0, &handler);
	if (!socket->call)
		show_refusal(socket, socket->failure.exit_code,
			     refusal.status == 413 ? "invalid_argument" : refusal.code,
			     socket->failure.error);
	json_decref(details);
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
			coop_socket_no_memory(socket);
		json_decref(result);
	} else {
		tell_failure(socket, error);
	}
	coop_socket_let_go(socket);
}

void coop_socket_spawn(struct coop_socket *socket, const json_t *message)
{
	struct coop_handler handler = {.done = on_spawned, .user = socket};
	char wrong[COOP_START_ERROR_MAX];

	socket->start = coop_start_read(message, wrong);
	if (!socket->start && *wrong) {
		coop_socket_refuse(socket, "invalid_argument", wrong);
		return;
	}
	if (socket->start && add_sandbox(socket, socket->start) == 0) {
		socket->state = COOP_SOCKET_STARTING;
		socket->call = coop_user_call(socket->user, "spawn", json_incref(socket->start),
					      NULL, 0, &handler);
	}
	if (!socket->call)
		coop_socket_no_memory(socket);
}
