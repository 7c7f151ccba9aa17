#include "keeper/main/startup.h"
#include "keeper/core/books.h"
#include "keeper/owner/agents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/stored.h"
#include "base/list.h"
#include "base/map.h"
#include "keeper/agents/agent_folders.h"
#include "keeper/agents/expiry.h"
#include "keeper/agents/left_out.h"
#include "keeper/agents/sessions.h"
#include "keeper/agents/token.h"
#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_folder.h"
#include "keeper/owner/agent_settings.h"
#include "keeper/owner/session.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/store/archive.h"
#include "keeper/store/journal.h"
#include "records/audit.h"
#include "records/audit_chain.h"
#include "records/backlog.h"
#include "records/lost.h"
#include "records/row.h"
#include "records/secret.h"
#include "records/store.h"

#define SESSIONS_EACH 1000000u

/* What is being read, and what was found wrong with it. */
struct loading {
	struct coop_keeper *keeper;
	struct coop_map agents; /* by row */
	struct coop_err *err;
};

/* The name of the principal whose keeper this is. */
static void own_principal(char ret[32])
{
	(void)snprintf(ret, 32, "uid:%u", getuid());
}

/* Whether the row says of itself what its place in the tree says, in words that an agent may
 * have. */
static bool well_placed(const struct coop_store_agent *row, const struct coop_agent *parent)
{
	char own[32];

	own_principal(own);
	if (!parent)
		return !strcmp(row->name, COOP_AGENT_FIRST) && !strcmp(row->path, row->name) &&
		       (!strcmp(row->principal, own) || coop_agent_valid_name(row->principal));
	size_t size = strlen(parent->path);
	return coop_agent_valid_name(row->name) && !strncmp(row->path, parent->path, size) &&
	       row->path[size] == '/' && !strcmp(row->path + size + 1, row->name) &&
	       !strcmp(row->principal, parent->principal->name);
}

/* The settings of a row; 0, -ENOMEM, or why they are not to be had. */
static int restore_settings(struct loading *loading, const struct coop_store_agent *row,
			    struct coop_agent_settings *ret, struct coop_err *why)
{
	json_t *json = coop_stored_object(row->settings);
	int r = json ? coop_agent_settings_restore(json, row->path, ret, why)
		     : coop_err_set(why, COOP_INVALID_INPUT,
				    "its settings are no JSON object, or name a member twice");

	json_decref(json);
	if (r == 0 && (r = coop_agent_folder_restore(loading->keeper, ret, row->id, why)) < 0)
		coop_agent_settings_clear(ret);
	return r;
}

/* An agent whose limits cannot be read must not come back without any. Without the user's own first
 * agent there is nothing to keep processes for. */
static int leave_out(struct loading *loading, const struct coop_store_agent *row, const char *why)
{
	char own[32];

	own_principal(own);
	if (!row->parent && !strcmp(row->principal, own))
		return coop_err_set(loading->err, COOP_UNAVAILABLE,
				    "records.db: agent main cannot be read (%.200s): put the file "
				    "back from a copy, or move it away to begin a new one",
				    why);
	return coop_left_out_add(loading->keeper, row, why) < 0 ? coop_err_no_memory(loading->err)
								: 0;
}

/* Rows come in the order of their making, so a parent is there before what lies below it. */
static int load_agent(void *user, const struct coop_store_agent *row)
{
	struct loading *loading = user;
	struct coop_agent *parent = row->parent
					    ? coop_map_get(&loading->agents, (uint64_t)row->parent)
					    : NULL,
			  *agent;
	struct coop_agent_settings settings;
	struct coop_err why = {0};

	coop_agent_settings_init(&settings);
	if (row->parent && !parent) {
		/* A parent that was removed takes it along. */
		return coop_left_out_has(loading->keeper, row->parent)
			       ? leave_out(loading, row, "the agent above it is left out")
			       : 0;
	}
	if (!well_placed(row, parent))
		return leave_out(loading, row, "its name is not one that it could have there");
	int r = restore_settings(loading, row, &settings, &why);
	if (r == -ENOMEM)
		return coop_err_no_memory(loading->err);
	if (r < 0)
		return leave_out(loading, row, why.message);
	agent = coop_agent_make(loading->keeper, row->principal, parent, row->name, &settings);
	if (!agent || coop_map_put(&loading->agents, (uint64_t)row->id, agent) < 0) {
		coop_agent_unref(agent);
		coop_agent_settings_clear(&settings);
		return coop_err_no_memory(loading->err);
	}
	coop_agent_enter(agent);
	agent->id = row->id;
	agent->created_at = row->created_at;
	return 0;
}

