/* The folder that an agent may have of its own: `<data folder>/<agent's number>-<mark>`. In it are
 * `work`, its workspace root, and `tmp`, what its commands have as /tmp. It is made with the agent
 * and goes with it. The mark is random, and the keeper's key says whether one is its own: several
 * keepers may share a data folder, and each touches what it has made itself, nothing else. */
#ifndef COOP_KEEPER_AGENT_FOLDER_H
#define COOP_KEEPER_AGENT_FOLDER_H

#define COOP_AGENT_FOLDER_WORK "/work"
#define COOP_AGENT_FOLDER_TMP "/tmp" /* no longer than the other */

struct coop_agent;

/* The workspace root in it; NULL: it has none. */
const char *coop_agent_folder(const struct coop_agent *agent);

/* Where the /tmp lies that the agent's commands share: in its own folder, or in the one above that
 * it works in. One that was given a narrower workspace shares none. To be freed; NULL without one,
 * or without memory (then errno is ENOMEM). */
char *coop_agent_folder_tmp(const struct coop_agent *agent);

/* What else lies beside the root; "": the folder that holds both. To be freed; NULL without
 * memory. */
char *coop_agent_folder_beside(const char *root, const char *name);

#endif
