#include "keeper/ops/preflight.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io/log.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/agents/op_agent.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/config.h"
#include "keeper/conf/env.h"
#include "keeper/confine/ceiling.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/host/missing.h"
#include "keeper/host/scouts.h"
#include "keeper/host/views.h"
#include "keeper/link/connection.h"
#include "keeper/link/operation.h"
#include "keeper/link/request.h"
#include "keeper/ops/op_operator.h"
#include "keeper/ops/op_spawn.h"
#include "keeper/owner/agent.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/layout/silence.h"
#include "sandbox/policy/credentials.h"
#include "sandbox/policy/members.h"

/* PLACE: it is looked at. TREE: what lies in it, too. */
enum reach { PLACE, TREE };

struct preflight {
	struct coop_keeper *keeper;
	const struct coop_request *request;
	const struct coop_agent *agent; /* whose settings count; NULL: nobody's */
	struct coop_errand *errand;     /* NULL: all is at hand so far */
	char last[COOP_PATH_SIZE];      /* that was asked about: often the next is the same */
	enum reach last_reach;
	int failed;
};

/* An errand is made when the first path needs one: mostly none does. */
static void send_for(struct preflight *flight, const char *field, const char *path, bool silent)
{
	if (!flight->errand)
		flight->errand = coop_errand_new();
	int r = flight->errand ? coop_errand_add(flight->errand, field, path, silent) : -ENOMEM;
	/* So many on disks of this host's own are the loop's to look up. */
	if (r < 0 && !flight->failed && (silent || r != -E2BIG))
		flight->failed = r;
}

/* An absolute path, as the request's field calls it. */
static void ask(struct preflight *flight, const char *field, const char *path, enum reach reach)
{
	const struct coop_silence *silence = coop_silence_of(flight->keeper);
	char real[COOP_PATH_SIZE];
	/* Only then it matters where the path leads. */
	bool below = reach == TREE && silence->count;
	size_t at = 0;

	if (*path != '/' || (reach <= flight->last_reach && !strcmp(path, flight->last)))
		return;
	int r = below ? coop_silence_resolve(silence, path, real) : coop_silence_ask(silence, path);
	if (r == -EREMOTE || r == -EAGAIN)
		send_for(flight, field, path, r == -EREMOTE);
	for (const char *point;
	     below && r == 0 && (point = coop_silence_below(silence, real, &at));)
		send_for(flight, field, point, true);
	if (snprintf(flight->last, sizeof flight->last, "%s", path) >= (int)sizeof flight->last)
		*flight->last = 0;
	flight->last_reach = reach;
}

/* A word of a policy: with the home for `~`, and of a pattern the folder that it begins in. */
static void ask_word(struct preflight *flight, const char *field, const char *word,
		     enum reach reach)
{
	char path[COOP_PATH_SIZE];

	if (!word || coop_path_expand(word, coop_env_home(), path) < 0)
		return;
	size_t plain = strcspn(path, "*?[\\");
	if (path[plain]) {
		path[plain] = 0;
		coop_path_parent(path, path);
		reach = TREE;
	}
	ask(flight, field, path, reach);
}

static void ask_array(struct preflight *flight, const char *prefix, const char *name,
		      const json_t *list, enum reach reach)
{
	char field[64];

	for (size_t i = 0; i < json_array_size(list); i++) {
		(void)snprintf(field, sizeof field, "%s%s[%zu]", prefix, name, i);
		ask_word(flight, field, json_string_value(json_array_get(list, i)), reach);
	}
}

static void ask_list(struct preflight *flight, const char *field, char *const *list,
		     enum reach reach)
{
	for (; list && *list; list++)
		ask_word(flight, field, *list, reach);
}

/* Of a home only the names of credentials are looked at; a mount on the way to one counts. */
static void ask_home(struct preflight *flight, const char *field, const char *home)
{
	const struct coop_silence *silence = coop_silence_of(flight->keeper);
	char path[COOP_PATH_SIZE];
	size_t at = 0;

	if (!home || *home != '/')
		return;
	ask(flight, field, home, PLACE);
	for (const char *point; (point = coop_silence_below(silence, home, &at));) {
		for (uint32_t i = 0; i < coop_credentials_count; i++) {
			if (coop_path_join(home, coop_credentials[i], path) == 0 &&
			    coop_path_below(path, point)) {
				send_for(flight, field, point, true);
				break;
			}
		}
	}
}