/* Of an agent that is gone or left out nobody can log in. */
static int load_token(void *user, const struct coop_store_token *row)
{
	struct loading *loading = user;
	struct coop_agent *agent = coop_map_get(&loading->agents, (uint64_t)row->agent);

	return agent && coop_token_load(agent, row) < 0 ? coop_err_no_memory(loading->err) : 0;
}

static int load_receipt(void *user, const struct coop_store_process *row)
{
	struct loading *loading = user;
	struct coop_agent *owner = coop_map_get(&loading->agents, (uint64_t)row->agent);

	return owner && coop_archive_restore(owner, row) < 0 ? coop_err_no_memory(loading->err) : 0;
}

/* The user's own first agent; with a database its row is made when the keeper starts for the first
 * time. */
static int make_main(struct coop_keeper *keeper, struct coop_err *err)
{
	char name[32];
	struct coop_agent_settings settings;
	struct coop_agent *agent;

	own_principal(name);
	struct coop_principal *principal = coop_principal_find(keeper, name);
	if (principal) {
		coop_agents_of(keeper)->main = principal->first;
		coop_agents_main(keeper)->settings.persistent = true;
		return 0;
	}
	coop_agent_settings_init(&settings);
	settings.persistent = true;
	agent = coop_agent_make(keeper, name, NULL, COOP_AGENT_FIRST, &settings);
	if (!agent)
		return coop_err_no_memory(err);
	coop_agent_enter(agent);
	coop_agents_of(keeper)->main = agent;
	struct coop_store_agent row = {
		.principal = name,
		.name = COOP_AGENT_FIRST,
		.path = COOP_AGENT_FIRST,
		.settings = "{\"persistent\":true}",
		.created_at = agent->created_at,
	};
	if (coop_books_of(keeper)->store)
		return coop_store_add_agent(coop_books_of(keeper)->store, &row, &agent->id, err);
	agent->id = ++coop_books_of(keeper)->last_row;
	return 0;
}

static int lost_key(const char *dir, struct coop_err *err)
{
	return coop_err_set(err, COOP_UNAVAILABLE,
			    "%.300s/key is not there, or not the key that records.db was made "
			    "with: put it back, or move both away to begin anew",
			    dir);
}

/* A database without its key: a new one would make all tokens worthless in silence. */
static int open_secret(struct coop_keeper *keeper, const char *dir, struct coop_err *err)
{
	char key[4200], database[4200];

	if (dir) {
		(void)snprintf(key, sizeof key, "%s/key", dir);
		(void)snprintf(database, sizeof database, "%s/records.db", dir);
		if (access(key, F_OK) < 0 && errno == ENOENT && access(database, F_OK) == 0)
			return lost_key(dir, err);
	}
	return coop_secret_open(dir, &coop_books_of(keeper)->secret, err);
}

/* Tokens are good with the key alone that they were made with. Another one must not go
 * unnoticed. */
static int check_key(struct coop_keeper *keeper, struct coop_err *err)
{
	uint8_t hash[COOP_HASH_SIZE];
	char *known = NULL, text[COOP_HASH_TEXT];
	int r = coop_secret_hash(coop_books_of(keeper)->secret, "key", "", 0, hash);

	if (r < 0)
		return coop_err_no_memory(err);
	coop_hash_format(hash, text);
	r = coop_store_get_meta(coop_books_of(keeper)->store, "key", &known, err);
	if (r == 0 && known && strcmp(known, text) != 0)
		r = lost_key(coop_place_of(keeper)->state_dir, err);
	else if (r == 0 && !known)
		r = coop_store_set_meta(coop_books_of(keeper)->store, "key", text, err);
	free(known);
	return r;
}

/* Numbers of sessions are never given twice: each keeper takes a share of them that nobody uses
 * up. */
