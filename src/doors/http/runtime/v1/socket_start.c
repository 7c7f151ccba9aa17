/* From the start message to a process, or to the reason why there is none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "doors/http/runtime/start.h"
#include "doors/http/runtime/v1/refusal.h"
#include "doors/http/runtime/v1/socket_state.h"
#include "doors/http/runtime/v1/start_message.h"
#include "doors/http/runtime/v1/view.h"
#include "doors/http/users/detail.h"
#include "doors/http/users/user.h"

/* As a shell's: not found, and not to be had for another reason. */
#define MISSING_CODE 127
#define REFUSED_CODE 126

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

static void explain(struct coop_socket *socket, const struct coop_error *error)
{
	struct coop_http_refusal refusal = coop_refusal_of(error);
	json_t *details = json_loads(error->details, 0, NULL);
	bool recorded = json_object_get(details, "id");
	bool missing =
		coop_detail_is(error, "step", "exec") && coop_detail_is(error, "errno", "ENOENT");
	const char *alias = json_string_value(json_object_get(socket->start, "alias"));
	const char *code = refusal.status == 413 ? "invalid_argument" : refusal.code;
	char taken[COOP_START_ID_MAX + 64];

	/* What clients call an id is an alias to the keeper. */
	(void)snprintf(taken, sizeof taken, "the id %s is that of a process that runs",
		       alias ? alias : "");
	show_refusal(socket, missing ? MISSING_CODE : REFUSED_CODE, recorded ? NULL : code,
		     strcmp(error->code, "exists") != 0 ? error->message : taken);
	json_decref(details);
}

/* What clients are told of a start that the keeper did not take, or that has failed. Its record is
 * shown, where there is one: the reason is among its events, for whoever attaches as well. */
static void on_failed(void *context, const struct coop_error *error, const json_t *record)
{
	struct coop_socket *socket = context;
	struct coop_process_view view;

	socket->starting = false;
	coop_socket_hold(socket);
	if (coop_process_view_read(&view, record) && view.ended)
		coop_socket_started(socket, &view, 0, NULL);
	else
		explain(socket, error);
	coop_socket_let_go(socket);
}

static void on_started(void *context, const json_t *record, const json_t *hold)
{
	struct coop_socket *socket = context;
	struct coop_process_view view;

	socket->starting = false;
	coop_socket_hold(socket);
	if (coop_process_view_read(&view, record))
		coop_socket_started(socket, &view, 0, hold);
	else
		coop_socket_no_memory(socket);
	coop_socket_let_go(socket);
}

void coop_socket_spawn(struct coop_socket *socket, const json_t *message)
{
	const struct coop_start_handler handler = {on_started, on_failed, socket};
	char wrong[COOP_START_ERROR_MAX];

	socket->start = coop_start_read(message, wrong);
	if (!socket->start && *wrong) {
		coop_socket_refuse(socket, "invalid_argument", wrong);
		return;
	}
	socket->state = COOP_SOCKET_STARTING;
	socket->starting = socket->start && coop_start(socket->user, socket->start, &handler) == 0;
	if (!socket->starting)
		coop_socket_no_memory(socket);
}
