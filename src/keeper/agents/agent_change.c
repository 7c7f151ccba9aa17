#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/agents/agent_folders.h"
#include "keeper/agents/change.h"
#include "keeper/agents/expiry.h"
#include "keeper/agents/left_out.h"
#include "keeper/agents/op_agent.h"
#include "keeper/agents/trash.h"
#include "keeper/conf/conf.h"
#include "keeper/confine/ceiling.h"
#include "keeper/confine/confine_private.h"
#include "keeper/confine/groups.h"
#include "keeper/confine/reach.h"
#include "keeper/core/books.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/job.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_folder.h"
#include "keeper/owner/agent_settings.h"
#include "keeper/owner/agents.h"
#include "keeper/process/eviction.h"
#include "records/store.h"
#include "sandbox/layout/path_walk.h"

#define SETTINGS_MAX 65536u /* bytes as JSON, workspace roots and policy included */

/* What the two kinds have in common. The arguments live as long as the request; the rest is the
 * change's own. */
struct agent_change {
	struct coop_change change;
	/* a reference: the parent of a new one, or the one that changes */
	struct coop_agent *agent;
	struct coop_agent *fresh;      /* a new one, until it is entered */
	char *name, *principal, *path; /* of a new one */
	struct coop_agent_settings settings;
	char *settings_text; /* the same as JSON */
	int64_t id, at;
	bool folder_made; /* of a new one */
};

static void discard_folder(const struct agent_change *mine)
{
	struct coop_keeper *keeper = mine->change.job.keeper;
	struct coop_trash *trash = coop_trash_new();

	/* Without memory it is left to the next keeper. */
	if (trash && coop_agent_folder_discard(mine->fresh, trash) == 0)
		coop_trash_empty(keeper, trash);
	else
		coop_trash_free(trash);
}

static void drop(struct coop_change *change)
{
	struct agent_change *mine = (struct agent_change *)change;

	/* It came to nothing after all. */
	if (mine->fresh && mine->folder_made)
		discard_folder(mine);
	coop_agent_unref(mine->fresh);
	coop_agent_unref(mine->agent);
	coop_agent_settings_clear(&mine->settings);
	free(mine->settings_text);
	free(mine->name);
	free(mine->principal);
	free(mine->path);
	free(mine);
}

/* Begins a change of that kind; takes nothing over on failure. */
static struct agent_change *new_change(struct coop_request *request, const struct coop_change *kind)
{
	struct agent_change *mine = coop_mem_zalloc(sizeof *mine);

	if (!mine) {
		coop_request_no_memory(request);
		return NULL;
	}
	mine->change = *kind;
	mine->change.drop = drop;
	mine->change.job.request = request;
	coop_agent_settings_init(&mine->settings);
	return mine;
}

static int settings_to_text(struct agent_change *mine, struct coop_err *err)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	coop_agent_settings_write(&mine->settings, &w, NULL);
	size_t size = coop_buf_size(&out);
	bool failed = w.failed;
	coop_buf_clear(&out);
	/* What comes to them has bounds of its own. */
	w = (struct coop_jsonw){.out = &out};
	coop_agent_settings_store(&mine->settings, &w);
	if (failed || w.failed || coop_buf_append(&out, "", 1) < 0) {
		coop_buf_clear(&out);
		return coop_err_no_memory(err);
	}
	if (size > SETTINGS_MAX) {
		coop_buf_clear(&out);
		return coop_err_field(err, COOP_TOO_LARGE, "policy",
				      "the settings of an agent have at most %u bytes",
				      SETTINGS_MAX);
	}
	mine->settings_text = (char *)out.data;
	return 0;
}

/* Not a word to the caller of what is not below it: an agent that went meanwhile is as one that
 * never was. */
static int still_there(const struct agent_change *mine, struct coop_err *err)
{
	return mine->agent && mine->agent->removed ? coop_agent_none(err) : 0;
}

