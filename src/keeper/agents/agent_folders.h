/* The folders of agents on disk (owner/agent_folder.h): chosen, made, proved to be ours, deleted.
 */
#ifndef COOP_KEEPER_AGENT_FOLDERS_H
#define COOP_KEEPER_AGENT_FOLDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "interface/err.h"

#define COOP_AGENT_FOLDER_GONE ".gone" /* behind the name of one that is being deleted */

struct coop_agent;
struct coop_agent_settings;
struct coop_keeper;
struct coop_trash;

/* All of it is to go. 0, also where there is none, or -ENOMEM. */
int coop_agent_folder_discard(const struct coop_agent *agent, struct coop_trash *trash);

/* Decides on one for an agent to be: the settings have a workspace root then, whose path is
 * complete once the agent's number is known. Makes sure of the data folder. 0, or the error
 * filled. */
int coop_agent_folder_choose(struct coop_keeper *keeper, struct coop_agent_settings *settings,
			     struct coop_err *err);

/* The number is known: completes the path; needs no memory. */
void coop_agent_folder_name(struct coop_agent_settings *settings, int64_t id);

/* For settings from the database, with the number: a folder is one of ours only in the data folder
 * and with a mark that our key proves, since it is deleted with its agent. 0, -ENOMEM, or the error
 * filled. */
int coop_agent_folder_restore(struct coop_keeper *keeper, struct coop_agent_settings *settings,
			      int64_t id, struct coop_err *err);

/* Makes it, whole or not at all. On the helper thread. 0 or -errno. */
int coop_agent_folder_make(const struct coop_agent_settings *settings);

/* Deletes what lies in the data folder, was made by a keeper with this one's key, and belongs to no
 * agent. Before the loop runs: it looks, the work is the helper thread's. */
void coop_agent_folders_sweep(struct coop_keeper *keeper);

#endif
