/* Agents of the database that could not be read when the keeper started. They are left out with
 * their tokens and with all below them, since an agent must not come back without its limits; the
 * keeper starts all the same, tells the operator, and touches nothing of theirs on disk until he
 * removes them. */
#ifndef COOP_KEEPER_LEFT_OUT_H
#define COOP_KEEPER_LEFT_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/jsonw.h"

struct coop_keeper;
struct coop_request;
struct coop_store_agent;

/* Notes the row, and says so in the log. `why` is a whole sentence's end. 0 or -ENOMEM. */
int coop_left_out_add(struct coop_keeper *keeper, const struct coop_store_agent *row,
		      const char *why);

/* Whether an agent of this number was left out. */
bool coop_left_out_has(const struct coop_keeper *keeper, int64_t id);

/* Whether one of that path was. */
bool coop_left_out_named(const struct coop_keeper *keeper, const char *principal, const char *path);

/* An array of {principal, path, reason}. */
void coop_left_out_write(const struct coop_keeper *keeper, struct coop_jsonw *w, const char *name);

/* Removes, if the operator's `agent_remove` names one that was left out, it and what was left out
 * below it. Folders of theirs go when the next keeper starts. False: the request is not about such,
 * and untouched; else it is answered, now or later. */
bool coop_left_out_remove(struct coop_request *request);

void coop_left_out_clear(struct coop_keeper *keeper);

#endif