/* What the user gives he calls by its name: a link to credentials may have been left by a command.
 * `names` are as they came. */
static int check_names(const struct coop_keeper *keeper, const char *field, const json_t *names,
		       char *const *paths, struct coop_err *err)
{
	for (size_t i = 0; i < json_array_size(names) && paths && paths[i]; i++) {
		const char *name = json_string_value(json_array_get(names, i));
		if (name && *name == '/' && !coop_grants_meant(keeper, paths[i], name))
			return coop_err_field(err, COOP_INVALID_INPUT, field,
					      "%s %.300s leads to %.300s, which is for "
					      "credentials: call it so if you mean that",
					      field, name, paths[i]);
	}
	return 0;
}

/* Who may name no folder for its own commands gives none to others. */
static int check_giver(const struct coop_request *request, struct coop_err *err)
{
	const struct coop_agent *giver = request->conn->agent;

	if (!giver || coop_agent_is_main(giver) || coop_agent_workspace(giver))
		return 0;
	if (coop_arg(request->args, "workspace"))
		return coop_err_field(err, COOP_BOUNDARY_ESCAPE, "workspace",
				      "workspace cannot be given by an agent that has none itself");
	/* The keeper would make a writable place for whoever has none, and for as many as it
	 * likes. */
	return coop_arg_bool(request->args, "folder", false)
		       ? coop_err_field(
				 err, COOP_BOUNDARY_ESCAPE, "folder",
				 "folder cannot be given by an agent that has no workspace itself")
		       : 0;
}

/* Whether the giver may read what it gives to be read. */
static bool may_give(const struct coop_agent *giver, const struct coop_lookable *seen,
		     const char *path)
{
	char place[COOP_PATH_SIZE];

	return coop_grants_may_read(giver, path) &&
	       (!seen || coop_path_walk(seen, path, place) != -EXDEV);
}

/* Nor that which it may not name itself; nobody gives more than his door lets. */
static int check_gift(const struct agent_change *mine, struct coop_err *err)
{
	const struct coop_request *request = mine->change.job.request;
	const struct coop_agent *giver = request->conn->agent;
	char *const *list = mine->settings.sandbox.allow_read;
	const json_t *names = coop_arg(coop_arg(request->args, "sandbox"), "allow_read");
	struct coop_reach reach;
	int r = coop_ceiling_check_gift(request->conn, &mine->settings, request->args, err);

	if (r == 0)
		r = check_names(request->keeper, "workspace", coop_arg(request->args, "workspace"),
				mine->settings.workspace, err);
	if (r == 0)
		r = check_names(request->keeper, "sandbox.allow_read", names, list, err);
	if (r < 0 || !giver || coop_agent_is_main(giver))
		return r;
	const struct coop_lookable *seen = coop_reach_of(giver, &reach);
	/* Those of one of the operator's profiles are his to give. */
	if (!names)
		return 0;
	for (; list && *list; list++) {
		if (!may_give(giver, seen, *list))
			return coop_err_field(err, COOP_BOUNDARY_ESCAPE, "sandbox.allow_read",
					      "sandbox.allow_read %.300s cannot be given by an "
					      "agent that may not read it itself",
					      *list);
	}
	return 0;
}

/* Once more all that was looked at when the request came: other changes have been made while this
 * one waited for its turn. */