/* What the request itself says of its sandbox. */
static void ask_sandbox(struct preflight *flight, enum reach reach)
{
	const json_t *sandbox = coop_arg(flight->request->args, "sandbox");

	ask_word(flight, "sandbox.workspace", coop_arg_string(sandbox, "workspace", NULL), reach);
	for (size_t i = 0; sandbox && i < COOP_LIST_ROWS; i++)
		ask_array(flight, "sandbox.", coop_list_rows[i].name,
			  coop_arg(sandbox, coop_list_rows[i].name),
			  coop_list_rows[i].grants ? reach : PLACE);
}

/* What settings or the operator say of it. */
static void ask_policy(struct preflight *flight, const struct coop_sandbox_policy *policy)
{
	ask_word(flight, "sandbox.workspace", policy->workspace, TREE);
	for (size_t i = 0; i < COOP_LIST_ROWS; i++)
		ask_list(flight, coop_list_rows[i].field, coop_list_of(policy, &coop_list_rows[i]),
			 coop_list_rows[i].grants ? TREE : PLACE);
}

/* Of the operator's own profiles only those count that this start can come to: the paths of others
 * may be silent. */
static bool names_profile(const struct preflight *flight, const char *name)
{
	const json_t *args = flight->request->args;
	const char *const said[] = {coop_arg_string(coop_arg(args, "sandbox"), "profile", NULL),
				    coop_arg_string(args, "sandbox_profile", NULL),
				    coop_conf_of(flight->keeper)->profiles.defaults.name};

	for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
		if (said[i] && !strcmp(said[i], name))
			return true;
	}
	return false;
}

/* And whoever configured the door that it comes through. */
static void ask_operator(struct preflight *flight)
{
	const struct coop_profiles *profiles = &coop_conf_of(flight->keeper)->profiles;
	const struct coop_sandbox_policy *door = coop_ceiling_policy(flight->request->conn);

	if (door)
		ask_policy(flight, door);
	ask_policy(flight, &profiles->defaults);
	ask_policy(flight, &profiles->ceiling);
	for (size_t i = 0; i < profiles->own_count; i++) {
		if (names_profile(flight, profiles->own[i].name))
			ask_policy(flight, &profiles->own[i]);
	}
}

/* All levels: a start looks at the folders of each. */
static void ask_agents(struct preflight *flight)
{
	for (const struct coop_agent *agent = flight->agent; agent; agent = agent->parent) {
		ask_list(flight, "workspace", agent->settings.workspace, TREE);
		ask_policy(flight, &agent->settings.sandbox);
	}
}

/* All that commands of that kind have as their home. */
static void ask_homes(struct preflight *flight)
{
	const json_t *args = flight->request->args;

	ask_home(flight, "HOME", coop_env_home());
	ask_home(flight, "HOME", getenv("HOME"));
	ask_home(flight, "env.HOME",
		 json_string_value(json_object_get(coop_arg(args, "env"), "HOME")));
	ask_home(flight, "base_env.HOME",
		 json_string_value(json_object_get(coop_arg(args, "base_env"), "HOME")));
}

static bool is_minimal(const struct preflight *flight)
{
	const struct coop_profiles *profiles = &coop_conf_of(flight->keeper)->profiles;
	const json_t *sandbox = coop_arg(flight->request->args, "sandbox");
	bool minimal = !strcmp(coop_arg_string(sandbox, "root", ""), "minimal") ||
		       profiles->defaults.root == COOP_ROOT_MINIMAL ||
		       profiles->ceiling.root == COOP_ROOT_MINIMAL;

	for (const struct coop_agent *agent = flight->agent; agent; agent = agent->parent)
		minimal |= agent->settings.sandbox.root == COOP_ROOT_MINIMAL;
	return minimal;
}