static int take_sessions(struct coop_keeper *keeper, struct coop_err *err)
{
	char *text = NULL, next[24];
	int r = coop_store_get_meta(coop_books_of(keeper)->store, "sessions", &text, err);

	coop_agents_of(keeper)->last_session = text ? strtoull(text, NULL, 10) : 0;
	coop_agents_of(keeper)->session_end = coop_agents_of(keeper)->last_session + SESSIONS_EACH;
	free(text);
	(void)snprintf(next, sizeof next, "%llu",
		       (unsigned long long)coop_agents_of(keeper)->last_session + SESSIONS_EACH);
	return r < 0 ? r : coop_store_set_meta(coop_books_of(keeper)->store, "sessions", next, err);
}

static int load_rows(struct loading *loading, int64_t now)
{
	struct coop_keeper *keeper = loading->keeper;
	struct coop_store *store = coop_books_of(keeper)->store;
	struct coop_err *err = loading->err, own = {0};
	uint64_t last = 0;
	int r = coop_store_each_agent(store, load_agent, loading, &own);

	if (r == 0)
		r = coop_store_forget_tokens(store, now, &own);
	if (r == 0)
		r = coop_store_each_token(store, load_token, loading, &own);
	if (r == 0)
		r = coop_store_lose(store, now, COOP_ARCHIVE_LOST, &own);
	if (r == 0 && coop_books_of(keeper)->recording)
		r = coop_store_each_receipt(store,
					    (uint64_t)coop_conf_of(keeper)->settings.max_receipts,
					    load_receipt, loading, &own);
	if (r == 0)
		r = coop_store_last_n(store, &last, &own);
	/* What a row was refused for says more than that the walk was ended. */
	if (r < 0 && !err->code)
		*err = own;
	/* The counter's own file may have been lost: a number is never given twice all the same. */
	if (r == 0 && coop_registry_next(keeper) <= last)
		r = coop_registry_skip(keeper, last, err);
	return r;
}

/* What the dead keeper had not written is written before anything is read. */
static int open_store(struct coop_keeper *keeper, struct coop_err *err)
{
	int r = coop_store_open(coop_place_of(keeper)->state_dir, &coop_books_of(keeper)->store,
				err);

	if (r < 0)
		return r;
	coop_books_of(keeper)->recording = coop_conf_of(keeper)->records;
	err->code = COOP_OK;
	r = check_key(keeper, err);
	if (r == 0)
		r = take_sessions(keeper, err);
	return r < 0 ? r
		     : coop_row_recover(coop_journal_of(keeper)->backlog,
					coop_books_of(keeper)->store, err);
}

/* The map is for finding parents, and for this alone. */
static int load_store(struct coop_keeper *keeper, int64_t now, struct coop_err *err)
{
	struct loading loading = {.keeper = keeper, .err = err};
	int r = load_rows(&loading, now);

	coop_map_clear(&loading.agents);
	return r;
}

