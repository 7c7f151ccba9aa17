#include "keeper/owner/session.h"

#include <stdio.h>
#include <string.h>

#include "keeper/owner/agent.h"

void coop_session_format(uint64_t n, char ret[COOP_SESSION_TEXT])
{
	*ret = 0;
	if (n)
		(void)snprintf(ret, COOP_SESSION_TEXT, "ses-%llu", (unsigned long long)n);
}

/* One that is ending is found by nobody any more: a process that joined it now would not be ended
 * with it. */
static struct coop_session *by_id(const struct coop_agent *agent, const char *id)
{
	char text[COOP_SESSION_TEXT];

	COOP_LIST_EACH(&agent->sessions, link)
	{
		struct coop_session *session = COOP_LIST_ITEM(link, struct coop_session, in_agent);
		coop_session_format(session->n, text);
		if (!session->ending && !strcmp(text, id))
			return session;
	}
	return NULL;
}

struct coop_session *coop_session_find(const struct coop_agent *agent, const char *id,
				       const char *field, struct coop_err *err)
{
	struct coop_session *session = by_id(agent, id);

	if (!session)
		(void)coop_err_field(err, COOP_INVALID_INPUT, field,
				     "this agent has no such session");
	return session;
}

/* Also of a session that is ending: ends of its last processes come while it waits for them. */
struct coop_completions *coop_session_completions(struct coop_agent *agent, uint64_t n)
{
	if (!n)
		return &agent->completions;
	COOP_LIST_EACH(&agent->sessions, link)
	{
		struct coop_session *session = COOP_LIST_ITEM(link, struct coop_session, in_agent);
		if (session->n == n)
			return &session->completions;
	}
	return NULL;
}