/* As coop_cwd_open names it. Where it is not seen anyway it is shown, with all that is in it; the
 * home, in which people mount things, is seen in every view but a minimal one. */
static void ask_cwd(struct preflight *flight)
{
	char *const *roots = flight->agent ? coop_agent_workspace(flight->agent) : NULL;
	const char *start = roots && *roots ? *roots : coop_env_home();
	const char *given = coop_arg_string(flight->request->args, "cwd", start);
	bool home = !given[strspn(given, "/")] || !strcmp(given, coop_env_home());
	char path[2 * COOP_PATH_SIZE];

	int n = *given == '/' ? snprintf(path, sizeof path, "%s", given)
			      : snprintf(path, sizeof path, "%s/%s", start, given);
	if (n > 0 && (size_t)n < sizeof path)
		ask(flight, "cwd", path, home && !is_minimal(flight) ? PLACE : TREE);
}

/* Files that the request brings, and the program that policies look at. */
static void ask_files(struct preflight *flight)
{
	const json_t *args = flight->request->args, *files = coop_arg(args, "file_injections");
	const char *program = json_string_value(json_array_get(coop_arg(args, "argv"), 0));
	char field[64];

	if (program)
		ask(flight, "argv[0]", program, PLACE);
	for (size_t i = 0; i < json_array_size(files); i++) {
		const char *path =
			json_string_value(json_object_get(json_array_get(files, i), "path"));
		(void)snprintf(field, sizeof field, "file_injections[%zu].path", i);
		if (path)
			ask(flight, field, path, PLACE);
	}
}

/* Whether nothing but the working directory is looked at: the user's own command without any
 * sandbox. */
static bool is_plain(const struct preflight *flight)
{
	const json_t *sandbox = coop_arg(flight->request->args, "sandbox");

	return coop_agent_is_main(flight->agent) &&
	       !strcmp(coop_arg_string(sandbox, "profile", ""), "full");
}

static void ask_start(struct preflight *flight)
{
	ask_cwd(flight);
	ask_files(flight);
	if (is_plain(flight))
		return;
	ask_sandbox(flight, TREE);
	ask_homes(flight);
	ask_agents(flight);
	ask_operator(flight);
	/* Where nothing can be silent, no start pays for a look at it. */
	if (coop_silence_of(flight->keeper)->count)
		ask(flight, "configuration", coop_config_path(coop_config_of(flight->keeper)),
		    PLACE);
}

/* An agent's settings, or a ceiling: kept as they resolve now. Of `doctor` the home alone. */
static void ask_settings(struct preflight *flight)
{
	ask_array(flight, "", "workspace", coop_arg(flight->request->args, "workspace"), PLACE);
	ask_sandbox(flight, PLACE);
	ask_homes(flight);
}

/* What policies asked about in an attempt before this one. */
static void ask_programs(struct preflight *flight)
{
	const struct coop_buf *programs = &flight->request->programs;
	const char *path = (const char *)coop_buf_front(programs);
	size_t size = coop_buf_size(programs);
	const char *field = coop_arg(flight->request->args, "command") ? "command" : "argv";

	for (size_t at = 0; at < size; at += strlen(path + at) + 1)
		send_for(flight, field, path + at, true);
}

/* What an operation looks at follows from its handler; a row that looks has to be known here. */
static void ask_all(struct preflight *flight)
{
	struct coop_request *request = (struct coop_request *)(uintptr_t)flight->request;
	void (*handle)(struct coop_request *) = request->op->handle;
	struct coop_err ignored;

	flight->agent = handle == coop_op_check ? coop_op_agent_named(request, &ignored)
						: request->conn->agent;
	if (handle == coop_op_spawn || handle == coop_op_check)
		ask_start(flight);
	else if (handle == coop_op_reload)
		ask(flight, "configuration", coop_config_path(coop_config_of(flight->keeper)),
		    PLACE);
	else
		ask_settings(flight);
	ask_programs(flight);
}

