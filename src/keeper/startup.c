#include "keeper/startup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "keeper/agent.h"
#include "keeper/archive.h"
#include "keeper/keeper.h"
#include "keeper/process.h"
#include "keeper/session.h"
#include "keeper/spawn_audit.h"
#include "keeper/token.h"
#include "records/audit.h"
#include "records/secret.h"
#include "records/store.h"

static struct coop_agent *by_row(const struct coop_keeper *keeper, int64_t id)
{
	COOP_LIST_EACH(&keeper->principals, link)
	{
		struct coop_agent *first =
			COOP_LIST_ITEM(link, struct coop_principal, in_keeper)->first;
		for (struct coop_agent *agent = NULL;
		     first && (agent = coop_agent_next(first, agent));) {
			if (agent->id == id)
				return agent;
		}
	}
	return NULL;
}

static int load_agent(void *user, const struct coop_store_agent *row)
{
	struct coop_keeper *keeper = user;
	struct coop_agent *parent = row->parent ? by_row(keeper, row->parent) : NULL, *agent;
	struct coop_agent_settings settings;
	struct coop_err err;
	json_t *json = json_loads(row->settings, 0, NULL);

	coop_agent_settings_init(&settings);
	/* A workspace root that is gone is no reason to forget the agent; nothing can be started there. */
	if (json && coop_agent_settings_restore(json, row->path, &settings, &err) < 0)
		coop_log(COOP_LOG_WARN, "settings of an agent cannot be read agent=%s error=\"%s\"",
			 row->path, err.message);
	int r = !json || (row->parent && !parent) ? -EBADMSG
						  : coop_agent_new(keeper, row->principal, parent,
								   row->name, &settings, &agent);
	json_decref(json);
	if (r < 0) {
		coop_agent_settings_clear(&settings);
		return r;
	}
	agent->id = row->id;
	agent->created_at = row->created_at;
	return 0;
}

static int load_token(void *user, const struct coop_store_token *row)
{
	struct coop_keeper *keeper = user;
	struct coop_agent *agent = by_row(keeper, row->agent);

	return agent ? coop_token_load(agent, row) : 0;
}

static int load_receipt(void *user, const struct coop_store_process *row)
{
	struct coop_keeper *keeper = user;
	struct coop_agent *owner = by_row(keeper, row->agent);

	return owner ? coop_archive_restore(owner, row) : 0;
}

/* The user's own first agent; with a database its row is made when the keeper starts for the first time. */
static int make_main(struct coop_keeper *keeper, struct coop_err *err)
{
	char name[32];
	struct coop_agent_settings settings;
	struct coop_agent *agent;

	(void)snprintf(name, sizeof name, "uid:%u", getuid());
	struct coop_principal *principal = coop_principal_find(keeper, name);
	if (principal) {
		keeper->main = principal->first;
		keeper->main->settings.persistent = true;
		return 0;
	}
	coop_agent_settings_init(&settings);
	settings.persistent = true;
	if (coop_agent_new(keeper, name, NULL, COOP_AGENT_FIRST, &settings, &agent) < 0)
		return coop_err_no_memory(err);
	keeper->main = agent;
	struct coop_store_agent row = {
		.principal = name,
		.name = COOP_AGENT_FIRST,
		.path = COOP_AGENT_FIRST,
		.settings = "{\"persistent\":true}",
		.created_at = agent->created_at,
	};
	if (keeper->store)
		return coop_store_add_agent(keeper->store, &row, &agent->id, err);
	agent->id = ++keeper->last_row;
	return 0;
}

/* The processes of earlier keepers. */
static int load_past(struct coop_keeper *keeper, int64_t now, struct coop_err *err)
{
	uint64_t most = (uint64_t)keeper->conf.settings.max_receipts;
	int r = coop_store_lose(keeper->store, now, COOP_ARCHIVE_LOST, err);

	return r < 0 ? r : coop_store_each_receipt(keeper->store, most, load_receipt, keeper, err);
}

static int load_store(struct coop_keeper *keeper, int64_t now, struct coop_err *err)
{
	struct coop_store *store;
	uint64_t last = 0;
	int r = coop_store_open(keeper->state_dir, &store, err);

	if (r < 0)
		return r;
	keeper->store = store;
	keeper->recording = keeper->conf.records;
	r = coop_store_each_agent(store, load_agent, keeper, err);
	if (r == 0)
		r = coop_store_each_token(store, load_token, keeper, err);
	if (r == 0 && keeper->recording)
		r = load_past(keeper, now, err);
	if (r == 0)
		r = coop_store_last_n(store, &last, err);
	/* The counter's own file may have been lost: a number is never given twice all the same. */
	if (r == 0 && keeper->registry.next_n <= last)
		r = coop_registry_skip(keeper, last, err);
	return r;
}

