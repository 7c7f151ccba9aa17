#include "keeper/owner/agent.h"
#include "keeper/owner/agents.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

struct coop_agents *coop_agents_new(struct coop_keeper *keeper,
				    void (*on_leave)(struct coop_agent *agent))
{
	struct coop_agents *agents = coop_mem_zalloc(sizeof *agents);

	if (!agents)
		return NULL;
	agents->on_leave = on_leave;
	coop_list_init(&agents->principals);
	coop_list_init(&agents->left_out);
	coop_list_init(&agents->changes);
	(void)uv_timer_init(coop_loop_of(keeper), &agents->expiry);
	agents->expiry.data = keeper;
	return agents;
}

struct coop_link *coop_agents_principals(const struct coop_keeper *keeper)
{
	return &coop_agents_of(keeper)->principals;
}

struct coop_agent *coop_agents_main(const struct coop_keeper *keeper)
{
	return coop_agents_of(keeper)->main;
}

bool coop_agent_is_main(const struct coop_agent *agent)
{
	return agent && agent == coop_agents_of(agent->keeper)->main;
}

/* A principal whose first agent is removed stays in the list for as long as records hold its
 * agents; its name is free for a new one meanwhile. */
struct coop_principal *coop_principal_find(const struct coop_keeper *keeper, const char *name)
{
	COOP_LIST_EACH(coop_agents_principals(keeper), link)
	{
		struct coop_principal *principal =
			COOP_LIST_ITEM(link, struct coop_principal, in_keeper);
		if (principal->first && !strcmp(principal->name, name))
			return principal;
	}
	return NULL;
}

/* Principals begin with their first agent and go with the last reference to any of theirs: nobody
 * holds one directly. */
static struct coop_principal *new_principal(struct coop_keeper *keeper, const char *name)
{
	struct coop_principal *principal = coop_mem_zalloc(sizeof *principal);

	if (!principal || !(principal->name = coop_mem_strdup(name))) {
		free(principal);
		return NULL;
	}
	coop_list_init(&principal->processes);
	coop_list_init(&principal->receipts);
	coop_list_add(coop_agents_principals(keeper), &principal->in_keeper);
	return principal;
}

static void free_principal(struct coop_principal *principal)
{
	coop_list_remove(&principal->in_keeper);
	free(principal->name);
	free(principal);
}

char *coop_agent_join(const struct coop_agent *parent, const char *name)
{
	size_t above = parent ? strlen(parent->path) + 1 : 0, size = strlen(name) + 1;
	char *path = coop_mem_alloc(above + size);

	if (path && parent) {
		memcpy(path, parent->path, above - 1);
		path[above - 1] = '/';
	}
	if (path)
		memcpy(path + above, name, size);
	return path;
}

struct coop_agent *coop_agent_make(struct coop_keeper *keeper, const char *principal,
				   struct coop_agent *parent, const char *name,
				   struct coop_agent_settings *settings)
{
	struct coop_agent *agent = coop_mem_zalloc(sizeof *agent);

	if (!agent || !(agent->path = coop_agent_join(parent, name))) {
		free(agent);
		return NULL;
	}
	agent->principal = parent ? parent->principal : new_principal(keeper, principal);
	if (!agent->principal) {
		free(agent->path);
		free(agent);
		return NULL;
	}
	agent->keeper = keeper;
	agent->refs = 1;
	/* The name is the end of the path, not a copy: both go together. */
	agent->name = agent->path + strlen(agent->path) - strlen(name);
	agent->created_at = coop_clock_wall_ms();
	agent->removed = true; /* until it is entered */
	agent->settings = *settings;
	/* The lists in it are the agent's now; the caller's struct can be cleared as if nothing
	 * were in it. */
	coop_agent_settings_init(settings);
	coop_list_init(&agent->children);
	coop_list_init(&agent->told);
	coop_list_init(&agent->untold);
	coop_completions_init(&agent->completions);
	coop_list_init(&agent->sessions);
	coop_list_init(&agent->tokens);
	agent->principal->agents++;
	if (parent)
		agent->parent = coop_agent_ref(parent);
	return agent;
}

/* Apart from the making, because a row for the database lies between the two: until that is written
 * nobody may find the agent. */
void coop_agent_enter(struct coop_agent *agent)
{
	agent->removed = false;
	if (agent->parent)
		coop_list_add(&agent->parent->children, &agent->in_parent);
	else
		agent->principal->first = agent;
	coop_agents_of(agent->keeper)->count++;
}

struct coop_agent *coop_agent_ref(struct coop_agent *agent)
{
	agent->refs++;
	return agent;
}

