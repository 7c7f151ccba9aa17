#include "keeper/start/verdict.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/env.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/draft.h"
#include "keeper/core/keeper.h"
#include "keeper/host/missing.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_settings.h"
#include "keeper/process/process.h"

/* An envelope travels as the details of an error, which clients take up to 8 KiB of. */
#define SHOWN_MAX 1024u /* bytes of the command */
#define NAMES_MAX 1024u /* and of the names of variables */
#define BRIEF_MAX 160u  /* bytes of the command in each decision */

/* The operator's first, then from the top of the tree down to the agent. */
static size_t collect(const struct coop_agent *agent, const struct coop_policy **ret)
{
	const struct coop_agent *chain[COOP_AGENT_DEPTH_MAX] = {0};
	size_t depth = 0, count = 0;

	ret[count++] = coop_conf_of(agent->keeper)->policy;
	for (; agent && depth < COOP_AGENT_DEPTH_MAX; agent = agent->parent)
		chain[depth++] = agent;
	while (depth--) {
		if (chain[depth]->settings.policy)
			ret[count++] = chain[depth]->settings.policy;
	}
	return count;
}

/* Programs, too, may lie where nobody answers. */
static bool may_look(void *user, const char *path)
{
	struct coop_draft *draft = user;

	return coop_missing_program(draft->request, path);
}

int coop_verdict_reach(struct coop_draft *draft, struct coop_verdict *ret)
{
	const struct coop_policy *levels[COOP_AGENT_DEPTH_MAX + 1];
	size_t count = collect(draft->agent, levels);
	const char *line = coop_arg_string(draft->args, "command", NULL);
	const struct coop_policy_command command = {
		.argv = draft->argv,
		.shell_command = line,
		/* Patterns look at all of a shell's line; of a very long argv only the beginning is
		   kept. */
		.display = line ? line : draft->process->labels.command,
		.display_cut = !line && draft->process->labels.truncated,
		.cwd = draft->process->labels.cwd,
		.home = coop_env_home(),
		.path = coop_env_get(&draft->env, "PATH"),
		.workspace = (const char *const *)coop_agent_workspace(draft->agent),
		.may_look = may_look,
		.user = draft,
	};

	if (coop_policy_decide(levels, count, &command, ret) < 0)
		return coop_err_no_memory(draft->err);
	if (coop_missing_programs(draft->request)) {
		draft->again = true;
		return -EAGAIN;
	}
	if (ret->action == COOP_ACTION_ALLOW)
		return 0;
	const char *reason = ret->count ? ret->decisions[0].reason : "not allowed";
	if (ret->action == COOP_ACTION_DENY)
		return coop_err_set(draft->err, COOP_PERMISSION_DENIED, "blocked by policy: %s",
				    reason);
	if (ret->action == COOP_ACTION_REQUIRE_APPROVAL)
		return coop_err_set(draft->err, COOP_PERMISSION_DENIED,
				    "needs approval, which nobody can give here: %s", reason);
	return coop_err_set(draft->err, COOP_PERMISSION_DENIED, "nothing was started: %s", reason);
}

static const char *status_of(enum coop_action action)
{
	switch (action) {
	case COOP_ACTION_ALLOW:
		return "allowed";
	case COOP_ACTION_EXPLAIN_ONLY:
		return "explain_only";
	case COOP_ACTION_DRY_RUN:
		return "dry_run";
	case COOP_ACTION_REQUIRE_APPROVAL:
	case COOP_ACTION_DENY:
		break;
	}
	return "blocked";
}

/* The request as it came, without anything that could be secret. */
static void write_request(const struct coop_draft *draft, const char *display, struct coop_jsonw *w)
{
	const struct coop_labels *labels = &draft->process->labels;
	const json_t *env = coop_arg(draft->args, "env");
	size_t used = 0;
	const char *name;
	json_t *value;

	coop_jsonw_begin(w, "request");
	coop_jsonw_string(w, "mode", draft->process->labels.shell ? "shell" : "argv");
	/* What is long is told as text, cut. */
	if (labels->shell || strlen(labels->argv_json) > SHOWN_MAX)
		coop_jsonw_string(w, "command", display);
	else
		coop_jsonw_raw(w, "argv", labels->argv_json);
	coop_jsonw_string(w, "cwd", draft->process->labels.cwd);
	coop_jsonw_begin(w, "env");
	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		used += strlen(name) + sizeof "<redacted>";
		if (used < NAMES_MAX)
			coop_jsonw_string(w, name, "<redacted>");
	}
	coop_jsonw_end(w);
	coop_jsonw_string(w, "stdin", draft->input.size ? "<redacted>" : NULL);
	coop_jsonw_end(w);
}

static void write_context(const struct coop_draft *draft, struct coop_jsonw *w)
{
	coop_jsonw_begin(w, "context");
	coop_jsonw_string(w, "principal", draft->agent->principal->name);
	coop_jsonw_string(w, "agent", draft->agent->path);
	coop_jsonw_string(w, "cwd", draft->process->labels.cwd);
	coop_workspace_write(coop_agent_workspace(draft->agent), w, "workspace");
	coop_jsonw_string(w, "profile", coop_confine_profile(draft->process));
	coop_jsonw_end(w);
}

/* ret has room for so many bytes and an ellipsis. A character that is cut is told as U+FFFD. */
static void show(const char *command, size_t max, char *ret)
{
	(void)snprintf(ret, max + 4, "%.*s%s", (int)max, command,
		       strlen(command) > max ? "\xe2\x80\xa6" : "");
}

void coop_verdict_envelope(struct coop_draft *draft, const struct coop_verdict *verdict,
			   struct coop_jsonw *w)
{
	bool allowed = verdict->action == COOP_ACTION_ALLOW;
	char display[SHOWN_MAX + 4], brief[BRIEF_MAX + 4];

	show(draft->process->labels.command, SHOWN_MAX, display);
	show(draft->process->labels.command, BRIEF_MAX, brief);
	coop_jsonw_string(w, "status", status_of(verdict->action));
	if (allowed)
		coop_jsonw_null(w, "exit_code");
	else
		coop_jsonw_int(w, "exit_code", -1);
	coop_jsonw_null(w, "pid");
	coop_jsonw_string(w, "stderr", allowed ? "" : draft->err->message);
	coop_jsonw_string(w, "error", allowed ? NULL : "permission_denied");
	write_request(draft, display, w);
	coop_jsonw_begin(w, "command_policy");
	write_context(draft, w);
	coop_verdict_write(verdict, brief, w, "decisions");
	coop_jsonw_end(w);
}

void coop_verdict_details(struct coop_draft *draft, const struct coop_verdict *verdict,
			  struct coop_buf *ret)
{
	struct coop_jsonw w = {.out = ret};

	coop_verdict_envelope(draft, verdict, &w);
	if (w.failed || coop_buf_append(ret, "", 1) < 0)
		coop_buf_clear(ret);
}