static int check_add(struct coop_change *change, struct coop_err *err)
{
	struct agent_change *mine = (struct agent_change *)change;
	struct coop_keeper *keeper = change->job.keeper;
	const json_t *args = change->job.request->args;
	int64_t limit =
		coop_op_agent_share(change->job.request, coop_conf_of(keeper)->settings.max_agents);
	struct coop_reach reach;
	struct coop_err unused;
	int r = still_there(mine, err);

	if (r < 0)
		return r;
	if (mine->agent ? coop_agent_find(mine->agent, mine->path, &unused) != NULL
			: coop_principal_find(keeper, mine->principal) != NULL)
		return coop_err_field(err, COOP_EXISTS, "agent", "that agent is there already");
	if (coop_left_out_named(keeper,
				mine->agent ? mine->agent->principal->name : mine->principal,
				mine->path))
		return coop_err_field(err, COOP_EXISTS, "agent",
				      "that agent is there, but could not be read when the keeper "
				      "started: the operator removes it first");
	if (coop_agents_of(keeper)->count >= limit) {
		r = coop_err_set(err, COOP_QUOTA, "the limit of %lld agents is reached",
				 (long long)limit);
		coop_err_detail(err, "scope", "agents");
		coop_err_detail_int(err, "limit", limit);
		return r;
	}
	r = coop_op_agent_room(change->job.request, mine->agent, false,
			       coop_conf_of(keeper)->settings.max_agents, err);
	if (r == 0)
		r = check_giver(change->job.request, err);
	if (r == 0)
		r = coop_agent_settings_read(
			args, NULL, mine->path, &coop_conf_of(keeper)->profiles,
			coop_reach_of(change->job.request->conn->agent, &reach), &mine->settings,
			err);
	if (r == 0)
		r = check_gift(mine, err);
	if (r == 0 && mine->agent)
		r = coop_agent_settings_narrow(&mine->settings, args, mine->agent, err);
	if (r == 0 && coop_arg_bool(args, "folder", false))
		r = coop_agent_folder_choose(keeper, &mine->settings, err);
	if (r == 0)
		r = settings_to_text(mine, err);
	if (r < 0)
		return r;
	/* Before anything is written: what is on disk must not fail to be made. */
	mine->fresh =
		coop_agent_make(keeper, mine->principal, mine->agent, mine->name, &mine->settings);
	return mine->fresh ? 0 : coop_err_no_memory(err);
}

/* The folder is named by the agent's number, which only the database gives. If its making fails the
 * row is rolled back with it. */
static int write_add(struct coop_change *change, struct coop_store *store, struct coop_err *err)
{
	struct agent_change *mine = (struct agent_change *)change;
	struct coop_store_agent row = {
		.parent = mine->agent ? mine->agent->id : 0,
		.principal = mine->agent ? mine->agent->principal->name : mine->principal,
		.name = mine->name,
		.path = mine->path,
		.settings = mine->settings_text,
		.created_at = mine->at,
	};

	int r = coop_store_add_agent(store, &row, &mine->id, err);
	if (r < 0 || !mine->fresh->settings.extras.folder_in)
		return r;
	coop_agent_folder_name(&mine->fresh->settings, mine->id);
	r = coop_agent_folder_make(&mine->fresh->settings);
	mine->folder_made = r == 0;
	return r;
}

/* Nothing here can fail: memory was taken before anything was written. */
static int make_add(struct coop_change *change, struct coop_err *err)
{
	struct agent_change *mine = (struct agent_change *)change;
	struct coop_keeper *keeper = change->job.keeper;
	struct coop_agent *agent = COOP_TAKE_PTR(mine->fresh);

	(void)err;
	agent->id = coop_books_of(keeper)->store ? mine->id : ++coop_books_of(keeper)->last_row;
	agent->created_at = mine->at;
	coop_agent_enter(agent);
	if (agent->settings.extras.expires_at)
		coop_expiry_look(keeper);
	struct coop_request *request = coop_job_release(&change->job);
	if (request)
		coop_op_agent_answer(request, agent);
	return 0;
}

/* The operator makes a new principal by adding its first agent. */
static bool makes_principal(const struct coop_request *request)
{
	const char *principal = coop_arg_string(request->args, "principal", NULL);

	return principal && request->conn->is_operator &&
	       strcmp(principal, request->conn->agent->principal->name) != 0 &&
	       !strcmp(coop_arg_string(request->args, "agent", ""), COOP_AGENT_FIRST);
}

/* What is named is copied: arguments live as long as the request, which may go while the change is
 * with the helper thread. */