/* Without recursion: the last record of a deep branch that was removed long ago can take all agents
 * above it along. */
void coop_agent_unref(struct coop_agent *agent)
{
	while (agent && --agent->refs == 0) {
		struct coop_agent *parent = agent->parent;
		coop_agents_of(agent->keeper)->on_leave(agent);
		if (--agent->principal->agents == 0)
			free_principal(agent->principal);
		coop_agent_settings_clear(&agent->settings);
		free(agent->path);
		free(agent);
		agent = parent;
	}
}

/* Below first: none may be left in the tree whose parent is not. */
void coop_agent_detach(struct coop_agent *agent)
{
	if (agent->removed)
		return;
	while (!coop_list_empty(&agent->children))
		coop_agent_detach(
			COOP_LIST_ITEM(agent->children.next, struct coop_agent, in_parent));
	agent->removed = true;
	/* Not with the last reference: finished records hold one for a long time. */
	json_decref(agent->settings.extras.env);
	agent->settings.extras.env = NULL;
	coop_agents_of(agent->keeper)->on_leave(agent);
	coop_agents_of(agent->keeper)->count--;
	coop_list_remove(&agent->in_parent);
	if (agent->principal->first == agent)
		agent->principal->first = NULL;
	coop_agent_unref(agent);
}

/* Upwards from the owner: agents go at most a few levels deep, while a tree below the viewer may
 * hold thousands. */
bool coop_agent_sees(const struct coop_agent *viewer, const struct coop_agent *owner)
{
	for (; owner; owner = owner->parent) {
		if (owner == viewer)
			return true;
	}
	return false;
}

const char *coop_agent_label(const struct coop_agent *viewer, const struct coop_agent *owner)
{
	return viewer == owner ? "self" : owner->name;
}

bool coop_agent_matches(const struct coop_agent *viewer, const struct coop_agent *owner,
			const char *filter)
{
	size_t size = strlen(viewer->path);

	if (!filter || !strcmp(filter, coop_agent_label(viewer, owner)) ||
	    !strcmp(filter, owner->path))
		return true;
	/* Below the viewer a path may be given as it looks from there. */
	return owner != viewer && !strcmp(filter, owner->path + size + 1);
}

bool coop_agent_valid_name(const char *name)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

	/* "self" is how lists call the caller. */
	return *name && strlen(name) <= COOP_AGENT_NAME_MAX && !strchr("._-", *name) &&
	       name[strspn(name, letters)] == 0 && strcmp(name, "self") != 0;
}

bool coop_agent_valid_path(const char *path)
{
	char name[COOP_AGENT_NAME_MAX + 1];

	for (;;) {
		size_t size = strcspn(path, "/");
		if (size > COOP_AGENT_NAME_MAX)
			return false;
		memcpy(name, path, size);
		name[size] = 0;
		if (!coop_agent_valid_name(name))
			return false;
		if (!path[size])
			return true;
		path += size + 1;
	}
}

/* The name is not ended: it is a piece of a path. */
static struct coop_agent *child(const struct coop_agent *parent, const char *name, size_t size)
{
	COOP_LIST_EACH(&parent->children, link)
	{
		struct coop_agent *agent = COOP_LIST_ITEM(link, struct coop_agent, in_parent);
		if (strlen(agent->name) == size && !strncmp(agent->name, name, size))
			return agent;
	}
	return NULL;
}

/* The part of `text` below `base`: its own path in front may be left out. */
static const char *below(const struct coop_agent *base, const char *text)
{
	size_t size = strlen(base->path);

	if (strncmp(text, base->path, size) != 0 || (text[size] && text[size] != '/'))
		return text;
	return text + size + (text[size] == '/');
}

int coop_agent_none(struct coop_err *err)
{
	return coop_err_field(err, COOP_INVALID_INPUT, "agent",
			      "there is no such agent at or below yours");
}

/* Follows the names up to `end`. */
static struct coop_agent *walk(struct coop_agent *agent, const char *text, const char *end)
{
	while (agent && text < end) {
		size_t size = strcspn(text, "/");
		agent = child(agent, text, size);
		text += size + 1;
	}
	return agent;
}

struct coop_agent *coop_agent_find(struct coop_agent *base, const char *text, struct coop_err *err)
{
	const char *rest = below(base, text), *end = rest + strlen(rest);
	bool whole = *text && text[strlen(text) - 1] != '/';
	struct coop_agent *agent = whole ? walk(base, rest, end) : NULL;

	if (!agent)
		(void)coop_agent_none(err);
	return agent;
}

