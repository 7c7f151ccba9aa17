#include "keeper/owner/agent_folder.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "keeper/owner/agent.h"

/* A folder of its own is always the one root of the agent: settings do not let it be changed. */
const char *coop_agent_folder(const struct coop_agent *agent)
{
	return agent->settings.extras.folder_in ? agent->settings.workspace[0] : NULL;
}

char *coop_agent_folder_beside(const char *root, const char *name)
{
	char *path = coop_mem_strdup(root);

	if (path)
		memcpy(path + strlen(path) - strlen(COOP_AGENT_FOLDER_WORK), name,
		       strlen(name) + 1);
	return path;
}

/* Of whom the workspace is, so that an agent that works in a parent's folder has that parent's /tmp
 * too. */
char *coop_agent_folder_tmp(const struct coop_agent *agent)
{
	errno = 0;
	while (agent && !agent->settings.workspace)
		agent = agent->parent;
	const char *root = agent ? coop_agent_folder(agent) : NULL;
	char *path = root ? coop_agent_folder_beside(root, COOP_AGENT_FOLDER_TMP) : NULL;
	if (root && !path)
		errno = ENOMEM;
	return path;
}