static int place_new(struct coop_request *request, struct agent_change *mine, struct coop_err *err)
{
	const char *text = coop_arg_string(request->args, "agent", ""), *name = text;
	const char *principal = coop_arg_string(request->args, "principal", "");
	struct coop_agent *base;

	mine->at = coop_clock_wall_ms();
	if (makes_principal(request)) {
		/* The names of users are not to be had. */
		if (!coop_agent_valid_name(principal))
			return coop_err_field(err, COOP_INVALID_INPUT, "principal",
					      "a principal's name is made as an agent's");
		mine->principal = coop_mem_strdup(principal);
		mine->path = coop_mem_strdup(text);
	} else {
		base = coop_op_agent_base(request, err);
		struct coop_agent *parent =
			base ? coop_agent_find_parent(base, text, &name, err) : NULL;
		if (!parent)
			return -1;
		mine->agent = coop_agent_ref(parent);
		mine->path = coop_agent_join(parent, name);
	}
	mine->name = coop_mem_strdup(name);
	return mine->name && mine->path && (mine->agent || mine->principal)
		       ? 0
		       : coop_err_no_memory(err);
}

void coop_op_agent_add(struct coop_request *request)
{
	static const struct coop_change kind = {
		.check = check_add, .write = write_add, .make = make_add};
	struct agent_change *mine = new_change(request, &kind);
	struct coop_err err;

	if (!mine)
		return;
	if (place_new(request, mine, &err) < 0) {
		drop(&mine->change);
		coop_request_fail(request, &err);
		return;
	}
	coop_change_begin(request->keeper, &mine->change);
}

/* On a copy of what is in force now, not of what was when the request came. */
static int check_set(struct coop_change *change, struct coop_err *err)
{
	struct agent_change *mine = (struct agent_change *)change;
	struct coop_agent *agent = mine->agent;
	struct coop_reach reach;
	int r = still_there(mine, err);

	if (r == 0)
		r = coop_ceiling_check_change(change->job.request->conn, agent,
					      change->job.request->args, err);
	if (r == 0)
		r = check_giver(change->job.request, err);
	if (r == 0)
		r = coop_agent_settings_read(
			change->job.request->args, &agent->settings, agent->path,
			&coop_conf_of(agent->keeper)->profiles,
			coop_reach_of(change->job.request->conn->agent, &reach), &mine->settings,
			err);
	if (r == 0)
		r = check_gift(mine, err);
	if (r == 0 && agent->parent)
		r = coop_agent_settings_narrow(&mine->settings, change->job.request->args,
					       agent->parent, err);
	return r < 0 ? r : settings_to_text(mine, err);
}

static int write_set(struct coop_change *change, struct coop_store *store, struct coop_err *err)
{
	struct agent_change *mine = (struct agent_change *)change;

	return coop_store_set_agent(store, mine->agent->id, mine->settings_text, err);
}

/* The old settings are freed with the change, after everybody has been told of the new ones. */
static int make_set(struct coop_change *change, struct coop_err *err)
{
	struct agent_change *mine = (struct agent_change *)change;
	struct coop_agent_settings old = mine->agent->settings;

	(void)err;
	mine->agent->settings = mine->settings;
	coop_groups_agent_changed(mine->agent);
	mine->agent->expiry_tried = false;
	mine->settings = old;
	coop_eviction_recount(mine->agent->keeper);
	coop_expiry_look(mine->agent->keeper);
	struct coop_request *request = coop_job_release(&change->job);
	if (request)
		coop_op_agent_answer(request, mine->agent);
	return 0;
}

void coop_op_agent_set(struct coop_request *request)
{
	static const struct coop_change kind = {
		.check = check_set, .write = write_set, .make = make_set};
	struct coop_agent *agent = coop_op_agent_changeable(request);
	struct agent_change *mine = agent ? new_change(request, &kind) : NULL;

	if (!mine)
		return;
	mine->agent = coop_agent_ref(agent);
	coop_change_begin(request->keeper, &mine->change);
}