struct coop_agent *coop_agent_find_parent(struct coop_agent *base, const char *text,
					  const char **ret_name, struct coop_err *err)
{
	const char *rest = below(base, text), *slash = strrchr(rest, '/'),
		   *name = slash ? slash + 1 : rest;
	unsigned depth = 2; /* the new one and its parent */

	if (!strcmp(text, base->path)) {
		(void)coop_err_field(err, COOP_EXISTS, "agent", "that agent is there already");
		return NULL;
	}
	if (!coop_agent_valid_name(name)) {
		(void)coop_err_field(
			err, COOP_INVALID_INPUT, "agent",
			"an agent's name has 1 to %u of A-Z a-z 0-9 . _ -, begins with "
			"a letter or digit, and is not self",
			COOP_AGENT_NAME_MAX);
		return NULL;
	}
	/* Nothing before a slash is no name. */
	struct coop_agent *parent = slash == rest ? NULL : walk(base, rest, slash ? slash : rest);
	if (!parent) {
		(void)coop_agent_none(err);
		return NULL;
	}
	for (const struct coop_agent *above = parent->parent; above; above = above->parent)
		depth++;
	if (depth > COOP_AGENT_DEPTH_MAX) {
		(void)coop_err_field(err, COOP_INVALID_INPUT, "agent", "agents go at most %u deep",
				     COOP_AGENT_DEPTH_MAX);
		return NULL;
	}
	*ret_name = name;
	return parent;
}

/* A walk without a stack, parents before their children, which may be broken off anywhere. The
 * agent it stands on must stay until the next is asked for. */
struct coop_agent *coop_agent_next(struct coop_agent *top, const struct coop_agent *at)
{
	if (!at)
		return top;
	if (!coop_list_empty(&at->children))
		return COOP_LIST_ITEM(at->children.next, struct coop_agent, in_parent);
	while (at != top) {
		if (at->in_parent.next != &at->parent->children)
			return COOP_LIST_ITEM(at->in_parent.next, struct coop_agent, in_parent);
		at = at->parent;
	}
	return NULL;
}

/* What nobody has set comes from the operator, who gives the first agent of a principal more
 * than those below it. */
int64_t coop_agent_max_running(const struct coop_agent *agent)
{
	const struct coop_settings *settings = &coop_conf_of(agent->keeper)->settings;

	if (agent->settings.max_running >= 0)
		return agent->settings.max_running;
	return agent->parent ? settings->agent_max_running : settings->max_running;
}

int64_t coop_agent_max_finished(const struct coop_agent *agent)
{
	int64_t limit = coop_conf_of(agent->keeper)->settings.max_finished;

	for (; agent; agent = agent->parent) {
		if (agent->settings.max_finished >= 0)
			limit = least(limit, agent->settings.max_finished);
	}
	return limit;
}

int64_t coop_agent_effective_running(const struct coop_agent *agent)
{
	const struct coop_settings *settings = &coop_conf_of(agent->keeper)->settings;
	int64_t limit = least(settings->principal_max_running, settings->host_max_running);

	for (; agent; agent = agent->parent)
		limit = least(limit, coop_agent_max_running(agent));
	return limit;
}

/* The first agent of a principal stands for all of it, and has the operator's bound on the
 * principal. */
int64_t coop_agent_max_buffer(const struct coop_agent *agent)
{
	int64_t all = coop_conf_of(agent->keeper)->settings.principal_buffer_bytes;
	int64_t own = agent->settings.max_buffer_bytes;

	if (agent->parent)
		return own;
	return own >= 0 ? least(own, all) : all;
}

int64_t coop_agent_effective_buffer(const struct coop_agent *agent)
{
	int64_t limit = coop_conf_of(agent->keeper)->settings.principal_buffer_bytes;

	for (; agent; agent = agent->parent) {
		int64_t own = coop_agent_max_buffer(agent);
		if (own >= 0)
			limit = least(limit, own);
	}
	return limit;
}

/* A grant is worth what the ones above it are: taken from a parent, it is gone from all below at
 * once, with no settings to be changed. */
bool coop_agent_may_persist(const struct coop_agent *agent)
{
	for (; agent; agent = agent->parent) {
		if (!agent->settings.persistent)
			return false;
	}
	return true;
}

bool coop_agent_restricted(const struct coop_agent *agent)
{
	for (; agent; agent = agent->parent) {
		if (agent->settings.restricted)
			return true;
	}
	return false;
}

/* The nearest roots bind, not the sum: those of a child were checked to lie in its parents' when
 * they were given. */
char *const *coop_agent_workspace(const struct coop_agent *agent)
{
	while (agent && !agent->settings.workspace)
		agent = agent->parent;
	return agent ? agent->settings.workspace : NULL;
}
