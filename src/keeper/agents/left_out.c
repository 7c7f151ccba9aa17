#include "keeper/agents/left_out.h"
#include "keeper/owner/agents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io/log.h"
#include "base/list.h"
#include "base/mem.h"
#include "interface/schema.h"
#include "keeper/agents/change.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/job.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "records/store.h"

struct left_out {
	struct coop_link in_keeper;
	int64_t id;
	char *principal, *path, *why;
	bool leaves; /* with the removal that is under way */
};

/* A removal. One at a time is made, as all changes are: which ones leave is marked in the list. */
struct removal {
	struct coop_change change;
	char *principal, *path;
	unsigned count;
};

#define EACH(agents, item)                                                                \
	for (struct left_out *item =                                                      \
		     COOP_LIST_ITEM((agents)->left_out.next, struct left_out, in_keeper); \
	     &(item)->in_keeper != &(agents)->left_out;                                   \
	     (item) = COOP_LIST_ITEM((item)->in_keeper.next, struct left_out, in_keeper))

static void free_item(struct left_out *item)
{
	free(item->principal);
	free(item->path);
	free(item->why);
	free(item);
}

int coop_left_out_add(struct coop_keeper *keeper, const struct coop_store_agent *row,
		      const char *why)
{
	struct left_out *item = coop_mem_zalloc(sizeof *item);

	if (!item || !(item->principal = coop_mem_strdup(row->principal)) ||
	    !(item->path = coop_mem_strdup(row->path)) || !(item->why = coop_mem_strdup(why))) {
		if (item)
			free_item(item);
		return -ENOMEM;
	}
	item->id = row->id;
	coop_list_add(&coop_agents_of(keeper)->left_out, &item->in_keeper);
	coop_log(COOP_LOG_ERROR,
		 "an agent is left out, with its tokens agent=%.200s reason=\"%.300s\"", row->path,
		 why);
	return 0;
}

bool coop_left_out_has(const struct coop_keeper *keeper, int64_t id)
{
	EACH(coop_agents_of(keeper), item)
	{
		if (item->id == id)
			return true;
	}
	return false;
}

bool coop_left_out_named(const struct coop_keeper *keeper, const char *principal, const char *path)
{
	EACH(coop_agents_of(keeper), item)
	{
		if (!strcmp(item->principal, principal) && !strcmp(item->path, path))
			return true;
	}
	return false;
}

void coop_left_out_write(const struct coop_keeper *keeper, struct coop_jsonw *w, const char *name)
{
	coop_jsonw_array(w, name);
	EACH(coop_agents_of(keeper), item)
	{
		coop_jsonw_begin(w, NULL);
		coop_jsonw_string(w, "principal", item->principal);
		coop_jsonw_string(w, "path", item->path);
		coop_jsonw_string(w, "reason", item->why);
		coop_jsonw_end(w);
	}
	coop_jsonw_array_end(w);
}

static void drop(struct coop_change *change)
{
	struct removal *mine = (struct removal *)change;

	free(mine->principal);
	free(mine->path);
	free(mine);
}

/* Marks what leaves: those of that path, and what lies below it. */
static int check(struct coop_change *change, struct coop_err *err)
{
	struct removal *mine = (struct removal *)change;
	size_t size = strlen(mine->path);

	mine->count = 0;
	EACH(coop_agents_of(change->job.keeper), item)
	{
		item->leaves = !strcmp(item->principal, mine->principal) &&
			       !strncmp(item->path, mine->path, size) &&
			       (!item->path[size] || item->path[size] == '/');
		mine->count += item->leaves;
	}
	return mine->count ? 0 : coop_agent_none(err);
}

/* Only changes touch the list once the keeper runs, and this is the one that has its turn. */
static int write_removal(struct coop_change *change, struct coop_store *store, struct coop_err *err)
{
	int r = 0;

	EACH(coop_agents_of(change->job.keeper), item)
	{
		if (r == 0 && item->leaves)
			r = coop_store_remove_agent(store, item->id, coop_clock_wall_ms(), err);
	}
	return r;
}

/* They have no processes, tokens or connections here: what they had ended with an earlier
 * keeper. */
static int make(struct coop_change *change, struct coop_err *err)
{
	struct removal *mine = (struct removal *)change;
	struct coop_request *request = coop_job_release(&change->job);
	struct coop_jsonw w;

	(void)err;
	COOP_LIST_EACH(&coop_agents_of(change->job.keeper)->left_out, link)
	{
		struct left_out *item = COOP_LIST_ITEM(link, struct left_out, in_keeper);
		if (!item->leaves)
			continue;
		coop_list_remove(link);
		free_item(item);
	}
	if (!request)
		return 0;
	coop_request_result(request, &w);
	coop_jsonw_uint(&w, "agents", mine->count);
	coop_jsonw_uint(&w, "ended", 0);
	coop_jsonw_uint(&w, "survivors", 0);
	coop_request_end(request, &w);
	return 0;
}

/* The full path that an argument means: from the top, or from main. To be freed; NULL without
 * memory. */
static char *full_path(const struct coop_keeper *keeper, const char *principal, const char *text)
{
	size_t size = strlen(COOP_AGENT_FIRST) + strlen(text) + 2;
	char *path = coop_mem_alloc(size);

	if (!path)
		return NULL;
	(void)snprintf(path, size, "%s/%s", COOP_AGENT_FIRST, text);
	if (!coop_left_out_named(keeper, principal, path))
		(void)snprintf(path, size, "%s", text);
	return path;
}

bool coop_left_out_remove(struct coop_request *request)
{
	struct coop_keeper *keeper = request->keeper;
	const struct coop_conn *conn = request->conn;

	if (!conn->is_operator || coop_list_empty(&coop_agents_of(keeper)->left_out))
		return false;
	const char *principal =
		coop_arg_string(request->args, "principal", conn->agent->principal->name);
	struct removal *mine = coop_mem_zalloc(sizeof *mine);
	if (!mine || !(mine->principal = coop_mem_strdup(principal)) ||
	    !(mine->path =
		      full_path(keeper, principal, coop_arg_string(request->args, "agent", "")))) {
		if (mine)
			drop(&mine->change);
		coop_request_no_memory(request);
		return true;
	}
	if (!coop_left_out_named(keeper, principal, mine->path)) {
		drop(&mine->change);
		return false;
	}
	mine->change = (struct coop_change){.job = {.request = request},
					    .check = check,
					    .write = write_removal,
					    .make = make,
					    .drop = drop};
	coop_change_begin(keeper, &mine->change);
	return true;
}

void coop_left_out_clear(struct coop_keeper *keeper)
{
	COOP_LIST_EACH(&coop_agents_of(keeper)->left_out, link)
	{
		coop_list_remove(link);
		free_item(COOP_LIST_ITEM(link, struct left_out, in_keeper));
	}
}
