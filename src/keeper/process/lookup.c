#include "keeper/process/lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interface/schema.h"
#include "keeper/link/connection.h"
#include "keeper/link/operation.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"

/* Exactly as ids are printed: a number with a sign, a space or a leading zero is no id of ours. */
uint64_t coop_lookup_number(const char *text)
{
	const char *dash;
	char *end;

	if (strncmp(text, "psh-", 4) != 0)
		return 0;
	dash = text + 4 + strspn(text + 4, "0123456789abcdef");
	if (*dash != '-' || dash[1] < '1' || dash[1] > '9')
		return 0;
	errno = 0;
	uint64_t n = strtoull(dash + 1, &end, 10);
	return errno || *end ? 0 : n;
}

struct candidates {
	struct coop_process *found;
	unsigned count;
	char list[512]; /* JSON array without its brackets */
};

/* The list for the error is cut where it is full; the count goes on. */
static void add_candidate(struct candidates *candidates, struct coop_process *process)
{
	size_t used = strlen(candidates->list);

	candidates->found = process;
	candidates->count++;
	if (used + strlen(process->id) + 4 < sizeof candidates->list)
		(void)snprintf(candidates->list + used, sizeof candidates->list - used, "%s\"%s\"",
			       used ? "," : "", process->id);
}

static struct coop_process *unambiguous(const struct candidates *candidates, const char *what,
					struct coop_err *err)
{
	char list[sizeof candidates->list + 3];

	if (candidates->count <= 1)
		return candidates->found;
	(void)coop_err_field(err, COOP_INVALID_INPUT, "id", "%u processes %s; use one of their ids",
			     candidates->count, what);
	(void)snprintf(list, sizeof list, "[%s]", candidates->list);
	coop_err_detail_raw(err, "candidates", list);
	return NULL;
}

/* By its id, if the viewer may see it. */
static struct coop_process *by_id(const struct coop_agent *viewer, const char *text)
{
	uint64_t n = coop_lookup_number(text);
	struct coop_process *process = n ? coop_registry_by_number(viewer->keeper, n) : NULL;

	if (!process || !coop_agent_sees(viewer, process->agent))
		return NULL;
	/* Before its pid is known a process is listed as psh-0-N: that name stays good. */
	return !strcmp(process->id, text) || !strncmp(text, "psh-0-", 6) ? process : NULL;
}

/* What fits a name, the viewer's own apart from those of agents below it. Whatever those are
 * called, they are looked at only where nothing of the viewer's own fits: nobody below can catch,
 * or spoil, a name that means one's own. */
struct matches {
	struct candidates live;
	struct coop_process *latest;
};

static void add_match(struct matches matches[2], const struct coop_agent *viewer,
		      struct coop_process *process)
{
	struct matches *whose = &matches[process->agent != viewer];

	whose->latest = process;
	if (coop_process_live(process))
		add_candidate(&whose->live, process);
}

/* The one that lives, else the latest; NULL with the error as it was, or with that of several that
 * live. */
static struct coop_process *choose(const struct matches *matches, const char *what,
				   struct coop_err *err)
{
	return matches->live.count ? unambiguous(&matches->live, what, err) : matches->latest;
}

static struct coop_process *by_alias(const struct coop_agent *viewer, const char *alias,
				     struct coop_err *err)
{
	struct matches found[2] = {0};

	COOP_LIST_EACH(&viewer->principal->processes, link)
	{
		struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.principal);
		if (process->labels.alias && !strcmp(process->labels.alias, alias) &&
		    coop_agent_sees(viewer, process->agent))
			add_match(found, viewer, process);
	}
	/* Of one's own at most one lives: the others are refused. */
	return choose(&found[!found[0].latest], "have that alias and are running", err);
}

/* The system gives numbers again: the one that lives, else the latest. */
static struct coop_process *by_pid(const struct coop_agent *viewer, const char *digits,
				   struct coop_err *err)
{
	struct matches found[2] = {0};
	char *end;

	if (*digits < '1' || *digits > '9')
		return NULL;
	errno = 0;
	unsigned long pid = strtoul(digits, &end, 10);
	if (errno || *end)
		return NULL;
	COOP_LIST_EACH(&viewer->principal->processes, link)
	{
		struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.principal);
		if ((unsigned long)process->child.pid == pid &&
		    coop_agent_sees(viewer, process->agent))
			add_match(found, viewer, process);
	}
	return choose(&found[!found[0].latest], "have that number and are running", err);
}

/* Its tag, else the beginning of its id: first of all that are the viewer's own, then of the
 * others. */
static struct coop_process *by_name(const struct coop_agent *viewer, const char *text,
				    struct coop_err *err)
{
	struct matches tagged[2] = {0};
	struct candidates begins[2] = {0};
	size_t size = strlen(text);

	/* The principal's alone: what others have does not even take time. */
	COOP_LIST_EACH(&viewer->principal->processes, link)
	{
		struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.principal);
		if (!coop_agent_sees(viewer, process->agent))
			continue;
		if (process->labels.tag && !strcmp(process->labels.tag, text))
			add_match(tagged, viewer, process);
		if (size > 4 && !strncmp(process->id, text, size))
			add_candidate(&begins[process->agent != viewer], process);
	}
	for (int i = 0; i < 2; i++) {
		if (tagged[i].latest)
			return choose(&tagged[i], "have that tag and are running", err);
		if (begins[i].count)
			return unambiguous(&begins[i], "have an id that begins so", err);
	}
	return NULL;
}

/* The id comes first: tags and aliases are chosen by callers, and one that looks like an id must
 * not take another's place. A foreign id goes on as any unknown text does, to the same words. */
struct coop_process *coop_lookup(const struct coop_agent *viewer, const char *text,
				 struct coop_err *err)
{
	struct coop_process *process = by_id(viewer, text);

	(void)coop_err_set(err, COOP_NO_SUCH_PROCESS, "there is no such process");
	if (process)
		return process;
	if (!strncmp(text, COOP_LOOKUP_ALIAS, strlen(COOP_LOOKUP_ALIAS)))
		return by_alias(viewer, text + strlen(COOP_LOOKUP_ALIAS), err);
	if (!strncmp(text, COOP_LOOKUP_PID, strlen(COOP_LOOKUP_PID)))
		return by_pid(viewer, text + strlen(COOP_LOOKUP_PID), err);
	return by_name(viewer, text, err);
}

/* Said only of what the caller may see: that it belongs to somebody below tells nothing new. */
int coop_lookup_owned(const struct coop_request *request, const struct coop_process *process,
		      struct coop_err *err)
{
	if (process->agent == request->conn->agent)
		return 0;
	return coop_err_set(
		err, COOP_NOT_OWNER,
		"the process belongs to an agent below this one, which alone may do that");
}

struct coop_process *coop_lookup_named(struct coop_request *request)
{
	struct coop_err err;
	struct coop_process *process =
		coop_lookup(request->conn->agent, coop_arg_string(request->args, "id", ""), &err);
	bool owner = process && process->agent == request->conn->agent;

	if (process && !owner && request->op->row->right == COOP_RIGHT_USE) {
		(void)coop_lookup_owned(request, process, &err);
		process = NULL;
	}
	if (!process)
		coop_request_fail(request, &err);
	/* A call that names it is a sign of life for its idle clock; others who look must not keep
	 * it alive. */
	else if (owner)
		coop_deadlines_touch(process);
	return process;
}