/* What the ends of the chain show to be missing since an earlier keeper noted them. */
static bool compare_ends(struct coop_keeper *keeper, char *ret, size_t size)
{
	const struct coop_audit_anchor *then = &keeper->audit_then;
	struct coop_audit_anchor now;

	coop_audit_anchor(keeper->audit, &now);
	if (now.last < then->last)
		(void)snprintf(ret, size, "lines %llu to %llu were missing when the keeper started",
			       (unsigned long long)now.last + 1, (unsigned long long)then->last);
	else if (now.last == then->last && strcmp(now.last_hash, then->last_hash) != 0)
		(void)snprintf(ret, size, "line %llu was another one when the keeper started",
			       (unsigned long long)then->last);
	else if (then->first && now.first > then->first)
		(void)snprintf(ret, size, "lines %llu to %llu were missing when the keeper started",
			       (unsigned long long)then->first, (unsigned long long)now.first - 1);
	else
		return false;
	return true;
}

/* A fault that was seen once stays known: with the next line the ends look well again. */
static int check_ends(struct coop_keeper *keeper, struct coop_err *err)
{
	char *noted = NULL, *fault = NULL, text[COOP_AUDIT_ANCHOR_TEXT];
	struct coop_audit_anchor now;
	int r = coop_store_get_meta(keeper->store, "audit", &noted, err);

	if (r == 0)
		r = coop_store_get_meta(keeper->store, "audit_fault", &fault, err);
	if (r == 0 && fault)
		(void)snprintf(keeper->audit_fault, sizeof keeper->audit_fault, "%s", fault);
	if (r == 0 && noted && coop_audit_anchor_parse(noted, &keeper->audit_then) == 0 && !fault &&
	    compare_ends(keeper, keeper->audit_fault, sizeof keeper->audit_fault)) {
		coop_log(COOP_LOG_ERROR, "the audit is not whole fault=\"%s\"",
			 keeper->audit_fault);
		r = coop_store_set_meta(keeper->store, "audit_fault", keeper->audit_fault, err);
	}
	coop_audit_anchor(keeper->audit, &now);
	coop_audit_anchor_format(&now, text);
	if (r == 0)
		r = coop_store_set_meta(keeper->store, "audit", text, err);
	free(noted);
	free(fault);
	return r;
}

/* Processes of a keeper that died have an end in the audit, too. */
static void audit_lost(struct coop_keeper *keeper, int64_t found_at)
{
	COOP_LIST_EACH(&keeper->registry.all, link)
	{
		const struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in_all);
		if (process->end.cause == COOP_CAUSE_LOST && process->end.ended_at == found_at)
			coop_spawn_audit_end(process);
	}
}

int coop_startup(struct coop_keeper *keeper, struct coop_err *err)
{
	const struct coop_settings *settings = &keeper->conf.settings;
	const char *dir = *keeper->state_dir ? keeper->state_dir : NULL;
	int64_t now = coop_clock_wall_ms();
	int r = coop_secret_open(dir, &keeper->secret, err);

	if (r == 0 && dir)
		r = load_store(keeper, now, err);
	if (r == 0)
		r = make_main(keeper, err);
	if (r == 0 && dir && keeper->conf.audit)
		r = coop_audit_open(dir, (uint64_t)settings->audit_max_bytes,
				    (unsigned)settings->audit_files, &keeper->audit, err);
	if (r == 0 && keeper->audit && keeper->store)
		r = check_ends(keeper, err);
	if (r == 0)
		audit_lost(keeper, now);
	return r;
}

void coop_startup_undo(struct coop_keeper *keeper)
{
	while (!coop_list_empty(&keeper->principals)) {
		struct coop_principal *principal =
			COOP_LIST_ITEM(keeper->principals.next, struct coop_principal, in_keeper);
		if (!principal->first)
			break; /* somebody holds one of its agents: it goes with the process */
		for (struct coop_agent *agent = NULL;
		     (agent = coop_agent_next(principal->first, agent));) {
			coop_token_drop_all(agent);
			coop_session_drop_all(agent);
		}
		coop_agent_detach(principal->first);
	}
	coop_map_clear(&keeper->tokens);
	coop_store_close(keeper->store);
	coop_audit_close(keeper->audit);
	coop_secret_free(keeper->secret);
}
