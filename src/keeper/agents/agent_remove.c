#include "keeper/agents/agent_remove.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/agents/agent_folders.h"
#include "keeper/agents/change.h"
#include "keeper/agents/expiry.h"
#include "keeper/agents/left_out.h"
#include "keeper/agents/op_agent.h"
#include "keeper/agents/sessions.h"
#include "keeper/agents/token.h"
#include "keeper/agents/trash.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/connections.h"
#include "keeper/link/job.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_folder.h"
#include "keeper/owner/session.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/tree/party.h"
#include "records/store.h"

struct removal {
	struct coop_change change;
	struct coop_agent *agent; /* a reference */
	bool expired;             /* nobody asked for it */
	int64_t *ids;             /* its own, and those of all below it */
	size_t id_count;
	uint64_t grace_ms;
	/* Made before anything is written. */
	struct coop_party *party;
	struct coop_trash *trash; /* their folders; NULL: they have none */
};

static void drop(struct coop_change *change)
{
	struct removal *mine = (struct removal *)change;
	struct coop_keeper *keeper = mine->agent->keeper;

	if (mine->expired) {
		mine->agent->expiring = false;
		mine->agent->expiry_tried = true;
	}
	coop_expiry_look(keeper);
	coop_agent_unref(mine->agent);
	free(mine->ids);
	free(mine->party);
	coop_trash_free(mine->trash);
	free(mine);
}

/* They are gone: now their folders can be emptied without anybody filling them again. */
static void finish(struct coop_party *party)
{
	struct coop_jsonw w;

	if (party->request) {
		coop_request_result(party->request, &w);
		coop_jsonw_uint(&w, "agents", party->agents);
		coop_jsonw_uint(&w, "ended", party->ended);
		coop_jsonw_uint(&w, "survivors", party->survivors);
		coop_request_end(party->request, &w);
	}
	if (party->trash)
		coop_trash_empty(party->keeper, party->trash);
}

/* 0 or -ENOMEM. */
static int collect(struct removal *mine)
{
	size_t count = 0;

	for (struct coop_agent *agent = NULL; (agent = coop_agent_next(mine->agent, agent));)
		count++;
	mine->ids = coop_mem_alloc(count * sizeof *mine->ids);
	mine->party = coop_party_new(NULL, finish);
	if (!mine->ids || !mine->party)
		return -ENOMEM;
	for (struct coop_agent *agent = NULL; (agent = coop_agent_next(mine->agent, agent));) {
		const char *folder = coop_agent_folder(agent);
		mine->ids[mine->id_count++] = agent->id;
		if (folder && !mine->trash && !(mine->trash = coop_trash_new()))
			return -ENOMEM;
		if (folder && coop_agent_folder_discard(agent, mine->trash) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int check(struct coop_change *change, struct coop_err *err)
{
	struct removal *mine = (struct removal *)change;

	/* Not a word to the caller of what is not below it: an agent that went meanwhile is as one
	 * that never was. */
	if (mine->agent->removed)
		return coop_agent_none(err);
	/* It may have been given more time meanwhile. */
	if (mine->expired && (!mine->agent->settings.extras.expires_at ||
			      mine->agent->settings.extras.expires_at > coop_clock_wall_ms()))
		return -ECANCELED;
	return collect(mine) < 0 ? coop_err_no_memory(err) : 0;
}

/* All in one transaction: an agent must not outlive the one above it. */
static int write_all(struct coop_change *change, struct coop_store *store, struct coop_err *err)
{
	struct removal *mine = (struct removal *)change;
	int r = 0;

	for (size_t i = 0; r == 0 && i < mine->id_count; i++)
		r = coop_store_remove_agent(store, mine->ids[i], coop_clock_wall_ms(), err);
	return r;
}

/* Everything of theirs that could start or hold something. */
static void retire(struct coop_agent *top)
{
	struct coop_keeper *keeper = top->keeper;

	COOP_LIST_EACH(coop_connections_all(keeper), link)
	{
		struct coop_conn *conn = COOP_LIST_ITEM(link, struct coop_conn, in_keeper);
		if (conn->agent && coop_agent_sees(top, conn->agent))
			coop_conn_retire(conn, "the agent has been removed", "agent_removed");
	}
	for (struct coop_agent *agent = NULL; (agent = coop_agent_next(top, agent));) {
		coop_token_drop_all(agent);
		coop_session_drop_all(agent);
	}
}

/* Processes are ended under their old name or their new: the answer waits for both. */
static void on_moved(struct coop_trash *trash, void *user)
{
	struct coop_party *party = user;

	party->trash = trash;
	coop_party_wait(party);
}

static int make(struct coop_change *change, struct coop_err *err)
{
	struct removal *mine = (struct removal *)change;
	struct coop_keeper *keeper = change->job.keeper;
	struct coop_request *request = coop_job_release(&change->job);
	struct coop_kill_order order = {
		.cause = COOP_CAUSE_OWNER_RETIRED,
		.grace_ms = mine->grace_ms,
	};
	struct coop_party *party = COOP_TAKE_PTR(mine->party);
	struct coop_trash *trash = COOP_TAKE_PTR(mine->trash);

	(void)err;
	coop_party_for(party, request);
	party->agents = (unsigned)mine->id_count;
	party->keeper = keeper;
	if (mine->expired) {
		order.evidence.limit = "expires_at";
		order.evidence.value = mine->agent->settings.extras.expires_at;
	} else {
		order.evidence.request = "agent_remove";
		order.evidence.agent = request ? request->conn->agent->path : NULL;
	}
	/* First: that is why they end, not that their connections do. */
	COOP_LIST_EACH(coop_registry_all(keeper), link)
	{
		struct coop_process *process = COOP_LIST_ITEM(link, struct coop_process, in.all);
		if (!coop_process_receipt(process) && coop_agent_sees(mine->agent, process->agent))
			coop_party_add(party, process, &order);
	}
	retire(mine->agent);
	coop_agent_detach(mine->agent);
	if (trash)
		coop_trash_move(keeper, trash, on_moved, party);
	else
		coop_party_wait(party);
	return 0;
}

/* NULL without memory. */
static struct removal *new_removal(struct coop_agent *agent, struct coop_request *request,
				   uint64_t grace_ms)
{
	struct removal *mine = coop_mem_zalloc(sizeof *mine);

	if (!mine)
		return NULL;
	mine->change = (struct coop_change){.job = {.request = request},
					    .check = check,
					    .write = write_all,
					    .make = make,
					    .drop = drop};
	mine->agent = coop_agent_ref(agent);
	mine->grace_ms = grace_ms;
	return mine;
}

void coop_op_agent_remove(struct coop_request *request)
{
	if (coop_left_out_remove(request))
		return;
	struct coop_agent *agent = coop_op_agent_changeable(request);
	if (!agent)
		return;
	struct removal *mine =
		new_removal(agent, request, (uint64_t)coop_arg_int(request->args, "grace_ms", 0));
	if (mine)
		coop_change_begin(request->keeper, &mine->change);
	else
		coop_request_no_memory(request);
}

/* Nobody asked, so nobody is answered; the end of its processes names the moment that was set. */
int coop_agent_remove_expired(struct coop_agent *agent, uint64_t grace_ms)
{
	struct removal *mine = new_removal(agent, NULL, grace_ms);

	if (!mine)
		return -ENOMEM;
	mine->expired = true;
	coop_change_begin(agent->keeper, &mine->change);
	return 0;
}