/* Answers the request if that cannot be asked for. */
static bool can_ask(struct preflight *flight, struct coop_request *request)
{
	struct coop_err err = {0};

	if (!flight->failed)
		return true;
	coop_errand_free(flight->errand);
	if (flight->failed == -ENOMEM)
		(void)coop_err_no_memory(&err);
	else
		(void)coop_err_field(&err, COOP_TOO_LARGE, "sandbox",
				     "sandbox: more than %u paths would have to be looked up on "
				     "file systems that can be silent",
				     COOP_SCOUTS_PATHS_MAX);
	if (request->op->refused)
		request->op->refused(request, &err);
	coop_request_fail(request, &err);
	return false;
}

bool coop_preflight(struct coop_request *request)
{
	struct preflight flight = {.keeper = request->keeper, .request = request};

	coop_silence_refresh(coop_silence_of(request->keeper));
	if (request->looked_up) {
		request->looked_up = false; /* it holds for this turn */
		return true;
	}
	ask_all(&flight);
	if (!can_ask(&flight, request))
		return false;
	if (!flight.errand)
		return true;
	coop_scouts_send(coop_host_of(request->keeper)->scouts, flight.errand, request);
	return false;
}

/* A thread has been there: the loop reads the file now. */
static void conf_looked_up(struct coop_keeper *keeper, void *unused)
{
	struct coop_err err;

	(void)unused;
	coop_host_of(keeper)->conf_awaited = false;
	(void)coop_reload(keeper, &err); /* it has said what is wrong */
}

bool coop_preflight_conf(struct coop_keeper *keeper)
{
	if (coop_host_of(keeper)->conf_awaited)
		return false;
	coop_silence_refresh(coop_silence_of(keeper));
	int r = coop_silence_ask(coop_silence_of(keeper), coop_config_path(coop_config_of(keeper)));
	bool silent = r == -EREMOTE;
	if (!silent && r != -EAGAIN)
		return true;
	/* The keeper's own errands wait for each other: a disk of this host does not, for a silent
	 * one. */
	if (!silent && coop_scouts_away(coop_host_of(keeper)->scouts))
		return true;
	struct coop_errand *errand = coop_errand_new();
	if (errand && coop_errand_add(errand, "configuration",
				      coop_config_path(coop_config_of(keeper)), silent) == 0)
		coop_host_of(keeper)->conf_awaited = coop_scouts_send_alone(
			coop_host_of(keeper)->scouts, errand, conf_looked_up, NULL);
	if (coop_host_of(keeper)->conf_awaited)
		return false;
	coop_errand_free(errand);
	if (silent)
		coop_log(COOP_LOG_ERROR,
			 "configuration not loaded, the old one holds error=\"%s cannot be "
			 "looked up now\"",
			 coop_config_path(coop_config_of(keeper)));
	return !silent;
}

/* Beyond the bound they are left out. */
static void send_for_sockets(struct preflight *flight)
{
	const struct coop_host_sockets *sockets = &coop_views_of(flight->keeper)->sockets;
	const char *name = (const char *)coop_buf_front(&sockets->unseen);
	size_t size = coop_buf_size(&sockets->unseen), count = 0;
	int r = 0;

	for (; r == 0 && count < sockets->cold_count && count < COOP_SCOUTS_SOCKETS_MAX; count++)
		r = coop_errand_add_socket(flight->errand, sockets->cold[count], true);
	for (size_t at = 0; r == 0 && at < size && count < COOP_SCOUTS_SOCKETS_MAX; count++) {
		r = coop_errand_add_socket(flight->errand, name + at, false);
		at += strlen(name + at) + 1;
	}
	flight->failed = r;
}

void coop_preflight_again(struct coop_request *request)
{
	struct preflight flight = {.keeper = request->keeper, .request = request};

	/* What was found for this attempt does not hold for the next. */
	request->sockets_looked_up = false;
	flight.errand = coop_errand_new();
	if (!flight.errand || request->programs_lost)
		flight.failed = -ENOMEM;
	else if (coop_missing_sockets(request))
		send_for_sockets(&flight);
	if (!flight.failed)
		ask_all(&flight);
	if (can_ask(&flight, request))
		coop_scouts_send(coop_host_of(request->keeper)->scouts, flight.errand, request);
}