/* What the ends of the chain show to be missing since an earlier keeper noted them. */
static bool compare_ends(struct coop_keeper *keeper, char *ret, size_t size)
{
	const struct coop_audit_anchor *then = &coop_books_of(keeper)->audit_then;
	struct coop_audit_anchor now;

	coop_audit_anchor(coop_books_of(keeper)->audit, &now);
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

/* Compares with what was noted (NULL: nothing was). */
static bool find_fault(struct coop_keeper *keeper, const char *noted)
{
	struct coop_audit_anchor now;

	if (noted)
		return coop_audit_anchor_parse(noted, &coop_books_of(keeper)->audit_then) == 0 &&
		       compare_ends(keeper, coop_books_of(keeper)->audit_fault,
				    sizeof coop_books_of(keeper)->audit_fault);
	coop_audit_anchor(coop_books_of(keeper)->audit, &now);
	if (now.last == 0)
		return false;
	(void)snprintf(coop_books_of(keeper)->audit_fault,
		       sizeof coop_books_of(keeper)->audit_fault,
		       "records.db was missing when the keeper started: agents, tokens and the "
		       "past are gone, and maybe lines of the audit");
	return true;
}

/* A fault that was seen once stays known: with the next line the ends look well again. */
static int check_ends(struct coop_keeper *keeper, struct coop_err *err)
{
	char *noted = NULL, *fault = NULL, text[COOP_AUDIT_ANCHOR_TEXT];
	struct coop_audit_anchor now;
	int r = coop_store_get_meta(coop_books_of(keeper)->store, "audit", &noted, err);

	if (r == 0)
		r = coop_store_get_meta(coop_books_of(keeper)->store, "audit_fault", &fault, err);
	if (fault && !*fault) {
		free(fault);
		fault = NULL;
	}
	if (r == 0 && fault)
		(void)snprintf(coop_books_of(keeper)->audit_fault,
			       sizeof coop_books_of(keeper)->audit_fault, "%s", fault);
	if (r == 0 && !fault && find_fault(keeper, noted))
		r = coop_store_set_meta(coop_books_of(keeper)->store, "audit_fault",
					coop_books_of(keeper)->audit_fault, err);
	coop_audit_anchor(coop_books_of(keeper)->audit, &now);
	coop_audit_anchor_format(&now, text);
	if (r == 0)
		r = coop_store_set_meta(coop_books_of(keeper)->store, "audit", text, err);
	free(noted);
	free(fault);
	return r;
}

/* What an earlier keeper left is carried to the disk first; then the chain goes on in memory. */
static int begin_audit(struct coop_keeper *keeper, struct coop_err *err)
{
	const struct coop_settings *settings = &coop_conf_of(keeper)->settings;
	struct coop_journal *journal = coop_journal_of(keeper);
	struct coop_audit_anchor anchor;
	int r = coop_audit_open(
		coop_place_of(keeper)->state_dir, (uint64_t)settings->audit_max_bytes,
		(unsigned)settings->audit_files, &coop_books_of(keeper)->audit, err);

	if (r < 0)
		return r;
	r = coop_audit_recover(coop_books_of(keeper)->audit, journal->backlog);
	if (r < 0)
		return coop_err_set(err, COOP_UNAVAILABLE, "the audit cannot be written: %s",
				    strerror(-r));
	r = check_ends(keeper, err);
	if (r < 0)
		return r;
	coop_audit_anchor(coop_books_of(keeper)->audit, &anchor);
	coop_audit_chain_begin(&journal->chain, journal->backlog, &anchor);
	return coop_lost_audit(coop_books_of(keeper)->store, coop_books_of(keeper)->audit,
			       &journal->chain, coop_place_of(keeper)->state_dir,
			       &coop_books_of(keeper)->audit_lost, err);
}

/* With a state folder: its files are opened, and what an earlier keeper knew is taken over. */
static int load_state(struct coop_keeper *keeper, struct coop_err *err)
{
	int r = coop_backlog_load(coop_journal_of(keeper)->backlog,
				  coop_place_of(keeper)->state_dir);

	if (r < 0)
		return coop_err_set(err, COOP_UNAVAILABLE, "%.300s/backlog cannot be read: %s",
				    coop_place_of(keeper)->state_dir, strerror(-r));
	r = open_store(keeper, err);
	if (r == 0 && coop_conf_of(keeper)->audit)
		r = begin_audit(keeper, err);
	if (r == 0)
		r = load_store(keeper, coop_clock_wall_ms(), err);
	if (r == 0)
		coop_backlog_forget(coop_place_of(keeper)->state_dir);
	return r;
}

int coop_startup(struct coop_keeper *keeper, struct coop_err *err)
{
	const char *dir =
		*coop_place_of(keeper)->state_dir ? coop_place_of(keeper)->state_dir : NULL;
	int r = open_secret(keeper, dir, err);

	if (r == 0 && dir)
		r = load_state(keeper, err);
	if (r == 0)
		r = make_main(keeper, err);
	if (r < 0)
		return r;
	coop_agent_folders_sweep(keeper);
	coop_expiry_look(keeper);
	return 0;
}

void coop_startup_undo(struct coop_keeper *keeper)
{
	while (!coop_list_empty(coop_agents_principals(keeper))) {
		struct coop_principal *principal = COOP_LIST_ITEM(
			coop_agents_of(keeper)->principals.next, struct coop_principal, in_keeper);
		if (!principal->first)
			break; /* somebody holds one of its agents: it goes with the process */
		for (struct coop_agent *agent = NULL;
		     (agent = coop_agent_next(principal->first, agent));) {
			coop_token_drop_all(agent);
			coop_session_drop_all(agent);
		}
		coop_agent_detach(principal->first);
	}
	coop_left_out_clear(keeper);
	coop_map_clear(&coop_agents_of(keeper)->tokens);
	coop_store_close(coop_books_of(keeper)->store);
	coop_audit_close(coop_books_of(keeper)->audit);
	coop_secret_free(coop_books_of(keeper)->secret);
}
